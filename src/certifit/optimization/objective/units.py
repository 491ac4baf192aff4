"""Data of extreme magnitude or offset, brought to ordinary units before a solver sees it.

With z = (x − m)/u (u one power of two for each column) and t = y/c, minimizing over v = w·u/c is the same problem in numbers
whose squares neither overflow nor vanish, and whose products with the intercept do not cancel. Powers of two change no
digit; the means m are taken off only where a column is far from zero beside its spread, and only with an intercept. A column of
a sparse X that is as far from zero has no gaps, so that it is no less sparse without its mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

import certifit._native.products as _products
from certifit._types import Array
from certifit.certificate import Certificate
from certifit.evaluation.losses import Loss
from certifit.optimization.closed_form.magnitudes import powers_of_two
from certifit.optimization.closed_form.twice import two_product
from certifit.optimization.objective.fold import total
from certifit.optimization.objective.problem import Problem, Solution
from certifit.representation.design.design import Dense, as_design

__all__ = ["Units", "check_range", "condition", "is_extreme"]

LARGE, SMALL = 1e50, 1e-50  # beyond these, fourth powers leave the range of double precision
TINY = 1e-140  # up to its inverse products are numbers, and so is what their rounding leaves
OFFSET = 1e4  # mean over deviation of a column from which it is centered
SAMPLE = 1 << 15  # entries that are looked at; a fit that fails all the same is repeated in ordinary units


@dataclass(frozen=True)
class Units:
    """How to read a solution of the conditioned problem in the units of the user."""

    column: Array
    center: Array
    target: float
    factor: float

    def restore(self, solution: Solution, certificate: Certificate) -> tuple[Solution, Certificate]:
        """Coefficients, objective and bound in the original units; the relative gap has none."""
        with np.errstate(over="ignore", under="ignore"):
            coef = solution.coef / self.column * self.target
            intercept = self._outside(coef, solution.intercept)
            # A slope is a loss over a score.
            dual = None if solution.dual is None else solution.dual * (self.factor / self.target)
        return (
            replace(solution, coef=coef, intercept=intercept, dual=dual, extra={}),
            certificate.rescaled(self.factor),
        )

    def rounded(self, solution: Solution, dtype: Any) -> Solution:
        """The solution as the user gets it: coefficients in the precision of X, and an intercept that is rounded far from zero.

        The intercept is that of the rounded coefficients; its certificate then counts what rounding still costs.
        """
        if dtype == np.float64 and not self.center.any():
            return solution  # powers of two change no digit
        with np.errstate(over="ignore", under="ignore"):
            coef = (solution.coef / self.column * self.target).astype(dtype).astype(np.float64)
            intercept = self._inside(coef, self._outside(coef, solution.intercept))
            inside = replace(
                solution,
                coef=coef / self.target * self.column,
                intercept=np.asarray(intercept, dtype=np.float64)[()],
                objective=np.nan,
            )
        return inside if np.isfinite(inside.coef).all() else solution

    def _outside(self, coef: Array, intercept: Any) -> Any:
        """The intercept beside columns that are not centered."""
        if not self.center.any():
            return intercept * self.target
        return self._moved(coef, np.asarray(intercept) * self.target, -1)

    def _inside(self, coef: Array, intercept: Any) -> Any:
        """The reverse."""
        return self._moved(coef, intercept, 1) / self.target

    def _moved(self, coef: Array, intercept: Any, sign: int) -> Any:
        """The intercept with what the centers add to scores, as if exactly: the two cancel."""
        levels = np.asarray(intercept, dtype=np.float64)
        if not (np.isfinite(coef).all() and np.isfinite(levels).all()):
            return np.full_like(levels, np.nan)[()]
        rows = zip(np.atleast_2d(coef), np.atleast_1d(levels), strict=True)
        found = [_sum_of_products(float(level), sign * row, self.center) for row, level in rows]
        return np.asarray(found).reshape(levels.shape)[()]


def _sum_of_products(level: float, a: Array, b: Array) -> float:
    """level + Σ a·b, rounded once."""
    used = np.flatnonzero((a != 0.0) & (b != 0.0))
    a, b = a[used], b[used]
    sizes = np.abs(np.r_[a, b, a * b])
    if used.size and (sizes.min() < TINY or sizes.max() > 1.0 / TINY):  # where products and their rests are no numbers
        return float(
            Fraction(level) + sum(Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True))
        )
    return math.fsum([level, *np.concatenate(two_product(a, b)).tolist()])


@dataclass(frozen=True)
class Deviations:
    """Count, mean and sum of squared deviations of each column: a sum over rows (Chan, Golub and LeVeque 1983).

    Those of a sparse column with gaps are not numbers, and so are all sums with them.
    """

    count: int
    columns: Array
    """Means, and below them the sums, of shape (2, d)."""

    def __add__(self, other: Deviations) -> Deviations:
        n, apart = self.count + other.count, other.columns[0] - self.columns[0]
        mean = self.columns[0] + apart * (other.count / n)
        squares = self.columns[1] + other.columns[1] + apart * apart * (self.count * other.count / n)
        return Deviations(n, np.stack([mean, squares]))

    def judged(self) -> tuple[bool, list[int]]:
        """Whether the largest magnitude is surely of a size whose fourth power is a number, as zero is, and the columns whose
        mean is so large beside their spread that squares of the two cannot share a sum.
        """
        energy, far = _products.judged(self.columns, self.count, OFFSET)
        return energy == 0.0 or self.count * SMALL**2 < energy < LARGE**2, far


def check_range(coef: Array, intercept: Any) -> None:
    """Refuse a fit whose coefficients are no numbers."""
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError(
            "The best coefficients are beyond the range of double precision: columns of X are so small, or y is so large, "
            "that no finite coefficient reaches from the one to the other. Scale X or y."
        )


def is_extreme(problem: Problem) -> bool:
    """Whether a sample of the rows, or the target, is of extreme magnitude or far from zero."""
    if problem.n_scores == 1 and _outside([block.y for block in problem.blocks]):
        return True
    if not problem.fit_intercept:
        return _outside([block.design.sample(SAMPLE) for block in problem.blocks])
    ordinary, far = total(Deviations(*block.design.moments(SAMPLE)) for block in problem.blocks).judged()
    if not all(isinstance(block.design, Dense) for block in problem.blocks):
        ordinary = not _outside([block.design.sample(SAMPLE) for block in problem.blocks])
    return not ordinary or bool(far)


def _outside(parts: list[Array]) -> bool:
    if all(_surely_inside(part) for part in parts):
        return False
    largest = max(float(max(part.max(initial=0.0), -part.min(initial=0.0))) for part in parts)
    return not (largest == 0.0 or SMALL < largest < LARGE)


def _surely_inside(part: Array) -> bool:
    """Whether the sum of squares says so, in one pass."""
    if part.dtype != np.float64 or not part.flags.c_contiguous:
        return False
    return part.size * SMALL**2 < float(_products.energy(part.ravel(), 1)) < LARGE**2


def condition(problem: Problem) -> tuple[Problem, Units]:
    """The same problem in ordinary units."""
    d, center = problem.shape[1], np.zeros(problem.shape[1])
    if problem.fit_intercept:
        moments = total(Deviations(*block.design.moments()) for block in problem.blocks)
        far = moments.judged()[1]
        center[far] = moments.columns[0, far]
    largest = _largest(
        block.design.rescaled(center, np.ones(d)) if center.any() else block.design.X for block in problem.blocks
    )
    column = powers_of_two(largest)
    if problem.regularizer.ball is not None:  # a ball keeps its shape only under one unit for all columns
        column = np.full(d, column.max(initial=1.0))
    changes: dict[str, Any] = {}
    factor, target = 1.0, 1.0
    if problem.n_scores == 1:
        # A constraint that keeps coefficients off zero (a box) sets the size of the scores where y is smaller still.
        least = problem.start()[0]
        sizes = [block.y for block in problem.blocks]
        sizes += [block.design.scores(least, 0.0, exact=True) for block in problem.blocks] if least.any() else []
        unit = float(powers_of_two(_largest(part[:, None] for part in sizes))[0])
        rescaled = problem.loss.rescaled(unit)
        if rescaled is not None:
            (changes["loss"], factor), target = rescaled, unit
            changes["y"] = [block.y / unit for block in problem.blocks] if problem.in_parts else problem.y / unit
    changes["regularizer"] = problem.regularizer.in_units(
        column, target, _degree(problem.loss) if target != 1.0 else 0.0
    )
    # Double precision throughout: the units are outside the range of single precision.
    conditioned = problem.with_designs(lambda block: block.design.rescaled(center, column), **changes)
    return conditioned, Units(column, center, target, factor)


def _largest(parts: Any) -> Array:
    """The largest magnitude in each column of matrices."""
    return reduce(np.maximum, (as_design(part).largest() for part in parts))


def _degree(loss: Loss) -> float:
    """q with ℓ(c·y, c·f) = c^q·ℓ(y, f); zero for a loss that has no such q."""
    rescaled = loss.rescaled(2.0)
    return 0.0 if rescaled is None else float(np.log2(rescaled[1]))
