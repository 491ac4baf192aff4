"""Newton's method on few columns, or on many in turn, the whole of it in one native call.

    minimize over w, b    Σ p_i ℓ(y_i, x_i·w + b) + Σ_j [l1_j |w_j| + ½ l2_j w_j²]

On small data the calls between the steps take longer than the steps. The losses that native code knows are in `KERNELS` and
`FEW_KERNELS`; what it does not end with the gap that is wanted (a Hessian that is nearly singular, slopes on the edge of the
domain) is left to smooth.py and proximal.py. The mathematics is in native/newton/newton.hpp, and for many columns in
native/newton/columns.hpp.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import certifit._native.newton as native
from certifit._types import is_sparse
from certifit.data.gate import is_repeated
from certifit.data.sparse import canonical
from certifit.evaluation.losses import Loss, Poisson
from certifit.evaluation.losses.labels.margin import HardLogistic, SquaredHinge
from certifit.optimization.objective.problem import Point, Problem, Solution
from certifit.representation.design.products import NARROW, in_one_piece

__all__ = ["KERNELS", "THIN", "in_one_call", "on_dense_columns", "on_sparse_columns"]

KERNELS: dict[type[Loss], str] = {HardLogistic: "logistic", Poisson: "poisson"}
# Many columns want a curvature at every row.
FEW_KERNELS: dict[type[Loss], str] = {**KERNELS, SquaredHinge: "squared_hinge"}
MOST_ENTRIES = 1 << 18  # of X: beyond, the calls between the steps are not what takes the time
THIN = 64  # columns up to which their Hessian costs little beside the passes over the rows
MOST_COPIED = (
    1 << 20
)  # entries of a dense X whatever its rows: of THIN columns with an l1 penalty, and of more columns, but few
CROWDED = 8  # rows for each column from which a Hessian of the columns that are used is the better way to a step
MOST_HELD = 1 << 23  # entries of a dense X with many columns: beyond, a start on part of its rows is tried first


def in_one_call(problem: Problem, start: Point, tol: float, max_iter: int, name: str) -> Solution | None:
    """The solution to the absolute gap `tol`, or None where this is not the way to it."""
    kernel, (n, d), strengths = FEW_KERNELS.get(type(problem.loss)), problem.shape, problem.regularizer.elastic()
    if kernel is None or strengths is None or not 0 < d <= NARROW:
        return None
    sparse = d <= THIN and bool((strengths[0] > 0.0).all())
    if n * d > (MOST_COPIED if sparse else MOST_ENTRIES):
        return None
    if problem.regularizer.constraint is not None or not (strengths[0] + strengths[1] > 0.0).all():
        return None  # without a penalty on every column, other proofs are needed
    rows = [(block.design.X, block.y, block.p) for block in problem.blocks]
    if not all(isinstance(X, np.ndarray) for X, _, _ in rows):
        return None
    # So few rows are put together wherever they are kept: the fit does not depend on that.
    X, y, p = rows[0] if len(rows) == 1 else (np.concatenate(part) for part in zip(*rows, strict=True))
    X = X if in_one_piece(X) else np.ascontiguousarray(X)
    options = native.Options(problem.fit_intercept, tol, problem.scale, max_iter, problem.threads)
    w, b = np.ascontiguousarray(start[0], dtype=np.float64), float(start[1])
    p = p[:1] if is_repeated(p) else p  # native code reads no other
    coef, intercept, objective, bound, iterations = native.minimize(kernel, X, y, p, *strengths, w, b, options)
    if not abs(objective - bound) <= tol:
        return None
    return Solution(coef, intercept, iterations, name, min(bound, objective), objective)  # what is above is rounding


def on_sparse_columns(problem: Problem, start: Point, tol: float, max_iter: int, name: str) -> Solution | None:
    """The same for X by columns, sparse and in one place, with an l1 penalty on every column."""
    kernel, strengths = KERNELS.get(type(problem.loss)), problem.regularizer.elastic()
    if kernel is None or not problem.in_memory or not is_sparse(problem.X) or min(problem.shape) == 0:
        return None
    if strengths is None or problem.regularizer.constraint is not None or not (strengths[0] > 0.0).all():
        return None
    columns = canonical(problem.X)
    index = np.result_type(columns.indices, columns.indptr)
    indices, pointers = (part.astype(index, copy=False) for part in (columns.indices, columns.indptr))
    X = native.csc(columns.data, indices, pointers, columns.shape[0])
    return _solved(native.minimize_columns, kernel, X, problem, start, tol, max_iter, name)


def on_dense_columns(problem: Problem, start: Point, tol: float, max_iter: int, name: str) -> Solution | None:
    """The same for a dense X of many columns: the steps hold a copy of those that are used or pulled."""
    kernel, (n, d), strengths = KERNELS.get(type(problem.loss)), problem.shape, problem.regularizer.elastic()
    if kernel is None or not problem.in_memory or is_sparse(problem.X) or d <= THIN:
        return None
    if n * d > MOST_COPIED if d <= NARROW else n >= CROWDED * d or n * d > MOST_HELD:
        return None
    if strengths is None or problem.regularizer.constraint is not None or not (strengths[0] > 0.0).all():
        return None
    X = problem.X
    if X.dtype != np.float64 or not in_one_piece(X):
        return None
    return _solved(native.minimize_packed, kernel, X, problem, start, tol, max_iter, name)


def _solved(
    run: Any, kernel: str, X: Any, problem: Problem, start: Point, tol: float, max_iter: int, name: str
) -> Solution | None:
    strengths = problem.regularizer.elastic()
    assert strengths is not None
    options = native.Options(problem.fit_intercept, tol, problem.scale, max_iter, problem.threads)
    w, b = np.ascontiguousarray(start[0], dtype=np.float64), float(start[1])
    p = problem.p[:1] if is_repeated(problem.p) else problem.p  # native code reads no other
    coef, intercept, objective, bound, iterations = run(kernel, X, problem.y, p, *strengths, w, b, options)
    if not abs(objective - bound) <= tol:
        return None
    return Solution(coef, intercept, iterations, name, min(bound, objective), objective)
