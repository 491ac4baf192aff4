"""The conditional likelihood of labels on a chain or tree, and what a point proves about its optimum.

    f(w) = Σ_i p_i (log Z_i(w) − score_i(y_i; w)),      F(w) = f(w) + l1·‖w‖₁ + l2/2·‖w‖²

A dual point is a distribution q_i over the labellings of every sequence:

    D(q) = Σ_i p_i H(q_i) − Ω*(Σ_i p_i (ψ_i(y_i) − E_q ψ_i)),       Ω*(v) = Σ_j max(|v_j| − l1, 0)² / (2·l2)

The model's own distribution has E_q ψ_i − ψ_i(y_i) = ∇f(w) and entropy f(w) − w·∇f(w), both known after one evaluation.
With l1 = 0 the gap F(w) − D equals ‖∇F(w)‖²/(2·l2): the bound of strong convexity and the Fenchel gap are the same
number. Two things tighten it: mixing with the observed labels, q = t·model + (1 − t)·[y = y_i], whose entropy is known
exactly and which makes pure L1 feasible, and mixing with the best dual point found before, since D is concave.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize

import certifit._native.chain as native
from certifit._types import Array
from certifit.optimization.chain.shape import ChainShape, native_sequences
from certifit.representation.sequences.positions import Positions

__all__ = ["DualBound", "Likelihood", "constant_loss"]


class Likelihood:
    """f and its slope at a point; `losses` keeps those of the sequences at the last point.

    Parameters
    ----------
    data : Positions
    y : int32 array of shape (n_positions,)
        Codes of the labels.
    p : array of shape (n_sequences,)
        Weights that sum to one.
    shape : ChainShape
    threads : int
    """

    def __init__(self, data: Positions, y: Array, p: Array, shape: ChainShape, threads: int) -> None:
        self.data, self.y, self.p, self.shape, self.threads = data, y, p, shape, threads
        K = shape.labels
        self.losses = np.empty(data.n_sequences)
        self._tail = np.empty(shape.size - shape.n_unary)
        self._dense = data.dense
        if self._dense is None:
            self.sequences = native_sequences(data)
            self._columns = data.sparse.columns()
            self._residual = _at_a_line(data.n_positions, shape.native.width)
        else:
            self._residual = np.empty((data.n_positions, K))

    def __call__(self, w: Array) -> tuple[float, Array]:
        """f(w) and its gradient."""
        slope, n = np.empty(self.shape.size), self.shape.n_unary
        if self._dense is None:
            sequences = self.sequences
        else:
            table = w[:n].reshape(self.shape.features, self.shape.labels)
            sequences = native_sequences(self.data, np.ascontiguousarray(self._dense @ table))
        value = native.evaluate(
            sequences, self.shape.native, w, self.y, self.p, self._residual, self._tail, self.losses, self.threads
        )
        if self._dense is None:
            first, position, values = self._columns
            native.pull(self.shape.native, first, position, values, self._residual, slope[:n], self.threads)
        else:
            slope[:n] = (self._dense.T @ self._residual).ravel()
        slope[n:] = self._tail
        slope[n + self.shape.n_markov :][~self.shape.free] = 0.0
        return float(value), slope

    def units(self, l2: float) -> Array:
        """Units of the weights: 1 over the size of their column of numbers, unless l2/2·‖w‖² holds them more; 1 for others."""
        out = np.ones(self.shape.size)
        if self._dense is not None:
            most = np.abs(self._dense).max(axis=0, initial=0.0)
            most = np.where(most > 0.0, most, 1.0)
            size = np.hypot(most * np.sqrt(np.mean((self._dense / most) ** 2, axis=0)), np.sqrt(l2))
            self.shape.split(out)[0][:] = np.repeat(1.0 / np.where(size > 0.0, size, 1.0), self.shape.labels)
        return out

    def curvature(self) -> Array:
        """Diagonal of the Hessian at w = 0 if labels came independently, in their observed shares: a scale for solvers."""
        shape, K = self.shape, self.shape.labels
        weight = np.repeat(self.p, self.data.lengths)
        share = np.bincount(self.y, weights=weight, minlength=K) / weight.sum()
        spread = share * (1.0 - share)
        out = np.empty(shape.size)
        unary, markov, transition, start, end = shape.split(out)
        if self._dense is not None:
            unary[:] = np.outer(weight @ self._dense**2, spread).ravel()
        else:
            rows = self.data.sparse
            mass = np.bincount(
                rows.feature,
                weights=weight[rows.entry_positions()] * (1.0 if rows.value is None else rows.value**2),
                minlength=rows.width,
            )
            unary[:] = _by_pair(mass, spread, shape.pairs)
        both = np.outer(share, share)
        both *= 1.0 - both
        if self.data.markov is not None:
            edge = self.data.markov
            mass = np.bincount(
                edge.feature,
                weights=weight[edge.entry_positions()] * (1.0 if edge.value is None else edge.value**2),
                minlength=edge.width,
            )
            markov[:] = _by_pair(mass, both.ravel(), shape.markov_pairs)
        transition[:] = both * max(float(weight.sum()) - 1.0, 0.0)
        start[:] = end[:] = spread
        return out


def _at_a_line(rows: int, columns: int) -> Array:
    """An empty table that begins at a cache line: eight numbers side by side are then never spread over two."""
    room = np.empty(rows * columns + 8)
    first = -(room.ctypes.data // room.itemsize) % 8
    return room[first : first + rows * columns].reshape(rows, columns)


def _by_pair(mass: Array, spread: Array, pairs: Any) -> Array:
    """mass[f]·spread[code] for every weight."""
    if pairs is None:
        return np.outer(mass, spread).ravel()
    return np.repeat(mass, np.diff(pairs.first)) * spread[pairs.code]


class DualBound:
    """The best lower bound of F that the points seen so far prove."""

    def __init__(self, p: Array, l1: float, l2: float) -> None:
        self.p, self.l1, self.l2 = p, l1, l2
        self.value = 0.0  # no loss and no penalty is negative
        self._entropy = 0.0
        self._slope: Array | None = None

    def add(self, w: Array, loss: float, slope: Array, losses: Array) -> float:
        """Learn from a point where f and its slope are known; the bound so far."""
        entropy = loss - float(w @ slope)
        if self.l1 == 0.0:
            self._mix(entropy, slope)
        else:
            self.value = max(self.value, self._best_share(entropy, slope, losses))
        return self.value

    def _mix(self, entropy: float, slope: Array) -> None:
        """Smooth penalty: the best point between the new one and the best so far, in closed form."""
        square = float(slope @ slope)
        new = entropy - square / (2.0 * self.l2)
        if self._slope is None:
            self._entropy, self._slope = entropy, slope.copy()
            self.value = max(self.value, new)
            return
        cross, old = float(slope @ self._slope), float(self._slope @ self._slope)
        # D(θ) = θ·entropy + (1 − θ)·old entropy − ‖θ·slope + (1 − θ)·old slope‖²/(2·l2)
        rise = entropy - self._entropy - (cross - old) / self.l2
        bend = (square - 2.0 * cross + old) / self.l2
        theta = 1.0 if bend <= 0.0 else min(max(rise / bend, 0.0), 1.0)
        self._entropy += theta * (entropy - self._entropy)
        self._slope *= 1.0 - theta
        self._slope += theta * slope
        mixed = self._entropy - float(self._slope @ self._slope) / (2.0 * self.l2)
        self.value = max(self.value, mixed)

    def _best_share(self, entropy: float, slope: Array, losses: Array) -> float:
        """Mixtures t·model + (1 − t)·observed: the best t."""
        magnitude = np.abs(slope)
        largest = float(magnitude.max(initial=0.0))
        most = 1.0 if self.l2 > 0.0 or largest <= self.l1 else self.l1 / largest
        own = np.exp(-losses)  # probability of the observed labels

        def bound(t: float) -> float:
            # H(t·q + (1 − t)·δ_y) with q(y) = own
            rest = t * own + (1.0 - t)
            mixed = t * (1.0 - own) * np.log(t) + t * losses * own + rest * np.log(rest) if t > 0.0 else rest * 0.0
            excess = np.maximum(t * magnitude - self.l1, 0.0)
            conjugate = float(excess @ excess) / (2.0 * self.l2) if self.l2 > 0.0 else 0.0
            return t * entropy - float(self.p @ mixed) - conjugate

        values = [bound(most)]
        if self.l2 > 0.0:
            found = scipy.optimize.minimize_scalar(
                lambda t: -bound(t), bounds=(1e-6, 1.0), method="bounded", options={"maxiter": 12}
            )
            values.append(-float(found.fun))
        return max(values)


def constant_loss(y: Array, weight: Array, n_labels: int) -> float:
    """f of the best model that knows nothing of the input: every label with its share, one position like the other.

    `weight` has the weight of each position; it sums to the mean length.
    """
    held = np.bincount(y, weights=weight, minlength=n_labels)
    total = float(held.sum())
    share = held[held > 0] / total
    return float(-total * np.sum(share * np.log(share)))
