"""What the steps of solvers cost: operations and bytes at the rates of one core (docs/decisions/0013-cost-model.md).

The rates were measured on one machine; what is decided by them are ratios, which differ less between machines than the rates do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from certifit._types import is_sparse
from certifit.representation.design.products import NARROW

if TYPE_CHECKING:
    from certifit.optimization.objective.problem import Problem

__all__ = [
    "AROUND",
    "conjugate_pays",
    "direct_products",
    "epochs_before",
    "exact_is_cheap",
    "is_long",
    "is_tall",
    "iterating_pays",
    "newton_passes",
    "newton_products",
    "newton_seconds",
    "ridge_by_products",
    "ridge_products",
    "rows_pay",
    "shared_passes",
    "small_enough",
]

MULTIPLYING = 2.5e10  # operations a second in products of dense matrices: n·d² for a Gram matrix, which is symmetric
FACTORING = 1e10  # operations a second in Cholesky's factorization, d³/3
READING = 2e10  # bytes a second in passes over a dense X
SCATTERING = 5e-9  # seconds for an entry that sparse products touch, and for each of a pair of them in a Gram matrix
AROUND = 5e-5  # seconds of Python around a product with the Hessian
TOUCHING = (
    2e-9  # seconds for an entry in our own passes over sparse rows, and for each of a pair of them in a Gram matrix
)
CALL = 5e-6  # seconds around a product in a loop of native code
COPIES = (
    20  # touches of each stored entry, beside its pairs, in a sparse Gram matrix: weights, transposes, the dense result
)
PASSES = 10  # touches of each stored entry, beside its pairs, in a closed form: sums, residuals, another order of the entries
AROUND_SQUARES = 6.0  # passes over a dense X in a closed form, beside its products
HOPEFUL_PRODUCTS = 12.0  # that a factorization must be worth before conjugate gradients have a try
LARGEST_FACTOR = 3000  # rows or columns of a sparse X, whichever are fewer, up to which a closed form has a factor
SMALL = 1 << 17  # entries of X, zeros counted, up to which a dense copy costs less than the calls of a sparse one
DIGITS = 10  # iterations of LSMR to full precision, for a condition of one
TALL_ROWS, TALL_PER_COLUMN = 6000, 120  # rows from which an optimum of some of them says where the others are
TALL_COLUMNS = 64  # columns up to which the interior point of rows near a kink costs less than steps on multipliers
TALL_PASSES = 2.5e-8  # seconds for each row in the passes around it, beside six times that it is read
INTERIOR = 15  # iterations of the interior point
VISITING = 2e-8  # seconds of an epoch of dual descent for each row, beside the two times that it reads it
HOPEFUL = 0.7  # of what the other method costs: where dual descent is likely to cost no more, it has a try
FEWEST_EPOCHS, CROWDED_EPOCHS = (
    5.0,
    6.0,
)  # of dual descent to a gap of 10⁻³ of the scale: so many, and so many times the crowding
FREE_EPOCHS = 300.0  # where nearly each row has a direction of its own
FEW_ROWS = 2  # for each column: so few have
AT_WORK = 0.5  # of the rows, on the average of all epochs: others rest
NOTHING = 1e-3  # seconds of the other method below which all its digits come for nothing
WEIGHING = 3e-8  # seconds of an iteration of the interior point for each row, beside its matrices
INTERIOR_CALLS = 3e-4  # seconds of Python in such an iteration, where it is not native
MULTIPLIERS_CALLS = 1e-3  # seconds of Python in Newton's method on multipliers
STEPS = 5  # of Newton's method with Hessians: what they cost may be spent on products before
LEAST_PRODUCTS = 200  # that are never too many: other ways have more of Python around them
LONG = 1 << 22  # entries of a dense X from which an optimum of a part of its rows saves passes
EXACT = (
    1 << 13
)  # entries of X, zeros counted, up to which steps by a factor cost nothing, and their digits beyond `tol` neither
SHORT_ROWS = 128  # columns up to which it does
CONJUGATE = 10  # products with the Hessian that conjugate gradients take for a Newton step of an ordinary problem


def direct_products(problem: Problem) -> float:
    """How many products with the Hessian of one score cost as much as to form and to factor it."""
    n, d = problem.shape
    factoring = d**3 / (3.0 * FACTORING)
    if is_sparse(problem.X):
        stored = float(problem.X.nnz)
        forming, product = SCATTERING * (stored * stored / max(n, 1) + COPIES * stored), 2.0 * SCATTERING * stored
    else:
        forming, product = n * d * d / MULTIPLYING, 2.0 * 8.0 * n * d / READING
    return (forming + factoring) / (product + AROUND)


def small_enough(problem: Problem) -> bool:
    """Whether a sparse X is better made dense."""
    return is_sparse(problem.X) and problem.shape[0] * problem.shape[1] <= SMALL


def iterating_pays(n: int, d: int, stored: int, weakest: float) -> bool:
    """Whether LSMR is cheaper than a dense factorization of sparse least squares.

    The penalty is at least the share `weakest` of the curvature of each column: the condition is about its inverse root.
    """
    if not weakest > 0.0:
        return False
    iterations = DIGITS / float(np.sqrt(weakest))
    return iterations * (2.0 * SCATTERING * stored + AROUND) < _sparse_factorization(n, d, stored)


def ridge_by_products(problem: Problem, targets: int = 1) -> bool:
    """Whether ridge regression is likely to be cheaper by conjugate gradients, which stop at `tol`, than by a factorization.

    The factorization serves all targets. Few columns have all digits in two passes, and small sparse matrices are made dense.
    """
    n, d = problem.shape
    if targets > 1 or not (problem.in_memory and problem.regularizer.strictly_convex) or small_enough(problem):
        return False
    return (d > NARROW or n <= d) and ridge_products(problem) > HOPEFUL_PRODUCTS


def ridge_products(problem: Problem) -> float:
    """How many products with the Hessian of squares a factorization of ridge regression is worth."""
    n, d = problem.shape
    if not is_sparse(problem.X):
        least = float(min(n, d))
        passes = AROUND_SQUARES * n * d * 8.0 / READING
        factorization = n * d * least / MULTIPLYING + least**3 / (3.0 * FACTORING) + passes
        return factorization / (n * d * 8.0 / READING + CALL)
    stored = int(problem.X.nnz)
    factorization = _sparse_factorization(n, d, stored) if min(n, d) <= LARGEST_FACTOR else np.inf
    return factorization / (2.0 * TOUCHING * (stored + n) + CALL)


def _sparse_factorization(n: int, d: int, stored: int) -> float:
    """Seconds for the Gram matrix of the rows or of the columns, whichever are fewer, and its factor."""
    least = float(min(n, d))
    pairs = 0.5 * stored * (stored / max(n, d) + 1.0)
    return TOUCHING * (pairs + PASSES * stored) + least * least * 8.0 / READING + least**3 / (3.0 * FACTORING)


def rows_pay(n: int, d: int, l2: float, curvature: float) -> bool:
    """Whether XXᵀ of wide data costs less than products with the Hessian, of which there are the more the weaker the penalty is
    beside the mean curvature of the space of the rows.
    """
    passes = n * n * d / MULTIPLYING / (2.0 * 8.0 * n * d / READING)
    return passes <= 2.0 * CONJUGATE + 0.5 * float(np.sqrt(max(curvature, 0.0) / l2))


def epochs_before(other: str, n: int, d: int, stored: int | None, crowding: float, tol: float) -> int:
    """How many epochs of dual descent are worth a try before the other method for a piecewise linear loss; 0 for none.

    Their number follows from how much rows have in common beside what the penalty allows, `crowding` = mean ‖x‖²/(alpha·n), and
    from the gap `tol` beside the scale; few rows beside the columns have a direction each, which bounds it. Where the other
    method costs next to nothing, its digits come for nothing. `stored` counts the entries of a sparse X.
    """
    seconds = _interior_seconds(n, d) if other == "interior_point" else _multipliers_seconds(n, d)
    reading = 8.0 * n * d / READING if stored is None else 2.0 * TOUCHING * stored
    affordable = seconds / (AT_WORK * (reading + VISITING * n))
    likely = FEWEST_EPOCHS + CROWDED_EPOCHS * crowding
    if n <= FEW_ROWS * d:
        likely = min(likely, FREE_EPOCHS)
    likely *= float(np.cbrt(1e-3 / max(tol, 1e-15)))
    return int(affordable) if seconds >= NOTHING and likely <= HOPEFUL * affordable else 0


def _interior_seconds(n: int, d: int) -> float:
    """The interior point: each iteration is a matrix of the rows or of the columns, whichever are fewer, its factor, and passes
    over the rows; in Python where there are many columns.
    """
    if is_tall(n, d):  # a sample, and as many rows near a kink, half of the iterations each
        some = min(float(n), max(TALL_ROWS / 3.0, float(np.cbrt((2.5 * n) ** 2 * d))))
        return INTERIOR * some * (WEIGHING + d * d / MULTIPLYING) + n * (TALL_PASSES + 6.0 * 8.0 * d / READING)
    least = float(min(n, d))
    matrices = n * d * least / MULTIPLYING + least**3 / (3.0 * FACTORING)
    return INTERIOR * (matrices + WEIGHING * n + (INTERIOR_CALLS if d > NARROW else 0.0))


def _multipliers_seconds(n: int, d: int) -> float:
    """Newton's method on multipliers: a Hessian of a sample now and then, and passes over rows that are mostly merged."""
    return MULTIPLIERS_CALLS + n * (6.0 * WEIGHING + 8.0 * 8.0 * d / READING)


