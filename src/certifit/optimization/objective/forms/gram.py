"""The objective of a kernel: by the representer theorem the best function is a sum over the rows, f = Kβ + b.

    minimize over β, b    P(β, b) = Σ p_i ℓ(y_i, (Kβ)_i + b) + alpha·½ βᵀKβ,        p_i = s_i/Σs

Fenchel's dual lives on the same numbers: for every β with Σ β_i = 0 (when there is an intercept),

    D(β) = −Σ p_i ℓ*(y_i, −alpha β_i/p_i) − alpha·½ βᵀKβ  ≤  min P,

and at the optimum the two β are one. K has to be positive semidefinite for any of this. With K scores a row, β and f have the
shape (n, K).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.evaluation.losses import Loss
from certifit.evaluation.penalties import L2
from certifit.optimization.closed_form.magnitudes import power_of_two
from certifit.optimization.objective.bounds import dual_value, orthogonal_to
from certifit.optimization.objective.fold import State
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer
from certifit.representation.design.design import weighted

__all__ = ["GramProblem", "GramSolution"]

ORDINARY = (1e-30, 1e30)
NOTHING = np.zeros(0)


@dataclass(frozen=True)
class GramSolution:
    """Coefficients of the rows, intercept, the value they reach and a proven bound of the best value."""

    beta: Array
    intercept: Any
    objective: float
    bound: float
    iterations: int
    solver: str
    kind: str = "duality gap"
    note: str = ""
    factor: Any = None
    """What was factored, for another target on the same rows."""


@dataclass(frozen=True)
class GramProblem:
    """A Gram matrix and what is to be fitted on it; p sums to one and is positive."""

    K: Array
    y: Array
    p: Array
    loss: Loss
    alpha: float
    fit_intercept: bool

    @cached_property
    def plain(self) -> Problem:
        """The same targets without any column: its states know risk, slopes and curvatures of given scores."""
        empty = np.zeros((self.p.shape[0], 0))
        regularizer = Regularizer.of(L2(), self.alpha, None, 0)
        return Problem(empty, self.y, self.p, self.loss, regularizer, self.fit_intercept)

    @property
    def scale(self) -> float:
        """The objective of the best constant."""
        return self.plain.scale

    def state(self, f: Array, b: Any = 0.0) -> State:
        """What the loss says about scores f, of which b is the intercept's part."""
        K = self.plain.n_scores
        return self.plain.known(NOTHING if K == 1 else np.zeros((K, 0)), f, b)

    def value(self, beta: Array, image: Array, b: Any) -> float:
        """P at β, whose image Kβ is known."""
        return self.plain.risk(image + b) + 0.5 * self.alpha * max(float((beta * image).sum()), 0.0)

    def dual(self, state: State, beta: Array, image: Array) -> float:
        """D at β; −∞ outside of its domain. The state's scores are where conjugates are looked for."""
        with np.errstate(all="ignore"):
            theta = -self.alpha * (beta.T / self.p).T
            found = dual_value(state, [theta], np.zeros_like(state.w)) - 0.5 * self.alpha * float((beta * image).sum())
            slack = (
                float(np.sum(np.abs(beta.sum(axis=0)) * self.alpha * np.abs(state.b))) if self.fit_intercept else 0.0
            )
        return found - slack if np.isfinite(found) else -np.inf

    def balanced(self, state: State, theta: Array | None = None) -> Array:
        """The β of slopes, those of the loss by default, moved so that they sum to zero; of zero slopes where that fails."""
        if theta is None:
            found = orthogonal_to(state, np.zeros(0, dtype=np.intp))
            theta = np.zeros_like(state.theta[0]) if found is None else found[0]
        return np.asarray(-weighted(self.p, theta) / self.alpha)

    def in_units(self) -> tuple[GramProblem, float, float, float]:
        """The problem in numbers of ordinary size, with the units of K, of the scores and of the objective."""
        size = float(np.diagonal(self.K).max(initial=0.0))
        kernel = 1.0 if size == 0.0 or ORDINARY[0] < size < ORDINARY[1] else power_of_two(size)
        changes: dict[str, Any] = {"K": self.K / kernel, "alpha": self.alpha / kernel} if kernel != 1.0 else {}
        largest = float(np.abs(self.y).max(initial=0.0)) if self.y.dtype.kind == "f" else 1.0
        target, factor = 1.0, 1.0
        if largest != 0.0 and not ORDINARY[0] < largest < ORDINARY[1]:
            unit = float(np.exp2(np.clip(np.floor(np.log2(largest)), -500, 500)))  # its square is a number too
            rescaled = self.loss.rescaled(unit)
            if rescaled is not None:
                loss, factor = rescaled
                target = unit
                strength = changes.get("alpha", self.alpha) * unit * (unit / factor)
                changes |= {"loss": loss, "y": self.y / unit, "alpha": strength}
        return replace(self, **changes) if changes else self, kernel, target, factor
