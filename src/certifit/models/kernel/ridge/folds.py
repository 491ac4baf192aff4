"""Kernel ridge regression of several parts of one sample for all strengths: what K-fold cross-validation asks for.

Of a part with weights s, zero at the rows left out, and ridge ρ, with A = √S K √S about its weighted center,

    (A + ρ) z = √S(y − mean),        β = √S z,    b = mean of y − Kβ,

and a residual r of these equations moves no prediction by more than 2√k(x, x)·‖r‖/√(λ + ρ), λ the least eigenvalue of A. The
equations of all parts and strengths come from Krylov spaces (`closed_form.shifts.krylov`); strengths for which these are not good
enough, and small samples, go through one decomposition for each part. docs/decisions/0015-folds.md has the figures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit._types import Array
from certifit.models.kernel.gram_form import GramForm
from certifit.optimization.closed_form.shifts.krylov import Krylov
from certifit.threads import n_threads

__all__ = ["Part", "Parts"]

KRYLOV_FROM = 1000  # rows; fewer are decomposed in no time
MOST_STARTS = 60  # parts times targets; a decomposition serves all targets of a part
TOGETHER = 12  # of them that share a pass over K
ROOM = 1 / 8  # of the rows: beyond that, to keep vectors orthogonal costs more than the passes over K
LEAST_ROOM = 256
STEPS = 8  # between two looks at the residuals
ACCURACY = 1e-6  # of an error on rows left out, at worst; what is reached is a thousandth of it and less
GUESS = 0.3  # of the deviation of y: the error on rows left out, as long as it is not known
ROUNDING = 2e-15  # times the size of what is subtracted: a residual that nothing improves,
SEEN = 1e-8  # and that does no harm where ρ is this share of the trace of A


@dataclass(frozen=True)
class Part:
    """Weights of the rows of one fit, and of the rows it is tested on; (n,) each, zero for the other rows."""

    weight: Array
    tested: Array

    @property
    def p(self) -> Array:
        """Weights that sum to one."""
        return np.asarray(self.weight / self.weight.sum())

    def error(self, residuals: Array) -> Array:
        """Weighted mean square on the rows tested, of residuals (..., n); infinite where there is no such row."""
        total = float(self.tested.sum())
        return np.asarray(residuals**2 @ (self.tested / total)) if total > 0 else np.full(residuals.shape[:-1], np.inf)


@dataclass(frozen=True)
class Parts:
    """Parts of a sample with Gram matrix size·K and targets y, (t, n), to be fit with each of some strengths."""

    gram: Array
    size: float
    parts: list[Part]
    y: Array
    alphas: Array
    fit_intercept: bool

    def solve(self) -> tuple[Array, Array]:
        """β of every part, strength and target, and the predictions of all rows; (parts, k, t, n) each."""
        (t, n), k = self.y.shape, self.alphas.shape[0]
        beta, predictions = np.zeros((2, len(self.parts), k, t, n))
        left = np.ones(k, dtype=bool)
        if n >= KRYLOV_FROM and len(self.parts) * t <= MOST_STARTS:
            left = ~self._by_krylov(beta, predictions)
        for part, own, predicted in zip(self.parts, beta, predictions, strict=True) if left.any() else ():
            own[left] = self._by_decomposition(part, self.alphas[left])
            image = (own[left].reshape(-1, n) @ self.gram).reshape(-1, t, n)
            predicted[left] = self._with_intercept(part, image, self.y)
        return beta, predictions

    def _ridges(self, part: Part, alphas: Array) -> Array:
        return np.asarray(np.maximum(alphas * float(part.weight.sum()), 1e-300))

    def _with_intercept(self, part: Part, image: Array, y: Array) -> Array:
        """Kβ + b, of size·Kβ with the shape of y, or more dimensions before it."""
        image = image / self.size
        return image + ((y - image) @ part.p)[..., None] if self.fit_intercept else image

    def _by_decomposition(self, part: Part, alphas: Array) -> Array:
        rows = np.flatnonzero(part.weight)
        weight, ridges = part.weight[rows], self._ridges(part, alphas)
        form = GramForm.of(self.gram[np.ix_(rows, rows)] / self.size, weight, self.fit_intercept, ridges)
        beta = np.zeros((alphas.shape[0], *self.y.shape))
        for own, residuals, ridge in zip(beta, form.residuals(self.y.T[rows], ridges), ridges, strict=True):
            own[:, rows] = (weight[:, None] * residuals / ridge).T
        return beta

    def _by_krylov(self, beta: Array, predictions: Array) -> Array:
        """Fill β and predictions; which strengths they are right for."""
        gram = np.ascontiguousarray(self.gram)
        good = np.ones(self.alphas.shape[0], dtype=bool)
        systems = [(p, j) for p in range(len(self.parts)) for j in range(self.y.shape[0])]
        for first in range(0, len(systems), TOGETHER):
            some = systems[first : first + TOGETHER]
            if good.any():
                good = _Together(self, gram, some).fill(beta, predictions, good)
        return good


class _Together:
    """Systems of some parts and targets, in one Krylov process."""

    def __init__(self, of: Parts, gram: Array, systems: list[tuple[int, int]]) -> None:
        self.of, self.gram, self.systems = of, gram, systems
        self.parts, self.y = [of.parts[p] for p, _ in systems], of.y[[j for _, j in systems]]
        self.root = np.sqrt(np.stack([part.weight for part in self.parts]))
        level = np.linalg.norm(self.root, axis=1)[:, None]
        self.constant = self.root / level if of.fit_intercept else np.zeros_like(self.root)
        self.right = self.root * self.y
        self.right -= self.constant * (self.constant * self.right).sum(axis=1, keepdims=True)
        self.ridges = np.stack([of._ridges(part, of.alphas) for part in self.parts])
        n = gram.shape[0]
        self.space = Krylov(
            gram, self.root / np.sqrt(of.size), self.constant, self.right, self.ridges,
            room=min(n, max(LEAST_ROOM, int(ROOM * n))), threads=n_threads(None),
        )  # fmt: skip
        # The error on rows left out, first a guess; and the residual that moves its square by ACCURACY at most, divided by it.
        self.error = np.tile(GUESS * self.space.size[:, None] / level, self.ridges.shape[1])
        self.share = 0.25 * ACCURACY / max(float(np.sqrt(np.diagonal(gram).max() / of.size)), 1e-150)

    def fill(self, beta: Array, predictions: Array, good: Array) -> Array:
        """Which of the good strengths these are right for."""
        while True:
            self._extend(good)
            z = self.space.solutions()
            points = z * self.root[:, None]
            image = (points.reshape(-1, points.shape[-1]) @ self.gram).reshape(z.shape)
            for s, (p, j) in enumerate(self.systems):
                beta[p, :, j] = points[s]
                found = self.of._with_intercept(self.parts[s], image[s], self.y[s])
                predictions[p, :, j] = found
                self.error[s] = np.minimum(self.error[s], np.sqrt(self.parts[s].error(found - self.y[s])))
            true, floor = self._residuals(z, image)
            right = np.all(true <= np.maximum(self._wanted(), floor), axis=0)
            if right[good].all() or self._finished(good & ~right):
                return good & right

    def _wanted(self) -> Array:
        return np.asarray(self.share * self.error * np.sqrt(self.space.least()[:, None] + self.ridges))

    def _finished(self, strengths: Array) -> bool:
        """Whether nothing more is to be had for these."""
        small = np.asarray(self.space.residuals() <= self._wanted())[:, strengths].all()
        return bool(small or self.space.steps == self.space.room)

    def _extend(self, strengths: Array) -> None:
        self.space.extend(STEPS)
        while not self._finished(strengths):
            self.space.extend(STEPS)

    def _residuals(self, z: Array, image: Array) -> tuple[Array, Array]:
        """Lengths of the residuals, and what rounding makes of zero."""
        pulled = image * (self.root / self.of.size)[:, None]
        pulled -= np.einsum("ckn,cn->ck", pulled, self.constant)[:, :, None] * self.constant[:, None]
        pulled += self.ridges[:, :, None] * z
        # The trace bounds what K, not only K about its center, makes of z.
        trace = self.root**2 @ np.diagonal(self.gram) / self.of.size
        size = trace[:, None] * np.linalg.norm(z, axis=2) + self.space.size[:, None]
        floor = np.where(self.ridges >= SEEN * trace[:, None], ROUNDING * size, 0.0)
        return np.linalg.norm(self.right[:, None] - pulled, axis=2), floor
