"""Least squares of few ordinary columns: one pass over X for all sums, one for the residual, and little between them.

    minimize over w, b    Σ p_i ½(y_i − x_i·w − b)² + ½ Σ_j l2_j w_j²

The same Cholesky factor, step and evidence as `least_squares`, in one native call (native/products/squares.hpp), without what a
fit of ordinary numbers does not need: units of their own, shifts, single precision, exact sums, several targets or parts.
Whatever is not ordinary is left to the general way. The rows may be sparse.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

import certifit._native.products as _products
import certifit._native.ridge as _ridge
from certifit._types import Array, is_sparse
from certifit.data.gate import is_repeated
from certifit.optimization.closed_form.factorizations import sure_contraction
from certifit.optimization.closed_form.normal_equations import EPS, LARGEST_EXACT, MIXED, TRUSTED, most_lost
from certifit.optimization.closed_form.sparse_rows import arrays_of
from certifit.representation.design.products import NARROW, in_one_piece

__all__ = ["FewColumns", "solve_few"]

FEW = 512  # columns of a dense X: beyond, matrix products that know the caches are faster


class FewColumns(NamedTuple):
    """What `ClosedForm` says, and the factor: H = diag(1/unit)·LLᵀ·diag(1/unit)."""

    coef: Array
    intercept: float
    condition: float
    residual: float
    digits: float
    objective: float
    gap: float
    mean: Array
    L: Array
    unit: Array

    def half(self) -> Array:
        """F with FᵀF = H⁻¹"""
        return np.asarray(lapack.dtrtrs(self.L.T, np.diag(self.unit), trans=1)[0])


def solve_few(X: Any, y: Any, p: Any, *, l2: Array, fit_intercept: bool, threads: int) -> FewColumns | None:
    """The closed form, or None where the problem asks for more care.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-3.0, -1.0, 1.0, 3.0])
    >>> found = solve_few(X, y, np.full(4, 0.25), l2=np.zeros(1), fit_intercept=True, threads=1)
    >>> found.coef, found.intercept
    (array([2.]), -3.0)
    """
    n, d = X.shape
    if is_repeated(p):
        p = p[:1]  # native code reads no other
    if not (_plain(y, 1) and _plain(p, 1) and 0 < d <= (NARROW if is_sparse(X) else FEW) and d < n):
        return None
    if is_sparse(X):
        arrays = arrays_of(X) if X.dtype == np.float64 and X.has_canonical_format else None
        found = None if arrays is None else _ridge.squares(*arrays, y, p, l2, fit_intercept, threads)
    elif _plain(X, 2) and in_one_piece(X) and n * d * d < MIXED:
        bearable = most_lost(n, d, l2) if n * d <= LARGEST_EXACT else math.inf
        found = _products.squares(X, y, p, l2, fit_intercept, threads, bearable)
    else:
        return None
    if found is None:
        return None
    coef, intercept, objective, gap, square, residual, moved, lost, mean, unit, factor, exact = found
    contraction, condition = sure_contraction(d, square), math.sqrt(square)
    lost = 0.0 if exact else lost
    # A step that does not land on rounding, or digits that exact sums would save, are for the general way.
    if not (contraction < 1e-3 and residual < TRUSTED and moved * contraction < EPS and lost <= most_lost(n, d, l2)):
        return None
    digits = min(-math.log10(max(moved * contraction, lost, EPS)), 15.65)
    return FewColumns(coef, intercept, condition, residual, digits, objective, gap, mean, factor, unit)


def _plain(x: Any, ndim: int) -> bool:
    """Whether this is an array of double precision, whose numbers follow each other if it is a vector."""
    return isinstance(x, np.ndarray) and x.dtype == np.float64 and x.ndim == ndim and (ndim > 1 or x.flags.c_contiguous)
