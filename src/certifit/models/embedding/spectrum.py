"""The leading directions of a table, by the way that suits its shape.

    maximize tr Vᵀ(ZᵀZ/Σs)V over V with VᵀV = I        Z = diag(√s)(X − 1mᵀ), m the mean or zero

covariance    eigenvectors of ZᵀZ                                        many rows, few columns
gram          V = Zᵀu/σ with the eigenvectors u of ZZᵀ                   many columns, few rows
svd           of Z itself: small variances keep their digits
power         power iteration with deflation, by products with Z
randomized    a randomized block Krylov space, by products with Z        many of both
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import svd

from certifit._types import Array, Matrix, is_sparse
from certifit.certificate import Certificate
from certifit.optimization.eigen.leading import Eigenpairs, exact, power, subspace
from certifit.representation.design.scatter import centered_rows, inner, outer, product, weighted_mean
from certifit.representation.kernels.basic import squared_lengths

__all__ = ["SOLVERS", "Effort", "Spectrum", "choose_solver", "spectrum"]

SOLVERS = ("auto", "covariance", "svd", "gram", "power", "randomized")
SMALL = 2000  # up to here all eigenvectors of a matrix are found as fast as some
RANGE = 1e50  # entries beyond which, or below whose inverse, X is scaled first: residuals are fourth powers of them
ROUNDING = 1e-24  # the variance that rounding may leave of equal rows whose largest entry is one


@dataclass(frozen=True)
class Effort:
    """How hard the iterative ways try: the wanted relative gap, the most iterations, and their draws."""

    tol: float
    max_iter: int
    rng: np.random.RandomState


@dataclass(frozen=True)
class Spectrum:
    """Variances along the leading directions, in descending order, and what is known of them."""

    values: Array
    vectors: Array
    """Directions in columns."""
    mean: Array
    total: float
    """Variance in all directions."""
    residuals: Array
    iterations: int
    solver: str

    @staticmethod
    def of(pairs: Eigenpairs, mean: Array, total: float, solver: str) -> Spectrum:
        """From eigenvectors; each direction so that its entry of largest size is positive, as scikit-learn has it."""
        vectors = pairs.vectors
        largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
        signed = vectors * np.where(largest < 0, -1.0, 1.0)
        values = np.maximum(pairs.values, 0.0)
        return Spectrum(values, signed, mean, total, pairs.residuals, pairs.iterations, solver)

    def scaled(self, square: float) -> Spectrum:
        """Variances in another unit; refused where they would vanish."""
        if self.total > ROUNDING and self.total * square < np.finfo(np.float64).tiny:
            _refuse_tiny("double")
        values, residuals = self.values * square, self.residuals * square
        return replace(self, values=values, residuals=residuals, total=self.total * square)

    def check_range(self, dtype: Any) -> None:
        """Refuse variances that are no numbers."""
        precision, cure = ("single", ", or as float64") if dtype == np.float32 else ("double", "")
        if 0.0 < self.total < float(np.finfo(dtype).tiny):
            _refuse_tiny(precision, cure)
        if self.total > float(np.finfo(dtype).max):
            raise ValueError(
                f"X holds numbers whose squares are beyond {precision} precision: give large columns in another unit{cure}."
            )

    def first(self, k: int) -> Spectrum:
        """Only the first k."""
        return replace(self, values=self.values[:k], vectors=self.vectors[:, :k], residuals=self.residuals[:k])

    def certificate(self, tol: float, seconds: float) -> Certificate:
        """Least squares of the reconstruction: what is discarded, beside what any k directions must discard."""
        discarded = max(0.0, self.total - float(self.values.sum()))
        whole = self.solver not in ("power", "randomized")
        return Certificate(
            "eigen-residual",
            objective=discarded,
            bound=max(0.0, discarded - float(self.residuals.sum())),
            scale=self.total,
            tol=tol,
            iterations=self.iterations,
            seconds=seconds,
            note="The reconstruction error is the discarded variance.",
            claim="" if whole else "eigenvectors near these (residuals cannot tell whether a larger one was missed)",
        )


def _refuse_tiny(precision: str, cure: str = "") -> None:
    raise ValueError(
        f"X holds numbers whose squares are below {precision} precision: give small columns in another unit{cure}."
    )


def choose_solver(n: int, d: int, k: int | None) -> str:
    """The way that suits a shape; k is None where all directions are wanted."""
    less = min(n, d)
    if less <= SMALL or k is None or 5 * k > less:
        return "covariance" if d <= n else "gram"
    return "randomized"


def spectrum(X: Matrix, weight: Array, k: int, solver: str, effort: Effort, *, center: bool = True) -> Spectrum:
    """The k leading directions of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.models.embedding.spectrum import Effort, spectrum
    >>> X = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> found = spectrum(X, np.ones(4), 1, "svd", Effort(1e-6, 100, np.random.RandomState(0)))
    >>> found.values, found.vectors.T, round(found.total, 12)
    (array([2.]), array([[1., 0.]]), 2.5)
    """
    share = weight / weight.sum()
    if solver == "covariance":
        with np.errstate(over="ignore", invalid="ignore"):
            scatter, mean = inner(X, share, center=center)
        total = float(np.trace(scatter))
        if RANGE**-2 < total < RANGE**2 and np.isfinite(scatter).all():
            return Spectrum.of(exact(scatter, k), mean, total, solver)
    size = float(abs(X).max())
    if size and not 1.0 / RANGE < size < RANGE:
        found = spectrum(X / size, weight, k, solver, effort, center=center)
        return replace(found.scaled(size * size), mean=found.mean * size)
    if solver == "covariance":
        return Spectrum.of(exact(scatter, k), mean, total, solver)
    mean = weighted_mean(X, share) if center else np.zeros(X.shape[1])
    if solver in ("svd", "gram"):
        pairs, total = (_by_svd if solver == "svd" else _by_gram)(X, share, mean, k)
    else:
        total = float(share @ squared_lengths(X)) - float(mean @ mean)
        method, each = power if solver == "power" else subspace, effort.tol * total / k
        apply = product(X, share, mean)
        pairs = method(apply, X.shape[1], k, tol=each, max_iter=effort.max_iter, rng=effort.rng)
    return Spectrum.of(pairs, mean, max(total, float(pairs.values.sum())), solver)


def _by_svd(X: Matrix, share: Array, mean: Array, k: int) -> tuple[Eigenpairs, float]:
    Z = centered_rows(X.toarray() if is_sparse(X) else np.asarray(X, dtype=np.float64), share, mean)
    _, strength, right = svd(Z, full_matrices=False)
    return _checked(right[:k].T, strength[:k] ** 2, product(X, share, mean)), float(strength @ strength)


def _by_gram(X: Matrix, share: Array, mean: Array, k: int) -> tuple[Eigenpairs, float]:
    rows_by_rows, _ = outer(X, share, center=bool(mean.any()))
    pairs = exact(rows_by_rows, k)
    left = pairs.vectors * np.sqrt(share)[:, None]
    images = np.asarray(X.T @ left) - np.outer(mean, left.sum(axis=0))
    # Directions without variance have no image of their own: any that are orthogonal to the others will do.
    vectors = np.linalg.qr(images)[0]
    return _checked(vectors, np.maximum(pairs.values, 0.0), product(X, share, mean)), float(np.trace(rows_by_rows))


def _checked(vectors: Array, values: Array, apply: Callable[[Array], Array]) -> Eigenpairs:
    return Eigenpairs(values, vectors, np.linalg.norm(apply(vectors) - vectors * values, axis=0), 1)
