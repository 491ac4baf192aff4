"""Best subsets for a likelihood, by branch and bound over the columns that are dropped or kept.

    min over S, |S| = s    L(S) = min over w, b of Σ p_i ℓ(y_i, x_iS·w + b)        for s = 0 … K at once

A node is a set A of columns, of which some, F, are kept for good; below it are the subsets of A that contain F. The fit of all
of A says of each size what none of them goes below (`minorant.py`), and which of them is best by that account: fitted, it may
be the best so far. The node with the most to gain is split next, at the dearest column of the subset that makes it promising:
once without the column, once with it for good. What is left aside at any time bounds what could still be found.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from certifit._types import Array
from certifit.models.selection.subset.minorant import EXACT, STEPS, Likelihood, Minorant
from certifit.progress import Progress

__all__ = ["Limits", "SubsetSearch"]

ROUNDING = 1e-12  # of the objective of the best constant
NEXT_TO_NOTHING = 1e-3  # of the objective
POLISH = 5  # further steps of Newton's method for coefficients that are read


@dataclass(frozen=True)
class Limits:
    """How far the search goes: sizes up to `most`, nodes, seconds, and a gap that is good enough."""

    most: int
    max_nodes: int
    seconds: float
    slack: float


@dataclass(order=True)
class _Node:
    """A set of columns with those it keeps, the coefficients of its fit, and bounds by size (∞: no such subset)."""

    promise: float
    number: int
    columns: Array = field(compare=False)
    kept: Array = field(compare=False)
    w: Array = field(compare=False)
    bounds: Array = field(compare=False)
    dearest: int = field(compare=False)


class SubsetSearch:
    """What is known of each size: the best subset so far, its value, and a bound of what was left aside."""

    def __init__(self, likelihood: Likelihood, limits: Limits, clock: Progress) -> None:
        self.likelihood, self.limits, self.clock = likelihood, limits, clock
        d = likelihood.Z.shape[1] - 1
        self.values = np.full(limits.most + 1, np.inf)
        self.left = np.full(limits.most + 1, np.inf)
        self.supports = np.zeros((limits.most + 1, d), dtype=bool)
        self.scale = likelihood.scale
        self.nodes, self._numbers, self._fits = 0, count(), dict[bytes, tuple[float, float]]()
        self._open: list[_Node] = []

    def run(self) -> None:
        """Look at nodes until none is promising, or a limit is met."""
        self._greedy()
        if self.clock.seconds > self.limits.seconds:  # a fit of all columns may take longer than all that was asked for
            self.left[:] = 0.0
            return
        everything = np.ones(self.supports.shape[1], dtype=bool)
        self._consider(everything, ~everything, self._constant(everything), np.zeros(self.values.shape[0]))
        while self._open:
            worst = self._open[0]
            if self.nodes >= self.limits.max_nodes or self.clock.seconds > self.limits.seconds:
                break
            self.clock.update(self.nodes, self.limits.max_nodes, max(0.0, -worst.promise) / max(self.scale, 1e-300))
            self._split(heapq.heappop(self._open))
        for node in self._open:
            self.left = np.minimum(self.left, node.bounds)

    @property
    def bounds(self) -> Array:
        """What no subset of each size goes below; a smaller subset is one of those of the next size that add nothing."""
        found = np.minimum(self.values, self.left) - ROUNDING * self.scale
        return np.maximum(0.0, np.minimum.accumulate(found))

    def refitted(self, subset: Array) -> tuple[Array, float]:
        """Coefficients of a subset, shape (1 + s, m), as exact as rounding allows, and their value."""
        rows = self._rows(subset)
        here = self._fit(rows, self._constant(subset))
        length = math.inf
        for _ in range(POLISH):
            ahead = here.ahead()
            last, length = length, float(np.abs(ahead - here.w).max(initial=0.0))
            if not length < 0.5 * last:  # steps that do not shrink any more are those of rounding
                break
            value = self.likelihood.value(rows, ahead)
            # A whole step may be far too long, to where the curvature is no number. Classes that are told apart have
            # no best coefficients, and steps towards infinity keep gaining: those of polishing gain next to nothing.
            if not abs(value - here.value) <= NEXT_TO_NOTHING * here.value:
                break
            here = Minorant.at(self.likelihood, rows, ahead)
        return here.w, here.value

    def _constant(self, subset: Array) -> Array:
        start = np.zeros((1 + int(subset.sum()), self.likelihood.n_scores))
        start[:1] = self.likelihood.constant()
        return start

    def _promise(self, bounds: Array) -> float:
        """How far the bounds lie below what is known, at most; positive if nothing is to be gained."""
        return float((bounds - (self.values - self.limits.slack)).min())

    def _split(self, node: _Node) -> None:
        if self._promise(node.bounds) >= 0.0:  # something better was found since
            self.left = np.minimum(self.left, node.bounds)
            return
        rows = self._rows(node.columns)
        here = self._settled(rows, Minorant.at(self.likelihood, rows, node.w))
        place = int(np.count_nonzero(node.columns[: node.dearest]))
        fewer, more = node.columns.copy(), node.kept.copy()
        fewer[node.dearest], more[node.dearest] = False, True
        self._consider(fewer, node.kept, here.without(place), node.bounds)
        self._weigh(node.columns, more, here, node.bounds)

    def _consider(self, columns: Array, kept: Array, start: Array, above: Array) -> None:
        """Fit a new set of columns, as far as it is worth it."""
        rows, low, high = self._rows(columns), int(kept.sum()), int(columns.sum())
        reachable = np.arange(self.values.shape[0])
        above = np.where((reachable >= low) & (reachable <= high), above, np.inf)

        def hopeless(point: Minorant) -> bool:
            late = self.clock.seconds > self.limits.seconds  # any point has a bound
            return late or self._promise(np.maximum(above, point.bound())) >= 0.0

        here = self._fit(rows, start, hopeless)
        if high < self.values.shape[0]:
            self._keep(columns, here.value)
        self._weigh(columns, kept, self._settled(rows, here), above)

    def _weigh(self, columns: Array, kept: Array, here: Minorant, above: Array) -> None:
        """Bounds of a node, and its place among the others."""
        self.nodes += 1
        low, high = int(kept.sum()), int(columns.sum())
        bounds = np.maximum(above, here.bound())
        bounds[:low] = np.inf
        if low < bounds.shape[0]:  # what is kept alone is one subset
            bounds[low] = self._fitted(kept)[1]
        if low == high or self._promise(bounds) >= 0.0:
            self.left = np.minimum(self.left, bounds)
            return
        inner = np.flatnonzero(columns)
        free = ~kept[inner]
        least, chosen = here.best(free, self.limits.most - low)
        for size in range(low + 1, min(high, bounds.shape[0])):
            bounds[size] = max(bounds[size], here.bound(float(least[size - low])))
        subsets = np.zeros((bounds.shape[0], columns.shape[0]), dtype=bool)
        subsets[low : low + chosen.shape[0]] = kept
        subsets[low : low + chosen.shape[0], inner[free]] |= chosen
        for size in np.flatnonzero(bounds < self.values - self.limits.slack).tolist():
            if int(subsets[size].sum()) == size:
                self._keep(subsets[size], self._fitted(subsets[size])[0])
        promise = self._promise(bounds)
        if promise >= 0.0:
            self.left = np.minimum(self.left, bounds)
            return
        wanted = int((bounds - self.values).argmin())
        costs = np.full(columns.shape[0], -np.inf)
        costs[inner] = here.costs()
        candidates = subsets[wanted] & columns & ~kept
        candidates = candidates if candidates.any() else columns & ~kept
        dearest = int(np.where(candidates, costs, -np.inf).argmax())
        heapq.heappush(self._open, _Node(promise, next(self._numbers), columns, kept, here.w, bounds, dearest))

    def _rows(self, columns: Array) -> Array:
        return np.ascontiguousarray(self.likelihood.Z[:, np.r_[True, columns]])

    def _fit(self, rows: Array, start: Array, hopeless: Callable[[Minorant], bool] | None = None) -> Minorant:
        """Newton's method, until the fit is exact or its bound says that it leads nowhere."""
        constant = np.zeros_like(start)
        constant[:1] = self.likelihood.constant()
        with np.errstate(over="ignore"):
            # Without a column that others were balanced against, coefficients may be worse than none, or beyond all numbers.
            better = self.likelihood.value(rows, start) <= self.likelihood.value(rows, constant)
        here = Minorant.at(self.likelihood, rows, start if better else constant)
        for _ in range(STEPS):
            if here.decrement**2 <= EXACT * self.scale or here.value <= 0.25 * self.limits.slack:
                break
            if hopeless is not None and hopeless(here):
                break
            ahead = here.newton(self.likelihood, rows)
            if ahead is None:
                break
            here = Minorant.at(self.likelihood, rows, ahead)
        return here

    def _settled(self, rows: Array, here: Minorant) -> Minorant:
        """The same point; where coefficients grow without end, without the rows that they fit ever better.

        Nothing holds the scores of such rows, and their curvature vanishes: it is the others that bound what can be reached.
        """
        if here.value - here.bound() <= 0.25 * self.limits.slack:
            return here
        fewer, left = self.likelihood.without_fitted(rows, here.w, 0.1 * self.limits.slack)
        other = Minorant.at(fewer, left, here.w)
        return other if other.bound() > here.bound() else here

    def _fitted(self, subset: Array) -> tuple[float, float]:
        """The value of a subset and a bound of it, fitted once."""
        key = np.packbits(subset).tobytes()
        if key not in self._fits:
            rows = self._rows(subset)
            here = self._fit(rows, self._constant(subset))
            self._fits[key] = here.value, max(0.0, self._settled(rows, here).bound())
        return self._fits[key]

    def _keep(self, subset: Array, value: float) -> None:
        size = int(subset.sum())
        if value < self.values[size]:
            self.values[size], self.supports[size] = value, subset

    def _greedy(self) -> None:
        """Good subsets to begin with: to each the column is added that a score test finds most useful."""
        subset = np.zeros(self.supports.shape[1], dtype=bool)
        w = self.likelihood.constant()
        for size in range(self.values.shape[0]):
            rows = self._rows(subset)
            here = self._fit(rows, w)
            self._keep(subset, here.value)
            if size + 1 == self.values.shape[0]:
                return
            if self.clock.seconds > self.limits.seconds:  # larger subsets do as well as this one, at least
                self.values[size + 1 :], self.supports[size + 1 :] = here.value, subset
                return
            gain = self._gains(rows, here)
            gain[subset] = -np.inf
            added = int(gain.argmax())
            place = 1 + int(np.count_nonzero(subset[:added]))
            w = np.insert(here.w, place, 0.0, axis=0)
            subset = subset.copy()
            subset[added] = True

    def _gains(self, rows: Array, here: Minorant) -> Array:
        """Score statistics of all columns, with the curvature of each score by itself."""
        Z, (theta, bends) = self.likelihood.Z[:, 1:], self.likelihood.slopes(rows, here.w)
        total = np.zeros(Z.shape[1])
        for k in range(theta.shape[1]):
            bend = bends[k][k][:, None]
            cross = rows.T @ (bend * Z)
            own = np.linalg.pinv(rows.T @ (bend * rows), rcond=1e-10, hermitian=True)
            left = (bend * Z * Z).sum(axis=0) - np.einsum("ij,ij->j", cross, own @ cross)
            total += (theta[:, k] @ Z) ** 2 / np.maximum(left, 1e-10 * (bend * Z * Z).sum(axis=0) + 1e-300)
        return total
