"""What a maximum likelihood fit says of every fit with fewer columns.

    L(w) = Σ p_i ℓ(y_i, z_i·w),        z_i: a one and the columns of row i

The losses have |ℓ'''| ≤ ℓ'' (logistic, Poisson and Gamma under the log link; for the softmax |D³ℓ[u, u, v]| ≤ (max v − min
v)·D²ℓ[u, u]). A move by v from w then costs at least (Bach 2010, Proposition 1), with H the Hessian at w,

    L(w + v)  ≥  L(w) + ∇L·v + (e^(−hρ) + hρ − 1)/h²,        ρ² = vᵀHv,        h = max_i ‖z_i‖ in the norm of H⁻¹,

since no score moves by more than hρ. As ∇L·v ≥ −ερ with ε the Newton decrement, w need not be the optimum: what is left is a
convex function of ρ alone. Fits without the columns D have ρ² ≥ q(D) = min over v with v_D = −w_D of vᵀHv: a problem of least
squares, whose best subsets are found exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from certifit._types import Array
from certifit.evaluation.losses import Loss
from certifit.models.selection.subset.least_squares import best_subsets
from certifit.models.selection.units import LEAST_PIVOT

__all__ = ["ClassLikelihood", "Likelihood", "Minorant", "least_value"]

INNER_NODES = 2000  # subsets that the search below a node may look at
STEPS = 60  # of Newton's method
UNSEEN = 1e-6  # of the largest entry of the rows: what rounding leaves of a part that the Hessian does see
EXACT = 1e-13  # of the objective of the best constant: a decrement that ends Newton's method


@dataclass(frozen=True)
class Likelihood:
    """Rows in units of their own, shares that sum to one, and a loss of one score."""

    Z: Array
    """Ones, then the columns."""
    y: Array
    p: Array
    loss: Loss

    @staticmethod
    def of(Z: Array, y: Array, p: Array, loss: Loss) -> Likelihood:
        """That of one score, or of K classes where the loss is of theirs."""
        return (ClassLikelihood if loss.coupled else Likelihood)(Z, y, p, loss)

    @property
    def n_scores(self) -> int:
        """Scores of a row."""
        return 1

    def _scores(self, rows: Array, w: Array) -> Array:
        return (rows @ w)[:, 0]

    def value(self, rows: Array, w: Array) -> float:
        """L, infinite where a score overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = float(self.p @ self.loss.value(self.y, self._scores(rows, w)))
        return found if math.isfinite(found) else math.inf

    def without_fitted(self, rows: Array, w: Array, most: float) -> tuple[Likelihood, Array]:
        """The same, and the rows, without those that are fitted: they cost nearly nothing, `most` in all."""
        kept = ~_cheap(self.p * self.loss.value(self.y, self._scores(rows, w)), most)
        return replace(self, Z=self.Z[kept], y=self.y[kept], p=self.p[kept]), rows[kept]

    def moves(self) -> list[tuple[int, int, Array]]:
        """The pairs of classes whose scores meet, and in which rows; class 0 is the one whose score is zero."""
        return [(1, 0, np.ones(self.y.shape[0], dtype=bool))]

    def slopes(self, rows: Array, w: Array) -> tuple[Array, list[list[Array]]]:
        """pℓ' of shape (n, m), and the m × m entries of pℓ''."""
        theta, bend = self.loss.slopes(self.y, self._scores(rows, w))
        return (self.p * theta)[:, None], [[self.p * bend]]

    @cached_property
    def scale(self) -> float:
        """L of the best constant."""
        return self.value(self.Z[:, :1], self.constant())

    def constant(self) -> Array:
        """The best fit without columns, shape (1, m)."""
        return np.atleast_2d(self.loss.optimal_constant(self.y, self.p))


@dataclass(frozen=True)
class ClassLikelihood(Likelihood):
    """The softmax of K classes, of which the first has no score."""

    absent: Array | None = None
    """Classes that a row leaves out of its sum: what it then costs is a bound of what it costs."""

    @property
    def n_scores(self) -> int:
        return self.loss.n_scores(self.y) - 1

    def _scores(self, rows: Array, w: Array) -> Array:
        f = rows @ w
        f = np.hstack([np.zeros((f.shape[0], 1)), f])
        return f if self.absent is None else np.where(self.absent, -np.inf, f)

    def without_fitted(self, rows: Array, w: Array, most: float) -> tuple[Likelihood, Array]:
        """The same without the classes that a row is known not to belong to."""
        costs = self.p[:, None] * self.loss.predict(self._scores(rows, w))
        costs[np.arange(costs.shape[0]), self.y] = np.inf
        return replace(self, absent=_cheap(costs, most)), rows

    def moves(self) -> list[tuple[int, int, Array]]:
        m, n = self.n_scores, self.y.shape[0]
        none = np.zeros((n, m + 1), dtype=bool) if self.absent is None else self.absent
        return [(k, j, ~(none[:, k] | none[:, j])) for k in range(1, m + 1) for j in range(k)]

    def slopes(self, rows: Array, w: Array) -> tuple[Array, list[list[Array]]]:
        f, m = self._scores(rows, w), self.n_scores
        share = self.loss.predict(f)[:, 1:]
        theta = self.p[:, None] * self.loss.derivative(self.y, f)[:, 1:]
        return theta, [[self.p * share[:, k] * ((k == j) - share[:, j]) for j in range(m)] for k in range(m)]

    def constant(self) -> Array:
        best = super().constant()
        return best[:, 1:] - best[:, :1]