def newton_products(problem: Problem) -> float:
    """How many products with the Hessian of one score, in native code, are worth as much as Newton's method with Hessians;
    without end where none is to be formed.
    """
    n, d = problem.shape
    if is_sparse(problem.X):
        if d > LARGEST_FACTOR:
            return np.inf
        stored = int(problem.X.nnz)
        hessian = (
            TOUCHING * stored * (0.5 * (stored / n + 1.0) + PASSES) + d * d * 8.0 / READING + d**3 / (3.0 * FACTORING)
        )
        product = 2.0 * TOUCHING * (stored + n)
    else:
        least = float(min(n, d))
        hessian = n * d * least / MULTIPLYING + least**3 / (3.0 * FACTORING)
        product = 2.0 * 8.0 * n * d / READING
    return max(LEAST_PRODUCTS, STEPS * hessian / (product + CALL))


def is_tall(n: int, d: int) -> bool:
    """Whether a piecewise linear loss is likely to be cheapest by the interior point of the rows near a kink."""
    return n >= max(TALL_ROWS, TALL_PER_COLUMN * d) and d <= TALL_COLUMNS


def exact_is_cheap(n: int, d: int) -> bool:
    """Whether X is so small that exact steps are better: fits of weights and of repeated rows then agree in all digits."""
    return n * d <= EXACT


def is_long(n: int, d: int) -> bool:
    """Whether a dense X has so many short rows that the optimum of a part of them saves more passes than it costs."""
    return n * d > LONG and d <= SHORT_ROWS


def conjugate_pays(problem: Problem) -> bool:
    """Whether conjugate gradients are likely to be the cheaper way to a Newton step."""
    return direct_products(problem) > CONJUGATE


def newton_passes(n: int, d: int, K: int) -> float:
    """What a Newton step of K scores costs, in passes for a gradient (4·n·D·K operations, D = d + 1): the Hessian of n·(KD)²
    operations, its factors of (KD)³/3, and proofs and searches of a few passes.
    """
    size = K * (d + 1)
    return 8.0 + size / 4.0 + size**2 / (12.0 * n)


def newton_seconds(n: int, d: int, K: int) -> float:
    """The same in seconds."""
    return newton_passes(n, d, K) * 4.0 * n * (d + 1) * K / MULTIPLYING


def shared_passes(n: int, d: int, K: int, factors: int) -> float:
    """What the Hessian that K constant scores share costs, in the same passes: one Gram matrix and some factors."""
    return d / (4.0 * K) + factors * d**2 / (12.0 * n * K)
