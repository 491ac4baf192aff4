"""The hard margin: the widest street between two classes, or a proof that there is none.

    minimize ½‖w‖²    subject to    s_i (x_i·w + b) ≥ 1 for every row

By Farkas' lemma exactly one of two things exists: a separating (w, b), or λ ≥ 0 with Σλ_i = 1, Σ λ_i s_i x_i = 0 and
Σ λ_i s_i = 0: a point that lies in the convex hulls of both classes. Cortes and Vapnik (1995), Support-vector networks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse as sp

from certifit._types import Array, Matrix, is_sparse
from certifit.certificate import Certificate
from certifit.evaluation.losses.terms import TwoSidedHinge
from certifit.optimization.dual.hinge import DualResult
from certifit.optimization.interior_point.solve import InteriorPointResult, solve_polyhedral
from certifit.representation.design.products import matvec, rmatvec

__all__ = ["NotSeparableError", "hard_certificate", "hard_margin", "least_norm", "witness"]

EXACT = 1e-9  # residual of a witness, relative to the size of the points it mixes


class NotSeparableError(ValueError):
    """No hyperplane separates the classes; `witness` proves it.

    Parameters
    ----------
    message : str
    witness : array of shape (n,)
        λ ≥ 0 of sum one with Σ λ_i s_i x_i = 0 and Σ λ_i s_i = 0 for the signs s of the classes.
    residual : float
        Largest absolute entry of these sums, relative to Σ λ_i |x_i|, in floating point.
    """

    def __init__(self, message: str, witness: Array, residual: float) -> None:
        super().__init__(message)
        self.witness, self.residual = witness, residual


@dataclass(frozen=True)
class HardMargin(DualResult):
    """The widest street: θ_i = −s_i λ_i are the multipliers, w = Σ λ_i s_i x_i."""


def hard_certificate(found: Any, tol: float, seconds: float, meaning: str) -> Certificate:
    """The evidence of a hard margin, whose gap is relative to the optimum itself."""
    note = f"Hard margin: {meaning}; the gap is relative to the optimum."
    return Certificate.of(found, found.objective, scale=found.objective, tol=tol, seconds=seconds, note=note)


def hard_margin(X: Matrix, sign: Array, *, fit_intercept: bool, tol: float, max_iter: int) -> HardMargin:
    """Minimize ½‖w‖² with all margins ≥ 1, or raise NotSeparableError.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    sign : array of shape (n,)
        −1 or 1.
    fit_intercept : bool
    tol : float
        Gap relative to the optimum.
    max_iter : int

    Examples
    --------
    >>> import numpy as np
    >>> found = hard_margin(np.array([[0.0], [1.0], [3.0]]), np.array([-1.0, -1.0, 1.0]), fit_intercept=True,
    ...                     tol=1e-9, max_iter=100)
    >>> found.coef.round(6), round(found.intercept, 6)
    (array([1.]), -2.0)
    """
    proof = witness(X, sign, fit_intercept=fit_intercept, max_iter=max_iter)
    if proof is not None:
        raise _refusal(X, sign, proof, fit_intercept)
    # The data decide the size of ½‖w‖²: a power of two that makes it of order one, undone at the end.
    size = float(max(abs(X).max(), 1e-300))
    unit = 2.0 ** np.round(np.log2(size))
    low = np.where(sign > 0, 1.0, -np.inf)
    high = np.where(sign > 0, np.inf, -1.0)
    terms = TwoSidedHinge(low, high, np.where(sign > 0, np.inf, 0.0), np.where(sign > 0, 0.0, np.inf))
    scaled = X * (1.0 / unit)
    found = least_norm(scaled, terms, l2=1.0, fit_intercept=fit_intercept, tol=tol, max_iter=max_iter)
    w, b = found.coef, found.intercept
    # Rounding may leave the tightest margin a hair below one: the smallest enlargement that meets all constraints.
    least = float((sign * (matvec(scaled, w, exact=True) + b)).min())
    if least > 0:
        w, b = w / min(least, 1.0), b / min(least, 1.0)
    factor = float(1.0 / unit)
    with np.errstate(over="ignore", under="ignore"):
        objective, bound = 0.5 * float(w @ w) * factor * factor, max(found.bound, 0.0) * factor * factor
        return HardMargin(w * factor, b, found.theta * factor * factor, objective, bound, found.iterations)


def least_norm(
    X: Matrix, terms: TwoSidedHinge, *, l2: float | Array, fit_intercept: bool, tol: float, max_iter: int
) -> InteriorPointResult:
    """Minimize Σ l2_j ½w_j² under the conditions that infinite slopes make of the terms, to a gap relative to the optimum."""
    target = tol
    found: InteriorPointResult | None = None
    for _ in range(4):
        found = solve_polyhedral(
            X, terms, np.ones(X.shape[0]), l2=l2, fit_intercept=fit_intercept, tol=target, max_iter=max_iter
        )
        if not np.isfinite(found.objective) or found.gap <= tol * found.objective:
            break
        target = 0.5 * tol * found.objective  # the gap is asked for relative to an optimum that is known only now
    assert found is not None
    if not np.isfinite(found.objective) or not np.isfinite(found.coef).all():
        raise ValueError(
            "The hard margin (alpha=0) could not be found in double precision: the classes nearly touch "
            f"({found.message}). Use a small alpha > 0."
        )
    return found


def witness(X: Matrix, sign: Array, *, fit_intercept: bool = True, max_iter: int = 200) -> Array | None:
    """λ of Farkas' lemma if the classes cannot be separated, None if they can.

    Examples
    --------
    >>> import numpy as np
    >>> witness(np.array([[0.0], [2.0], [1.0]]), np.array([-1.0, -1.0, 1.0])).round(6)
    array([0.25, 0.25, 0.5 ])
    """
    n = sign.shape[0]
    peak = np.asarray(abs(X).max(axis=0).toarray() if is_sparse(X) else np.abs(X).max(axis=0), dtype=np.float64)
    unit = 2.0 ** np.round(np.log2(np.where(peak.ravel() > 0, peak.ravel(), 1.0)))
    Z = sp.csr_array(X, dtype=np.float64) @ sp.diags_array(1.0 / unit) if is_sparse(X) else X / unit
    # Least mean hinge loss without a penalty, a linear program: zero if and only if the classes can be separated.
    low, high = np.where(sign > 0, 1.0, -np.inf), np.where(sign > 0, np.inf, -1.0)
    terms = TwoSidedHinge(low, high, (sign > 0).astype(float), (sign < 0).astype(float))
    found = solve_polyhedral(Z, terms, np.full(n, 1.0 / n), fit_intercept=fit_intercept, tol=1e-9, max_iter=max_iter)
    margin = sign * (matvec(Z, found.coef, exact=True) + found.intercept)
    if margin.min() > 0:
        return None
    candidate = np.abs(found.theta)
    if candidate.sum() > 0:
        candidate = candidate / candidate.sum()
        if _residual(Z, sign, candidate, fit_intercept) <= EXACT:
            return np.asarray(candidate)
    return _by_linear_program(Z, sign, fit_intercept)


def _by_linear_program(Z: Matrix, sign: Array, fit_intercept: bool) -> Array | None:
    """A vertex of {λ ≥ 0, Σλ = 1, Σ λ s x = 0, Σ λ s = 0} by HiGHS; None when the set is empty."""
    n = Z.shape[0]
    signed = (sp.diags_array(sign) @ Z).T if is_sparse(Z) else (Z * sign[:, None]).T
    rows = [signed, *([sign[None, :]] if fit_intercept else []), np.ones((1, n))]
    A = sp.vstack(rows, format="csr") if is_sparse(Z) else np.vstack(rows)
    target = np.zeros(A.shape[0])
    target[-1] = 1.0
    found = scipy.optimize.linprog(np.zeros(n), A_eq=A, b_eq=target, bounds=(0, None), method="highs")
    if found.x is None:
        return None
    proof = np.maximum(found.x, 0.0) / np.maximum(found.x, 0.0).sum()
    return proof if _residual(Z, sign, proof, fit_intercept) <= 1e-7 else None


def _residual(X: Matrix, sign: Array, proof: Array, fit_intercept: bool) -> float:
    """How far a witness is from exact, each column relative to the size of what is mixed."""
    size = rmatvec(abs(X), proof, exact=True)
    left = np.abs(rmatvec(X, proof * sign, exact=True)) / np.where(size > 0, size, 1.0)
    return max(float(left.max(initial=0.0)), abs(float(proof @ sign)) if fit_intercept else 0.0)


def _refusal(X: Matrix, sign: Array, proof: Array, fit_intercept: bool) -> NotSeparableError:
    residual = _residual(X, sign, proof, fit_intercept)
    rows = np.flatnonzero(proof > 0)
    return NotSeparableError(
        "alpha=0 asks for a hard margin, but no hyperplane separates the classes: a mixture of "
        f"{rows.shape[0]} rows lies in the convex hulls of both (error.witness; residual {residual:.1e}). "
        "Use alpha > 0.",
        proof,
        residual,
    )