def _cheap(costs: Array, most: float) -> Array:
    """Where the least costs are, which come to `most` together."""
    order = np.argsort(costs, axis=None, kind="stable")
    found = np.zeros(costs.size, dtype=bool)
    found[order[np.cumsum(costs.ravel()[order]) <= most]] = True
    return found.reshape(costs.shape)


@dataclass(frozen=True)
class Minorant:
    """The likelihood at a point, and what it costs at least to move away."""

    value: float
    w: Array
    """Shape (1 + a, m): intercepts, then the a columns."""
    hessian: Array
    """Square of order (1 + a)·m, column by column."""
    root: Array
    """R with R Rᵀ the inverse of the Hessian, or its pseudo-inverse."""
    gradient: Array
    decrement: float
    reach: float
    """h: how far a score moves at most when the coefficients move by one."""
    dependent: bool

    @staticmethod
    def at(likelihood: Likelihood, rows: Array, w: Array) -> Minorant:
        """At coefficients of some columns."""
        m, size = likelihood.n_scores, rows.shape[1]
        theta, bends = likelihood.slopes(rows, w)
        hessian = np.empty((size, m, size, m))
        for k in range(m):
            for j in range(k, m):
                hessian[:, k, :, j] = hessian[:, j, :, k] = rows.T @ (bends[k][j][:, None] * rows)
        square = hessian.reshape(size * m, size * m)
        root, dependent = _inverse_root(square)
        gradient = (rows.T @ theta).ravel()
        reach = max(_reach(rows, pair, root, square, dependent) for pair in likelihood.moves())
        decrement = float(np.linalg.norm(root.T @ gradient))
        value = likelihood.value(rows, w)
        return Minorant(value, w, square, root, gradient, decrement, reach, dependent)

    def newton(self, likelihood: Likelihood, rows: Array) -> Array | None:
        """Coefficients of a smaller value; None where rounding leaves none."""
        step, length = self.ahead() - self.w, 1.0
        while length > 1e-6:
            ahead = self.w + length * step
            if likelihood.value(rows, ahead) < self.value - 1e-4 * length * self.decrement**2:
                return ahead
            length *= 0.5
        return None

    def ahead(self) -> Array:
        """Where a whole step of Newton's method ends."""
        return self.w - (self.root @ (self.root.T @ self.gradient)).reshape(self.w.shape)

    def bound(self, q: float = 0.0) -> float:
        """What no fit with ρ² ≥ q goes below."""
        return least_value(self.value, self.decrement, self.reach, q)

    def without(self, column: int) -> Array:
        """Coefficients of the others after the cheapest move to zero of this one's: a start for their fit."""
        m = self.w.shape[1]
        own = slice((1 + column) * m, (2 + column) * m)
        inverse = self.root @ self.root[own].T
        block = inverse[own]
        if self.dependent:
            return np.delete(self.w, 1 + column, axis=0)
        moved = self.w.ravel() - inverse @ np.linalg.solve(block, self.w.ravel()[own])
        return np.delete(moved.reshape(self.w.shape), 1 + column, axis=0)

    def costs(self) -> Array:
        """ρ² of dropping each column; zero where another may take its place."""
        m, a = self.w.shape[1], self.w.shape[0] - 1
        if self.dependent:
            return np.zeros(a)
        blocks = self.root.reshape(1 + a, m, self.root.shape[1])[1:]
        inverse = blocks @ blocks.transpose(0, 2, 1)
        return np.asarray(np.einsum("ak,ak->a", self.w[1:], np.linalg.solve(inverse, self.w[1:, :, None])[:, :, 0]))

    def best(self, free: Array, most: int) -> tuple[Array, Array]:
        """For each number of free columns up to `most`, the least ρ² of a fit that has no others, and the columns of such a fit.

        Columns that are not free stay, and so do the intercepts. Of several scores only a bound of ρ² is known: the sum of the
        smallest terms of λ·wᵢᵀPᵢᵢ⁻¹wᵢ, where λ·diag(Pᵢᵢ⁻¹) lies below the Hessian from which what stays is eliminated.
        """
        m, places = self.w.shape[1], np.flatnonzero(free)
        count = places.shape[0]
        if m == 1:
            return self._best_of_one_score(places, min(most, count))
        costs = self.costs()[places]
        order = np.argsort(-costs, kind="stable")
        share = 0.0 if self.dependent or not count else self._separable(places)
        least, chosen = np.zeros(min(most, count) + 1), np.zeros((min(most, count) + 1, count), dtype=bool)
        for size in range(least.shape[0]):
            chosen[size, order[:size]] = True
            terms = costs[order[size:]]
            least[size] = max(share * terms.sum(), terms.max(initial=0.0))
        return least, chosen

    def _separable(self, places: Array) -> float:
        m, a = self.w.shape[1], self.w.shape[0] - 1
        blocks = self.root.reshape(1 + a, m, self.root.shape[1])[1:][places]
        scaled = np.linalg.solve(np.linalg.cholesky(blocks @ blocks.transpose(0, 2, 1)), blocks)
        scaled = scaled.reshape(places.shape[0] * m, self.root.shape[1])
        largest = float(np.linalg.eigvalsh(scaled @ scaled.T)[-1])
        return max(0.0, 1.0 / largest - 16.0 * scaled.shape[0] * np.finfo(np.float64).eps * largest)

    def _best_of_one_score(self, places: Array, most: int) -> tuple[Array, Array]:
        stay = np.setdiff1d(np.arange(self.w.shape[0]), 1 + places)
        cross = self.hessian[np.ix_(stay, 1 + places)]
        kept = np.linalg.pinv(self.hessian[np.ix_(stay, stay)], rcond=LEAST_PIVOT, hermitian=True)
        inner = self.hessian[np.ix_(1 + places, 1 + places)]
        left = inner - cross.T @ kept @ cross
        left = 0.5 * (left + left.T)
        w = self.w[1 + places, 0]
        scale = np.sqrt(np.maximum(np.diag(left), 0.0))
        useful = scale**2 > LEAST_PIVOT * np.diag(inner)
        scale = np.where(useful, scale, 1.0)
        moves = left @ w
        total = float(w @ moves)
        if not total > 0.0:
            return np.zeros(most + 1), np.zeros((most + 1, places.shape[0]), dtype=bool)
        gram = np.zeros((1 + places.shape[0], 1 + places.shape[0]))
        gram[0, 0] = 1.0
        gram[0, 1:] = gram[1:, 0] = np.where(useful, moves / scale / math.sqrt(total), 0.0)
        gram[1:, 1:] = np.where(np.outer(useful, useful), left / np.outer(scale, scale), 0.0)
        supports, _shares, bounds, _nodes = best_subsets(gram, most, INNER_NODES)
        return total * bounds, supports


