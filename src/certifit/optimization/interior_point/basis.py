"""Columns that are free, by an orthogonal basis of what they span.

Where nothing holds the coefficients, min over w of F(Xw) is min over z of F(Uz) for any basis U of the columns of X. Of nearly
dependent columns, what rounding leaves of the equations Xᵀθ = 0 is small beside the columns and yet may be worth a lot: the
best w is long. In a basis it is small beside what it is worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from certifit._types import Array, is_sparse
from certifit.optimization.closed_form.magnitudes import powers_of_two

__all__ = ["Basis"]

EPS, FINE = float(np.finfo(np.float64).eps), float(np.finfo(np.longdouble).eps)
APART = 1e-2  # least pivot of columns of unit length from which they are their own basis
NEAR = 1e-4  # of its squares: what a column has of them about its mean, from which that is told by a difference
FLAT = 16.0  # times rounding of its terms: what a sum of columns may leave in a row and still be zero
MOST = 2000  # columns up to which more of them than rows are solved as they are
MOST_ENTRIES = 1 << 20  # of a sparse X that is looked at as a dense one
MOST_WORK = 1e8  # rows times squares of columns up to which products are in extended precision, which takes its time


@dataclass(frozen=True)
class Basis:
    """U = (X − centre)·back; any matrix would do that is invertible on the columns, if the product were exact."""

    U: Array
    back: Array
    centre: Array
    rounding: Array
    """What each row of U may be off by, for coefficients of one."""
    whole: bool
    """Whether no direction is left out that rounding of X cannot have made."""

    @staticmethod
    def of(X: Any, intercept: bool) -> Basis | None:
        """None where the columns serve as they are: no more of them than matrices may be large, or nearly independent."""
        n, d = X.shape
        wide = d > max(n, MOST)
        if not (wide or 0 < d < n) or d + intercept < 2:
            return None
        if is_sparse(X):  # a basis has no zeros
            if n * d > MOST_ENTRIES:
                return None
            X = X.toarray()
        if not wide and _apart(X, intercept):
            return None
        size = np.abs(X).max(axis=0).astype(np.float64)
        if not (np.isfinite(size).all() and (size > 0).all()):
            return None
        size = powers_of_two(size)
        rows = X.astype(np.float64) / size
        centre = rows.mean(axis=0) if intercept else np.zeros(d)
        A = rows - centre
        norm = np.sqrt(np.einsum("ij,ij->j", A, A))
        if not (norm > 8.0 * EPS * n).all():  # a constant
            return None
        A /= norm
        if not wide and _pivot(A.T @ A) > APART:
            return None
        R = scipy.linalg.qr(A, mode="r", check_finite=False)[0][:d]
        _, S, Vt = scipy.linalg.svd(R, full_matrices=False, check_finite=False)
        clear = 8.0 * EPS * np.sqrt(n) * S[0] < S
        fine = n * d * d <= MOST_WORK
        kind, eps = (np.longdouble, FINE) if fine else (np.float64, EPS)
        exact = rows.astype(kind) - centre.astype(kind)
        terms = np.abs(rows) + np.abs(centre)
        flat = (Vt[~clear] / norm).T
        left = np.abs(exact @ flat.astype(kind)) > FLAT * eps * (terms @ np.abs(flat))
        unit = np.sqrt(n)  # so that entries are about one
        back = Vt[clear].T / S[clear] / norm[:, None] * unit
        U = (exact @ back.astype(kind)).astype(np.float64)
        return Basis(U, back / size[:, None], centre * size, 2.0 * eps * (terms @ np.abs(back)), not left.any())

    def leave(self, z: Array, b: float) -> tuple[Array, float]:
        """Coefficients and intercept of the columns themselves."""
        w = self.back @ z
        shift = w.astype(np.longdouble) @ self.centre.astype(np.longdouble)
        return w, float(b - shift)

    def doubt(self, z: Array, slope: Array) -> float:
        """What rounding of the basis may do to a bound, for the slopes of its dual point."""
        return float(np.abs(slope) @ (self.rounding @ np.abs(z)))


def _apart(X: Any, intercept: bool) -> bool:
    """Whether one product with X already says that its columns are their own basis."""
    with np.errstate(all="ignore"):
        gram = np.asarray(X.T @ X, dtype=np.float64)
        own = np.diag(gram).copy()
        if intercept:
            centre = np.full(X.shape[0], 1.0 / X.shape[0]) @ X
            gram = gram - X.shape[0] * np.multiply.outer(centre, centre)
        left = np.diag(gram)
        if X.dtype != np.float64 or not (np.isfinite(own).all() and (left > NEAR * own).all() and (own > 1e-200).all()):
            return False
        unit = 1.0 / np.sqrt(left)
        return _pivot(gram * unit * unit[:, None]) > APART


def _pivot(gram: Array) -> float:
    """The least pivot of a matrix with ones on its diagonal."""
    factor, failed = lapack.dpotrf(gram)
    return 0.0 if failed else float(np.diag(factor).min())
