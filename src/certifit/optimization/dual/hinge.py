"""Dual coordinate descent for L2-penalized models with a piecewise linear loss: support vector machines and SVR.

    minimize over w, b    Σ p_i ℓ_i(x_i·w + b) + ½ alpha ‖w‖²

    ℓ_i(f) = slope_high_i·max(f − upper_i, 0) + slope_low_i·max(lower_i − f, 0)

One epoch visits the rows in random order and costs one pass over X, so this is the method for sparse and wide data;
for tall dense data second-order methods need far fewer passes. The mathematics is in native/dual/hinge.hpp and
native/dual/multiclass.hpp; here are the typed doors to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import certifit._native.dual as native
from certifit._types import Array, Matrix, is_sparse
from certifit.evaluation.losses.terms import TwoSidedHinge
from certifit.parameters.docstrings import takes_as

__all__ = ["DualResult", "best_intercept", "classes_of", "hinge_dual", "multiclass_dual", "row_matrix", "sides_of"]

# The intercept enters the augmented dual as a feature of this share of the mean squared row norm: larger couples all
# rows and slows the coordinates, smaller needs more multiplier steps. That of one score grows where those are what is slow.
INTERCEPT_SHARE = 0.03
MOST_MARGINS = 30.0
SHARE_OF_CLASSES = 0.1


@dataclass(frozen=True)
class DualResult:
    """A primal point and a feasible dual point; the optimum lies in [bound, objective].

    Attributes
    ----------
    coef : array of shape (d,), or (K, d) for K classes
    intercept : float, or array of shape (K,)
    theta : array of shape (n,), or (n, K)
        The slope of each loss; Σ p_i theta_i = 0 with an intercept, to rounding. For K classes, the mixture of
        classes of each row: nonnegative, of sum one.
    objective, bound : float
    iterations : int
        Epochs of dual descent, or steps of Newton's method.
    """

    coef: Array
    intercept: Any
    theta: Array
    objective: float
    bound: float
    iterations: int


def row_matrix(X: Matrix, kernels: Any = native) -> Any:
    """The rows of X as the kernels of a module see them: C-contiguous or CSR, float32 or float64."""
    if is_sparse(X):
        rows = X if X.format == "csr" else sp.csr_array(X)
        kind = np.int64 if rows.indices.dtype == np.int64 or rows.indptr.dtype == np.int64 else np.int32
        indices, indptr = rows.indices.astype(kind, copy=False), rows.indptr.astype(kind, copy=False)
        return kernels.csr(np.ascontiguousarray(rows.data), indices, indptr, rows.shape[1])
    return kernels.dense(np.ascontiguousarray(X))


def _centered(X: Matrix, p: Array, fit_intercept: bool, share: float) -> tuple[Matrix, Array | None, float]:
    """X with its mean taken off where that helps, the mean, and the size of the intercept as a feature.

    With an unpenalized intercept the shift changes nothing but the intercept, and a large common part of all rows would
    make every coordinate pull on every other. A sparse X stays as it is.
    """
    if not fit_intercept:
        return X, None, 0.0
    if is_sparse(X):
        squares = float(np.sum(np.square(X.data, dtype=np.float64)))
        return X, None, _size(share * squares / X.shape[0])
    squares = float(np.sum(np.einsum("ij,ij->i", X, X, dtype=np.float64))) / X.shape[0]
    mean = np.asarray((p / p.sum()) @ X, dtype=np.float64)
    common = float(mean @ mean)
    if common <= 0.02 * squares:
        return X, None, _size(share * squares)
    centered = X.astype(np.float64, copy=True)
    centered -= mean
    return centered, mean, _size(share * float(np.einsum("ij,ij->", centered, centered)) / X.shape[0])


def _size(square: float) -> float:
    size = float(np.sqrt(square))
    return size if np.isfinite(size) and size > 0 else 1.0


def hinge_dual(
    X: Matrix,
    terms: TwoSidedHinge,
    p: Array,
    *,
    alpha: float,
    fit_intercept: bool = True,
    curvature: float = 0.0,
    theta: Array | None = None,
    intercept: float = 0.0,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    hopeful: bool = False,
) -> DualResult:
    """Minimize Σ p_i ℓ_i(x_i·w + b) + ½ alpha ‖w‖².

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    terms : TwoSidedHinge
        Kinks and finite slopes of each loss.
    p : array of shape (n,)
        Nonnegative weights.
    alpha : float
        Strength of the penalty, > 0.
    fit_intercept : bool
    curvature : float
        With κ > 0 the loss is ½·max(f − upper, lower − f, 0)²/κ on the sides whose slope is not zero.
    theta, intercept : array of shape (n,), float
        Where to start.
    tol : float
        Absolute duality gap.
    max_iter : int
        Most epochs.
    seed : int
        Of the order in which rows are visited.
    hopeful : bool
        End as soon as the rate of the last epochs says that `max_iter` of them will not be enough.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Hinge
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0.0, 0.0, 1.0, 1.0])
    >>> result = hinge_dual(X, Hinge().hinge_terms(y), np.full(4, 0.25), alpha=0.01, tol=1e-10)
    >>> result.coef.round(4), round(result.intercept, 4)
    (array([1.]), -2.0)
    """
    n = X.shape[0]
    sides = sides_of(terms, n)
    if curvature > 0:
        sides[2:] = [np.where(side > 0, np.inf, 0.0) for side in sides[2:]]
    loss = native.Loss(*sides, np.ascontiguousarray(p, dtype=np.float64), float(curvature))
    rows, mean, constant = _centered(X, p, fit_intercept, INTERCEPT_SHARE)
    # Under a weak penalty the rows would wait for the intercept, which each of them moves by many margins.
    constant = min(constant, float(np.sqrt(MOST_MARGINS * alpha * n)))
    options = native.Options(float(alpha), constant, float(tol), int(max_iter), int(seed), bool(hopeful))
    start = np.zeros(n) if theta is None else np.clip(theta, -sides[2], sides[3])
    centre = float(intercept) if fit_intercept else 0.0
    coef, b, theta, objective, bound, epochs = native.hinge(row_matrix(rows), loss, start, centre, options)
    return DualResult(coef, b if mean is None else b - float(mean @ coef), theta, objective, bound, epochs)


@takes_as(hinge_dual)
def multiclass_dual(
    X: Matrix,
    label: Array,
    p: Array,
    delta: Array,
    *,
    alpha: float,
    fit_intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
) -> DualResult:
    """Minimize Σ p_i max_k (Δ(y_i, k) + f_ik − f_iy_i) + ½ alpha ‖W‖² with f_ik = w_k·x_i + b_k.

    Parameters
    ----------
    label : array of shape (n,)
        Class numbers 0 … K−1.
    delta : array of shape (K, K)
        Cost of class k when y is true, Δ(y, k) ≥ 0.

    Examples
    --------
    >>> import numpy as np
    >>> X, label = np.array([[0.0], [1.0], [2.0]]), np.arange(3)
    >>> result = multiclass_dual(X, label, np.full(3, 1 / 3), 1 - np.eye(3), alpha=0.01, tol=1e-8)
    >>> (X @ result.coef.T + result.intercept).argmax(axis=1)
    array([0, 1, 2])
    """
    (n, d), K = X.shape, delta.shape[0]
    rows, mean, constant = _centered(X, p, fit_intercept, SHARE_OF_CLASSES)
    options = native.Options(float(alpha), constant, float(tol), int(max_iter), int(seed))
    coef, intercept, beta, objective, bound, epochs = native.multiclass(
        row_matrix(rows),
        np.ascontiguousarray(label, dtype=np.int64),
        np.ascontiguousarray(p, dtype=np.float64),
        np.ascontiguousarray(delta, dtype=np.float64),
        options,
    )
    coef = coef.reshape(K, d)
    intercept = intercept if mean is None else intercept - coef @ mean
    return DualResult(coef, intercept, beta.reshape(n, K), objective, bound, epochs)


def best_intercept(terms: TwoSidedHinge, p: Array, scores: Array) -> float:
    """The b with the least Σ p_i ℓ_i(score_i + b); the middle where the best ones are an interval.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Hinge
    >>> best_intercept(Hinge().hinge_terms(np.array([0.0, 1.0])), np.full(2, 0.5), np.array([-3.0, 3.0]))
    0.0
    """
    loss = native.Loss(*sides_of(terms, scores.shape[0]), np.ascontiguousarray(p, dtype=np.float64), 0.0)
    return float(native.best_intercept(loss, np.ascontiguousarray(scores, dtype=np.float64)))


def classes_of(terms: TwoSidedHinge, p: Array, theta: Array, scores: Array, unit: float) -> Array:
    """The class of each row: 0 where θ is zero, 1 where it is between its limits, 2 where it is at one.

    Of θ's distance to a limit and the score's distance to the kink, in units of `unit`, the larger one decides.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Hinge
    >>> terms, theta = Hinge().hinge_terms(np.ones(3)), np.array([0.0, -0.5, -1.0])
    >>> classes_of(terms, np.ones(3), theta, np.array([2.0, 1.0, 0.0]), 1.0)
    array([0, 1, 2], dtype=int8)
    """
    loss = native.Loss(*sides_of(terms, scores.shape[0]), np.ascontiguousarray(p, dtype=np.float64), 0.0)
    vectors = (np.ascontiguousarray(v, dtype=np.float64) for v in (theta, scores))
    return np.asarray(native.classes(loss, *vectors, float(unit)))


def sides_of(terms: TwoSidedHinge, n: int) -> list[Array]:
    """The kinks and slopes of n rows, an array each."""
    given = (terms.lower, terms.upper, terms.slope_low, terms.slope_high)
    return [
        np.ascontiguousarray(side if np.shape(side) == (n,) else np.broadcast_to(side, (n,)), dtype=np.float64)
        for side in given
    ]
