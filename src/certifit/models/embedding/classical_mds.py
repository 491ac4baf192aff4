"""Classical scaling: points from distances, by the leading eigenvectors of their inner products.

    minimize over y₁ … y_n    Σ s_i s_j (b_ij − y_i·y_j)²        B = −½ J D² J, J takes the weighted mean from rows and columns

If D holds the distances of points, B holds their inner products about their mean, and the points come back up to a rotation
(Torgerson 1952). The optimum is the k leading eigenvectors of S^½ B S^½ times the roots of their eigenvalues. Distances that no
points have show as negative eigenvalues: that part of D cannot be drawn in any number of dimensions.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import ArpackError, eigsh

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.gate import like_input
from certifit.models.cluster.around_rows import METRIC
from certifit.models.embedding.of_distances import OfDistances
from certifit.optimization.eigen.leading import Eigenpairs, exact
from certifit.parameters import Fitted, Integer, Parameter
from certifit.parameters.common import N_JOBS, TOL

__all__ = ["ClassicalMDS"]

WHOLE = 1500  # rows up to which all eigenvalues are found
ROUNDING = 1e-12  # of the largest eigenvalue: what is no eigenvalue but rounding


class ClassicalMDS(OfDistances):
    """Classical multidimensional scaling: points that have given distances, exactly where there are such points.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import cdist
    >>> from certifit import ClassicalMDS
    >>> X = np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0], [0.0, 4.0]])
    >>> model = ClassicalMDS(metric="precomputed").fit(cdist(X, X))
    >>> cdist(model.embedding_, model.embedding_).round(6)[0]
    array([0., 3., 5., 4.])
    >>> model.eigenvalues_.round(6), round(model.non_euclidean_, 6)
    (array([16.,  9.]), 0.0)
    """

    n_components: int = Parameter(2, Integer(1), "Columns of the map.")
    metric: Any = METRIC
    tol: float = TOL
    n_jobs: int | None = N_JOBS

    eigenvalues_: Array = Fitted("array of shape (n_components,)", "The leading eigenvalues of S^½ B S^½.")
    smallest_eigenvalue_: float = Fitted("float", "The smallest; below zero if no points have these distances.")
    non_euclidean_: float = Fitted(
        "float",
        "The non-Euclidean part: the negative eigenvalues' share of Σλ², between 0 and 1. Of more than "
        f"{WHOLE} rows it is what the smallest one alone has: at least so much.",
    )

    def _find(self, X: Array, weight: Array, started: float) -> Certificate:
        D, self._exponent = self._to_kept(X[self._kept])
        A, self._means = _inner_products(D, weight[self._kept])
        pairs, low, negative = _ends(A, self.n_components)
        drawn = np.maximum(pairs.values, 0.0)
        real = drawn > ROUNDING * max(float(drawn.max(initial=0.0)), -low)
        with np.errstate(divide="ignore"):
            shape = np.where(real, 1.0 / np.sqrt(np.where(real, drawn, 1.0)), 0.0)
        self._directions = np.sqrt(weight[self._kept])[:, None] * pairs.vectors * shape
        points = self._placed(D)
        sign = np.sign(points[np.abs(points).argmax(axis=0), np.arange(points.shape[1])])
        self._directions *= np.where(sign == 0, 1.0, sign)
        with np.errstate(over="ignore"):
            self.eigenvalues_ = np.ldexp(pairs.values, 2 * self._exponent)
            self.smallest_eigenvalue_ = float(np.ldexp(low, 2 * self._exponent))
        energy = float((A * A).sum())
        self.non_euclidean_ = negative / energy if energy > 0 else 0.0
        self.embedding_ = like_input(X, self._points_of(X))
        return self._evidence(pairs, drawn * real, energy, time.perf_counter() - started)

    def _placed(self, D: Array) -> Array:
        """Points of rows with these dissimilarities to the rows of the fit (Gower 1968)."""
        return np.asarray(-0.5 * (D * D - self._means) @ self._directions)

    def _points_of(self, X: Array) -> Array:
        D, exponent = self._to_kept(X)
        with np.errstate(over="ignore", invalid="ignore"):
            points = np.ldexp(self._placed(np.ldexp(D, exponent - self._exponent)), self._exponent)
        if not np.isfinite(points).all():
            raise ValueError(
                "X holds rows so far from those of the fit that squares of the distances are beyond double precision."
            )
        return points

    def _evidence(self, pairs: Eigenpairs, drawn: Array, energy: float, seconds: float) -> Certificate:
        """The share of B that is not drawn, beside what any points in as many columns must leave."""
        unit = energy or 1.0
        left = max(0.0, 1.0 - float((drawn**2).sum()) / unit) if energy > 0 else 0.0
        slack = float((2.0 * drawn * pairs.residuals + pairs.residuals**2).sum()) / unit
        outside = f"{self.non_euclidean_:.2g} of Σλ² is in negative eigenvalues: no points have these dissimilarities."
        return Certificate(
            "eigen-residual",
            objective=left,
            bound=max(0.0, left - slack),
            scale=1.0,
            tol=self.tol,
            iterations=pairs.iterations,
            seconds=seconds,
            note=outside if self.non_euclidean_ > 1e-9 else "Points have these dissimilarities, in enough dimensions.",
            claim="" if self._kept.shape[0] <= WHOLE else "eigenvectors near these (a larger one may have been missed)",
        )


def _inner_products(D: Array, weight: Array) -> tuple[Array, Array]:
    """S^½ B S^½, and the weighted means of the columns of D²."""
    square = D * D
    share = weight / weight.sum()
    means = share @ square
    B = -0.5 * (square - means - means[:, None] + share @ means)
    root = np.sqrt(weight)
    return B * root * root[:, None], means


def _ends(A: Array, k: int) -> tuple[Eigenpairs, float, float]:
    """The k largest eigenvalues with their vectors, the smallest one, and the sum of squares of the negative ones.

    Beyond the number of rows eigenvalues are zero.
    """
    n = A.shape[0]
    found = min(k, n)
    ends = _few_ends(A, found) if n > WHOLE else None
    if ends is None:
        pairs, values = exact(A, found), eigvalsh(A)
        low, negative = float(values[0]), float((np.minimum(values, 0.0) ** 2).sum())
    else:
        pairs, low, negative = ends
    if -low <= ROUNDING * n * abs(float(pairs.values[0])):
        low, negative = max(low, 0.0), 0.0
    if found < k:
        more = k - found
        padded = np.hstack([pairs.vectors, np.zeros((n, more))])
        pairs = Eigenpairs(
            np.append(pairs.values, np.zeros(more)), padded, np.append(pairs.residuals, np.zeros(more)), 1
        )
    return pairs, low, negative


def _few_ends(A: Array, k: int) -> tuple[Eigenpairs, float, float] | None:
    """The same from products with A alone, of negative ones only the smallest; None where Lanczos breaks down, as for A = 0."""
    start: Any = np.random.default_rng(0).standard_normal(A.shape[0])
    try:
        values, vectors = eigsh(A, k=k, which="LA", v0=start)
        low = float(eigsh(A, k=1, which="SA", v0=start, return_eigenvectors=False, tol=1e-6)[0])
    except ArpackError:
        return None
    order = np.argsort(-values)
    values, vectors = values[order], vectors[:, order]
    pairs = Eigenpairs(values, vectors, np.linalg.norm(A @ vectors - vectors * values, axis=0), 1)
    return pairs, low, min(low, 0.0) ** 2
