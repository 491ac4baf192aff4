"""Coordinate descent for penalized weighted least squares, with a duality gap as certificate.

    min_{w,b}  ½ Σ_i p_i (y_i − x_i·w − b)²  +  Σ_j ( l1_j |w_j| + ½ l2_j w_j² )     lower_j ≤ w_j ≤ upper_j

The intercept b is optional and unpenalized. With an exponent 1 < q ≤ 2 the term l1_j |w_j| becomes
(l1_j / q) |w_j|^q. The kernels live in ``native/coordinate*.hpp``; this module turns arguments into the
strict arrays they accept.

References
----------
Massias, Gramfort, Salmon, *Celer: a fast solver for the lasso with dual extrapolation*, ICML 2018.
Ndiaye, Fercoq, Gramfort, Salmon, *Gap safe screening rules for sparsity enforcing penalties*, JMLR 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

import certifit._native.coordinate as _native
from certifit._types import is_sparse
from certifit.data.gate import is_repeated
from certifit.data.sparse import canonical
from certifit.optimization.closed_form.sparse_rows import arrays_of
from certifit.representation.design.products import NARROW, by_column, in_one_piece

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = "NDArray[Any] | sparse.csc_matrix | sparse.csc_array"

__all__ = [
    "CertifiedResult",
    "CoordinateResult",
    "GramResult",
    "Options",
    "PathResult",
    "QuadraticModel",
    "QuadraticResult",
    "Separable",
    "gram_quadratic",
    "least_squares",
    "path",
    "tall_least_squares",
]

TALL = 2  # rows for each column from which all columns have a Gram matrix at once, if there are at most NARROW of them
HELD_FROM = (
    1 << 20
)  # entries of X from which the columns that count are held beside it: below, a copy of all costs no more
FEW = 256  # columns up to which all are one working set
WIDE = 4.0  # columns for each row from which it takes no longer: long columns are put together more slowly one by one


class Separable(NamedTuple):
    """h_j(w) = l1_j |w| + ½ l2_j w² for lower_j ≤ w ≤ upper_j: one number for all coefficients or one for each.

    Attributes
    ----------
    l1, l2
        Penalties.
    lower, upper
        Bounds of the coefficients; None means none.
    q
        Exponent in (1, 2]: the penalty is then (l1/q) |w|^q + ½ l2 w².
    """

    l1: ArrayLike
    l2: ArrayLike
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None
    q: float | None = None

    def native(self, d: int) -> Any:
        """As the kernels take it, for d coefficients."""

        def full(value: ArrayLike | None, default: float) -> Vector:
            given = np.ascontiguousarray(default if value is None else value, dtype=np.float64)
            return given if given.shape == (d,) else np.full(d, given)

        bounds = full(self.lower, -np.inf), full(self.upper, np.inf)
        return _native.Penalty(
            full(self.l1, 0.0), full(self.l2, 0.0), *bounds, 0.0 if self.q is None else float(self.q)
        )


class Options(NamedTuple):
    """What a solution has to be, and what it may cost.

    Attributes
    ----------
    tol
        Absolute duality gap to reach; of a quadratic model, the largest violation of the optimality conditions to accept.
    fit_intercept
        Whether b is free or 0.
    max_iter
        Most working sets to solve; of a quadratic model, most sweeps over the columns.
    n_threads
        Threads for passes over X; the result does not depend on it.
    """

    tol: float
    fit_intercept: bool = True
    max_iter: int = 1000
    n_threads: int = 1

    @property
    def native(self) -> Any:
        """As the kernels take them."""
        return _native.Options(bool(self.fit_intercept), float(self.tol), int(self.max_iter), int(self.n_threads))


@dataclass(frozen=True)
class CertifiedResult:
    """A solution of penalized weighted least squares and its gap.

    Attributes
    ----------
    coef, intercept
        The solution (w, b).
    objective
        The value at (w, b).
    gap
        Upper bound of ``objective`` minus the optimal value.
    iterations
        Working sets that were solved.
    """

    coef: Vector
    intercept: float
    objective: float
    gap: float
    iterations: int


@dataclass(frozen=True)
class CoordinateResult(CertifiedResult):
    """The same with the dual point that proves it.

    Attributes
    ----------
    theta
        Feasible dual point whose value is ``objective - gap``: a scaled f − y, orthogonal to the intercept.
    """

    theta: Vector


@dataclass(frozen=True)
class PathResult:
    """Solutions for a sequence of penalties; row k belongs to ``alphas[k]``."""

    coefs: Vector
    intercepts: Vector
    gaps: Vector
    objectives: Vector
    iterations: NDArray[np.int64]


@dataclass(frozen=True)
class QuadraticResult:
    """A prox-Newton step.

    Attributes
    ----------
    coef
        The new coefficients, ``coef + d``.
    intercept_change
        The change b of the intercept.
    scores_change
        X d + b.
    kkt
        Largest distance of 0 to the subdifferential, over the columns that were allowed to move.
    iterations
        Sweeps over the columns.
    """

    coef: Vector
    intercept_change: float
    scores_change: Vector
    kkt: float
    iterations: int


@dataclass(frozen=True)
class GramResult:
    """A solution given the Hessian: coefficients, negative gradient there, largest violation, sweeps."""

    coef: Vector
    negative_gradient: Vector
    kkt: float
    iterations: int


def least_squares(
    X: Matrix, y: ArrayLike, p: ArrayLike, penalty: Separable, options: Options, coef: ArrayLike | None = None
) -> CoordinateResult:
    """Minimize ½ Σ p_i (y_i − x_i·w − b)² + Σ_j h_j(w_j) until the duality gap is at most `options.tol`.

    Parameters
    ----------
    X
        Dense (float32 or float64; Fortran order is used as it is, of a large X in C order the columns that count are copied)
        or CSC.
    y, p
        Targets and sample weights. A row of weight 0 does not exist.
    penalty
        The h_j.
    options
        Tolerance, intercept, iterations and threads.
    coef
        Where to start.

    Returns
    -------
    CoordinateResult
        The solution, its objective and an upper bound of its suboptimality.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.asfortranarray([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> y, p = [1.0, 0.0, 1.0], np.full(3, 1 / 3)
    >>> fit = least_squares(X, y, p, Separable(0.1, 0.0), Options(1e-10, fit_intercept=False))
    >>> fit.coef.round(3), fit.gap <= 1e-10
    (array([0.85, 0.  ]), True)
    """
    d = X.shape[1]
    run = _native.held_least_squares if _held(X, penalty) else _native.least_squares
    result = run(
        X if run is _native.held_least_squares else _matrix(X, options.n_threads),
        _vector(y),
        _vector(p),
        penalty.native(d),
        np.zeros(d) if coef is None else _vector(coef),
        options.native,
    )
    return CoordinateResult(*result)


def _held(X: Matrix, penalty: Separable) -> bool:
    """Whether only the columns that count are to be copied: many that are stored one row after the other, each with an l1."""
    if not isinstance(X, np.ndarray) or X.dtype != np.float64 or X.size < HELD_FROM:
        return False
    n, d = X.shape
    if d <= FEW or d < WIDE * n:
        return False
    by_row = X.flags.c_contiguous and not X.flags.f_contiguous
    return by_row and penalty.q is None and bool((np.asarray(penalty.l1) > 0).all())


def tall_least_squares(
    X: Matrix, y: Vector, p: Vector, penalty: Separable, options: Options, coef: ArrayLike | None = None
) -> CertifiedResult | None:
    """`least_squares` by the Gram matrix of all columns, in two passes over rows or columns as they are stored.

    For X of double precision, dense or CSR, with few columns and a penalty on each of them. None where X is something else, or
    where columns are so far from zero that their sums of squares do not give the wanted gap.

    Examples
    --------
    >>> import numpy as np
    >>> X, y, p = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]), np.array([1.0, 0.0, 1.0, 0.0]), np.full(4, 0.25)
    >>> tall_least_squares(X, y, p, Separable(0.1, 0.0), Options(1e-10)).coef.round(3)
    array([0.6, 0. ])
    """
    n, d = X.shape
    if X.dtype != np.float64 or not 0 < d <= min(NARROW, n // TALL):
        return None
    if penalty.q is not None or not (np.asarray(penalty.l1) + np.asarray(penalty.l2) > 0).all():
        return None
    rows = _in_rows(X)
    if rows is None:
        return None
    result = CertifiedResult(
        *_native.tall_least_squares(
            *rows,
            _vector(y),
            p[:1] if is_repeated(p) else _vector(p),
            penalty.native(d),
            np.zeros(d) if coef is None else _vector(coef),
            options.native,
        )
    )
    return result if result.gap <= options.tol else None


def _in_rows(X: Any) -> tuple[Any, ...] | None:
    """X as the passes over its rows take it; None where they cannot read it."""
    if is_sparse(X):
        return arrays_of(X) if X.format == "csr" and X.has_canonical_format else None
    return (X,) if in_one_piece(X) else None


def path(X: Matrix, y: ArrayLike, p: ArrayLike, alphas: ArrayLike, penalty: Separable, options: Options) -> PathResult:
    """Solve for alpha times the penalty, each alpha started from the last; one row for each of them.

    Parameters
    ----------
    X, y, p, options
        As in `least_squares`.
    alphas
        Strengths; decreasing ones warm-start best.
    penalty
        The h_j of strength one; the bounds are the same for all.
    """
    d = X.shape[1]
    steps = _vector(alphas)
    coefs, intercepts, gaps, objectives, iterations = _native.path(
        _matrix(X, options.n_threads), _vector(y), _vector(p), penalty.native(d), steps, options.native
    )
    return PathResult(coefs.reshape(len(steps), d), intercepts, gaps, objectives, iterations.astype(np.int64))


class QuadraticModel:
    """Minimize −Σ r_i z_i + ½ Σ h_i z_i² + Σ_j h_j(coef_j + d_j) over d and b, where z = X d + b.

    This is the prox-Newton subproblem of a smooth loss with r_i = −p_i loss'_i and h_i = p_i loss''_i; X and the penalty are
    checked once, for many r and h.
    """

    def __init__(self, X: Matrix, penalty: Separable) -> None:
        self._d = X.shape[1]
        self._matrix = _matrix(X)
        self._penalty = penalty.native(self._d)

    def solve(
        self, r: ArrayLike, h: ArrayLike, coef: ArrayLike, options: Options, columns: ArrayLike | None = None
    ) -> QuadraticResult:
        """The new coefficients and the change of the scores.

        Parameters
        ----------
        r, h
            Negative gradient and curvature at the current scores.
        coef
            The current coefficients.
        columns
            The columns that may move; None means all.
        """
        every = np.arange(self._d, dtype=np.int64)
        chosen = every if columns is None else np.ascontiguousarray(columns, dtype=np.int64)
        result = _native.quadratic(
            self._matrix, _vector(r), _vector(h), self._penalty, _vector(coef), chosen, options.native
        )
        return QuadraticResult(*result)


def gram_quadratic(G: ArrayLike, g: ArrayLike, penalty: Separable, coef: ArrayLike, options: Options) -> GramResult:
    """Minimize −g·d + ½ d'G d + Σ_j h_j(coef_j + d_j) over d, given the symmetric matrix G.

    Parameters
    ----------
    G, g
        Hessian and negative gradient of the smooth part at `coef`. An intercept is a column with l1 = l2 = 0.
    penalty
        As in `least_squares`.
    coef
        The current coefficients.
    options
        Tolerance and number of sweeps.

    Returns
    -------
    GramResult
        The new coefficients and the negative gradient there.
    """
    negative_gradient = _vector(g)
    hessian = np.asarray(G, dtype=np.float64)
    # G is symmetric, so a Fortran-ordered one is its own transpose in C order.
    hessian = hessian.T if hessian.flags.f_contiguous and not hessian.flags.c_contiguous else hessian
    result = _native.gram_quadratic(
        np.ascontiguousarray(hessian),
        negative_gradient,
        penalty.native(len(negative_gradient)),
        _vector(coef),
        options.native,
    )
    return GramResult(*result)


def _vector(values: ArrayLike) -> Vector:
    return np.ascontiguousarray(values, dtype=np.float64)


def _matrix(X: Matrix, threads: int = 1) -> Any:
    if sparse.issparse(X):
        columns: Any = canonical(X)
        index = np.result_type(columns.indices, columns.indptr)
        indices, pointers = (part.astype(index, copy=False) for part in (columns.indices, columns.indptr))
        return _native.csc(columns.data, indices, pointers, columns.shape[0])
    return _native.dense(by_column(X, threads))