def _reach(rows: Array, pair: tuple[int, int, Array], root: Array, square: Array, dependent: bool) -> float:
    """How far the scores of two classes move apart at most when the coefficients move by one."""
    k, j, active = pair
    rows, size = rows if active.all() else rows[active], rows.shape[1]
    m = root.shape[0] // size
    moved = root.reshape(size, m, root.shape[1])
    towards = moved[:, k - 1] - (moved[:, j - 1] if j else 0.0)
    images = rows @ towards
    farthest = math.sqrt(float(np.einsum("ij,ij->i", images, images).max(initial=0.0)))
    if not dependent:
        return farthest
    # A row with a part in no direction of the Hessian: nothing holds its score.
    seen = (images @ (square @ root).T).reshape(rows.shape[0], size, m)
    seen[:, :, k - 1] -= rows
    if j:
        seen[:, :, j - 1] += rows
    lost = float(np.abs(seen).max(initial=0.0)) > UNSEEN * float(np.abs(rows).max(initial=0.0))
    return math.inf if lost else farthest


def least_value(value: float, decrement: float, reach: float, q: float) -> float:
    """The least of value − ερ + (e^(−hρ) + hρ − 1)/h² over ρ² ≥ q; −∞ where it falls without end.

    Examples
    --------
    >>> from certifit.models.selection.subset.minorant import least_value
    >>> round(least_value(1.0, 0.0, 1e-6, 0.04), 6)  # ½q where scores hardly move
    1.02
    >>> least_value(1.0, 2.0, 1.0, 0.0)
    -inf
    """
    u = reach * decrement
    if not u < 1.0:
        return -math.inf
    if reach == 0.0:  # no score can move
        return value
    t = max(reach * math.sqrt(q), -math.log1p(-u))
    gained = t * t * (0.5 - t / 6.0) if t < 1e-4 else math.expm1(-t) + t
    return value + (gained - u * t) / reach**2


def _inverse_root(square: Array) -> tuple[Array, bool]:
    """R with R Rᵀ = square⁻¹, by Cholesky in units of the diagonal; where columns are dependent, of the pseudo-inverse."""
    unit = np.sqrt(np.maximum(np.diag(square), np.finfo(np.float64).tiny))
    scaled = square / np.outer(unit, unit)
    lower, info = lapack.dpotrf(scaled, lower=1, clean=1)
    if info == 0 and float(np.diag(lower).min()) ** 2 > LEAST_PIVOT:
        inverse, _ = lapack.dtrtri(lower, lower=1)
        return np.asarray(inverse.T / unit[:, None]), False
    values, vectors = np.linalg.eigh(scaled)
    kept = values > LEAST_PIVOT
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]) / unit[:, None]), True
