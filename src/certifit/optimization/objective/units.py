"""Data of extreme magnitude or offset, brought to ordinary units before a solver sees it.

With z = (x − m)/u (u one power of two for each column) and t = y/c, minimizing over v = w·u/c is the same problem in numbers
whose squares neither overflow nor vanish, and whose products with the intercept do not cancel. Powers of two change no
digit; the means m are taken off only where a column is far from zero beside its spread, and only with an intercept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from certifit._types import Array, is_sparse
from certifit.certificate import Certificate
from certifit.optimization.objective.problem import Problem, Solution

__all__ = ["Units", "condition"]

LARGE, SMALL = 1e50, 1e-50  # beyond these, fourth powers leave the range of double precision
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
            intercept = solution.intercept * self.target
            if self.center.any():
                intercept -= float(self.center @ coef)
            # A slope is a loss over a score.
            dual = None if solution.dual is None else solution.dual * (self.factor / self.target)
        return (
            replace(solution, coef=coef, intercept=intercept, dual=dual, extra={}),
            certificate.rescaled(self.factor),
        )


def is_extreme(problem: Problem) -> bool:
    """Whether a sample of the rows, or the target, is of extreme magnitude or far from zero."""
    X = problem.X
    values = X.data if is_sparse(X) else X[:: max(1, X.size // SAMPLE)]
    if any(_outside(part) for part in (values, problem.y)):
        return True
    return not is_sparse(X) and problem.fit_intercept and bool(_far(values).any())


def _far(values: Array) -> Array:
    """Columns whose mean is so large beside their spread that squares of the two cannot share a sum."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = values.mean(axis=0, dtype=np.float64), values.std(axis=0, dtype=np.float64)
        return np.asarray((np.abs(mean) > OFFSET * spread) & (spread > 0))


def _outside(values: Array) -> bool:
    largest = float(max(values.max(initial=0.0), -values.min(initial=0.0)))
    return not (largest == 0.0 or SMALL < largest < LARGE)


def condition(problem: Problem) -> tuple[Problem, Units]:
    """The same problem in ordinary units."""
    X, d = problem.X, problem.shape[1]
    largest = np.asarray(abs(X).max(axis=0).toarray() if is_sparse(X) else np.abs(X).max(axis=0)).ravel()
    center = np.zeros(d)
    if not is_sparse(X) and problem.fit_intercept:
        far = _far(X)
        if far.any():
            center = np.where(far, X.mean(axis=0, dtype=np.float64), 0.0)
            X = X - center
            largest = np.where(far, np.abs(X).max(axis=0), largest)
    column = _power_of_two(largest.astype(np.float64))
    if problem.regularizer.ball is not None:  # a ball keeps its shape only under one unit for all columns
        column = np.full(d, column.max(initial=1.0))
    unit = float(_power_of_two(np.array([np.abs(problem.y).max(initial=0.0)]))[0])
    rescaled = problem.loss.rescaled(unit)
    loss, factor, target = (problem.loss, 1.0, 1.0) if rescaled is None else (*rescaled, unit)
    # Double precision throughout: the units are outside the range of single precision.
    scaled = X.astype(np.float64) @ sp.diags(1.0 / column) if is_sparse(X) else X / column
    shape = np.clip(column / target, 1e-140, 1e140)
    regularizer = problem.regularizer.rescaled(shape)
    regularizer = replace(regularizer, alpha=regularizer.alpha / factor)
    conditioned = replace(
        problem, X=scaled.tocsc() if is_sparse(X) else scaled, y=problem.y / target, loss=loss, regularizer=regularizer
    )
    return conditioned, Units(column, center, target, factor)


def _power_of_two(values: Array) -> Array:
    return np.exp2(np.clip(np.floor(np.log2(np.where(values > 0, values, 1.0))), -1000, 1000))
