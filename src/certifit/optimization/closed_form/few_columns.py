"""Least squares of few ordinary columns: one pass over X for all sums, one for the residual, and little between them.

    minimize over w, b    Σ p_i ½(y_i − x_i·w − b)² + ½ Σ_j l2_j w_j²

The same Cholesky factor, step and evidence as `least_squares`, without what a fit of ordinary numbers does not need: units of
their own, shifts, single precision, exact sums, several targets or parts. Whatever is not ordinary is left to the general way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

import certifit._native.products as _products
from certifit._types import Array
from certifit.optimization.closed_form.factorizations import sure_contraction
from certifit.optimization.closed_form.normal_equations import EPS, MIXED, TRUSTED, cholesky_condition, most_lost
from certifit.representation.design.products import NARROW, in_one_piece

__all__ = ["FewColumns", "solve_few"]

SAME = 1e-6  # second moment of a column beside the square of its mean, up to which the general way takes a closer look
RANGE = 1e-18, 1e18  # squares of ordinary numbers


@dataclass(frozen=True)
class FewColumns:
    """What `ClosedForm` says, and the factor: H = diag(1/unit)·RᵀR·diag(1/unit)."""

    coef: Array
    intercept: float
    condition: float
    residual: float
    digits: float
    objective: float
    gap: float
    mean: Array
    R: Array
    unit: Array

    def half(self) -> Array:
        """F with FᵀF = H⁻¹"""
        return np.asarray(lapack.dtrtrs(self.R, np.diag(self.unit), trans=1)[0])


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
    if not (_plain(X, 2) and _plain(y, 1) and _plain(p, 1) and in_one_piece(X)):
        return None
    n, d = X.shape
    if not (0 < d <= NARROW and d < n and n * d * d < MIXED and l2.max() < RANGE[1]):
        return None
    sums = _products.sums(X, y, p, threads)
    mean, y_mean = (sums[0, 1:-1], float(sums[0, -1])) if fit_intercept else (np.zeros(d), 0.0)
    energy = float(sums[-1, -1]) - y_mean * y_mean
    squares = sums.diagonal()[1:-1]
    with np.errstate(over="ignore", invalid="ignore"):  # looked at below
        second = squares - mean * mean
    # Written so that what is not a number fails too. A mean of y beyond its deviation would cost digits of the moments.
    if not (RANGE[0] < energy < RANGE[1] and y_mean * y_mean <= energy and RANGE[0] < second.min()
            and second.max() < RANGE[1] and (second > SAME * squares).all()):  # fmt: skip
        return None
    whole = second + l2
    unit, spread = 1.0 / np.sqrt(whole), np.sqrt(second)
    H = (sums[1:-1, 1:-1] - mean[:, None] * mean) * (unit[:, None] * unit)
    H.flat[:: d + 1] = 1.0
    R, square = cholesky_condition(H)
    contraction = sure_contraction(d, square)
    if not contraction < 1e-3:
        return None
    w = unit * lapack.dpotrs(R, unit * (sums[-1, 1:-1] - y_mean * mean))[0]
    b = y_mean - float(mean @ w) if fit_intercept else 0.0
    found = _products.residual(X, y, p, w, b, threads)
    level, left = (float(found[-2]) if fit_intercept else 0.0), float(found[-1])
    g = found[:-2] - level * mean - l2 * w
    y_norm = energy**0.5
    size = max(float(np.abs(unit * g).max()), abs(level)) / y_norm
    step = unit * lapack.dpotrs(R, unit * g)[0]
    long, change = w / unit, step / unit
    length = float(long @ long) ** 0.5
    if not length > 0.0:
        return None
    moved = float(change @ change) ** 0.5 / length
    condition, offset = square**0.5, float((np.abs(mean) / spread).max())
    lost = EPS * condition * (1.0 + offset) * (1.0 + condition * left**0.5 / length)
    # A step that does not land on rounding, or digits that exact sums would save, are for the general way.
    if not (size < TRUSTED and moved * contraction < EPS and lost <= most_lost(n, d, l2)):
        return None
    if moved > 4.0 * EPS and size > 0.0:
        w = w + step
        b = b + level - float(mean @ step) if fit_intercept else 0.0
        moved *= contraction
    return FewColumns(
        coef=w + 0.0,  # no negative zeros
        intercept=b,
        condition=condition,
        residual=size,
        digits=float(min(-np.log10(max(moved, lost, EPS)), 15.65)),
        objective=0.5 * (left + float(l2 @ (w * w))),
        gap=max(0.0, 0.5 * float(g @ step)),
        mean=mean,
        R=R,
        unit=unit,
    )


def _plain(x: Any, ndim: int) -> bool:
    """Whether this is an array of double precision, whose numbers follow each other if it is a vector."""
    return isinstance(x, np.ndarray) and x.dtype == np.float64 and x.ndim == ndim and (ndim > 1 or x.flags.c_contiguous)
