"""The objective at a point: a sum over blocks of rows.

    P(w, b) = Σ_blocks Σ_i p_i ℓ(y_i, x_i·w + b) + R(w)

What belongs to a row stays in its block: scores f, slopes θ = ℓ', curvatures ℓ'', changes of the scores along a step.
What leaves a block can be added: a `Part` is made by `Part.of(block, w, b)`, and its risk and its `Slope` have `+`. Solvers
see a `State` (the point and its parts) and a `Step` (from a state along a direction), and never a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from certifit._types import Array
from certifit.evaluation.losses import Loss
from certifit.evaluation.losses.base import Fused
from certifit.representation.design.design import Design, weighted

if TYPE_CHECKING:
    from certifit.optimization.objective.problem import Problem

__all__ = ["Block", "Part", "Slope", "State", "Step", "level_step"]


class Block(NamedTuple):
    """Rows that are kept in one place."""

    design: Design
    y: Array
    p: Array
    loss: Loss

    def risk(self, f: Array) -> float:
        """Σ p ℓ(y, f)."""
        return self.loss.risk(self.y, self.p, f)

    def bend(self, h: Any) -> Any:
        """Σ p ℓ'': one number, or K × K of them."""
        return float(self.p @ h) if isinstance(h, np.ndarray) else h.mean(self.p)


@dataclass(frozen=True)
class Slope:
    """Σ p θ and Σ p θ x: the gradient of the risk, when θ are the slopes of the loss."""

    level: Any
    columns: Array

    @staticmethod
    def of(block: Block, theta: Array, *, exact: bool = False) -> Slope:
        """Of the rows of one block."""
        return Slope(block.p @ theta, block.design.pull(weighted(block.p, theta), exact=exact))

    def __add__(self, other: Slope) -> Slope:
        return Slope(self.level + other.level, self.columns + other.columns)


class Part:
    """The objective at a point on the rows of one block."""

    def __init__(self, block: Block, f: Array, fused: Fused | None = None) -> None:
        self.block, self.f, self.fused = block, f, fused

    @staticmethod
    def of(block: Block, w: Array, b: Any, *, exact: bool = False) -> Part:
        """One pass over the rows, which tells everything at once where the loss has a native pass."""
        if block.design.thin if not block.loss.coupled else block.design.one_piece:
            fused = block.loss.fused(block.design.X, block.y, block.p, w, b, block.design.threads)
            if fused is not None:
                return Part(block, fused.f, fused)
        return Part(block, block.design.scores(w, b, exact=exact))

    @cached_property
    def risk(self) -> float:
        """Σ p ℓ."""
        known = None if self.fused is None else self.fused.risk
        return self.block.risk(self.f) if known is None else known

    @cached_property
    def slope(self) -> Slope:
        """Σ p ℓ' and Σ p ℓ' x."""
        if self.fused is None:
            return Slope.of(self.block, self.theta)
        return Slope(self.fused.level, self.fused.columns)

    @cached_property
    def _slopes(self) -> tuple[Array, Any]:
        return self.block.loss.slopes(self.block.y, self.f)

    @cached_property
    def theta(self) -> Array:
        """ℓ' of each row."""
        return self._slopes[0] if self.fused is None else self.fused.theta()

    @property
    def h(self) -> Any:
        """ℓ'' of each row, a factor of changes of the scores."""
        return self._slopes[1] if self.fused is None else self.fused.h


class State:
    """A point (w, b) and what each block knows about it; everything is computed when it is asked for."""

    def __init__(self, problem: Problem, w: Array, b: Any, parts: Sequence[Part], risk: float | None = None) -> None:
        self.problem, self.w, self.b, self.parts = problem, w, b, parts
        if risk is not None:
            self.risk = risk

    @cached_property
    def risk(self) -> float:
        """Mean loss; infinite where a loss overflows."""
        return finite_sum(part.risk for part in self.parts)

    @cached_property
    def objective(self) -> float:
        """P(w, b)."""
        return self.risk + self.problem.regularizer.value(self.w)

    @cached_property
    def slope(self) -> Slope:
        """The gradient of the risk."""
        return total(part.slope for part in self.parts)

    @property
    def theta(self) -> list[Array]:
        """Slopes of the loss."""
        return [part.theta for part in self.parts]

    @property
    def h(self) -> list[Any]:
        """Curvatures of the loss."""
        return [part.h for part in self.parts]

    def is_finite(self) -> bool:
        """Whether all scores are."""
        return all(bool(np.isfinite(part.f).all()) for part in self.parts)

    def pulled(self, theta: list[Array], *, exact: bool = False) -> Slope:
        """Σ p θ and Σ p θ x of any slopes."""
        return total(Slope.of(part.block, t, exact=exact) for part, t in zip(self.parts, theta, strict=True))

    def bend(self, h: list[Any] | None = None) -> Any:
        """Σ p ℓ'': one number, or K × K of them."""
        h = self.h if h is None else h
        return total(part.block.bend(c) for part, c in zip(self.parts, h, strict=True))

    def hessian(
        self, h: list[Any] | None = None, designs: Sequence[Design] | None = None, *, single: bool = False
    ) -> Array:
        """Hessian of the risk by (b, w) of each score, all columns or those of the given designs."""
        h = self.h if h is None else h
        designs = [part.block.design for part in self.parts] if designs is None else designs
        ones = self.problem.fit_intercept
        return total(
            design.hessian(part.block.p, c, ones=ones, single=single)
            for part, c, design in zip(self.parts, h, designs, strict=True)
        )

    def curved(self, h: list[Any], w: Array, b: Any) -> tuple[list[Array], Slope]:
        """The change of the scores along (w, b), and the product of the Hessian of the risk with (w, b)."""
        found = [part.block.design.curved(part.block.p, c, w, b) for part, c in zip(self.parts, h, strict=True)]
        return [z for z, _, _ in found], total(Slope(level, columns) for _, level, columns in found)

    def refitted(self) -> State:
        """The same coefficients with the intercept that makes Σ p ℓ' zero; a few Newton steps."""
        state, problem = self, self.problem
        level = total(part.block.p @ part.theta for part in self.parts)
        for _ in range(20):
            step = -level_step(state.bend(), level)
            if not np.isfinite(step).all() or (np.abs(step) <= 1e-12 * (1.0 + np.abs(state.b))).all():
                break
            trial = State(problem, state.w, state.b + step, [Part(part.block, part.f + step) for part in state.parts])
            new = total(part.block.p @ part.theta for part in trial.parts)
            if not np.abs(new).max() < np.abs(level).max():
                break
            state, level = trial, new
        return state


class Step:
    """From a state along a direction: values without a pass over X."""

    def __init__(self, state: State, dw: Array, db: Any, moved: list[Array] | None = None) -> None:
        self.state, self.dw, self.db = state, dw, db
        self.moved = [part.block.design.scores(dw, db) for part in state.parts] if moved is None else moved
        self._trial: tuple[float, list[Array]] = (0.0, [part.f for part in state.parts])
        self._risk = np.nan

    def scores(self, t: float) -> list[Array]:
        """Scores after a share t of the step; the last ones are kept."""
        if self._trial[0] != t:
            f = [
                part.f + t * z if t != 1.0 else part.f + z for part, z in zip(self.state.parts, self.moved, strict=True)
            ]
            self._trial = (t, f)
        return self._trial[1]

    def search(self, promised: float) -> tuple[float, float]:
        """Halve the step until P falls by a share of what is promised; the share, 0 if it never does, and P there."""
        state, step = self.state, 1.0
        objective, value = state.objective, state.problem.regularizer.value
        # Rounding may spoil a model until it promises a rise, or no number: neither excuses one.
        promised = promised if promised < 0 else 0.0
        for _ in range(60):
            scores = self.scores(step)
            self._risk = finite_sum(part.block.risk(f) for part, f in zip(state.parts, scores, strict=True))
            reached = self._risk + value(state.w + step * self.dw)
            # Near the optimum the promise is below rounding: accept what does not rise.
            level = abs(promised) <= 1e-13 * max(abs(objective), 1e-300) and reached <= objective * (1 + 1e-15)
            if reached <= objective + 1e-4 * step * promised or level:
                return step, reached
            step *= 0.5
        return 0.0, objective

    def ahead(self) -> State:
        """The point at the end of the whole step."""
        parts = [Part(part.block, f) for part, f in zip(self.state.parts, self.scores(1.0), strict=True)]
        return State(self.state.problem, self.state.w + self.dw, self.state.b + self.db, parts)

    def reach(self, t: float) -> State:
        """The point after the share t of the step that `search` found.

        A loss of K scores with a native pass is evaluated anew, its gradient with its scores; another keeps its scores.
        """
        state = self.state
        w, b = state.w + t * self.dw, state.problem.centered(state.b + t * self.db)
        if any(part.fused is not None and part.block.loss.coupled for part in state.parts):
            return state.problem.at(w, b)
        parts = [Part(part.block, f) for part, f in zip(state.parts, self.scores(t), strict=True)]
        return State(state.problem, w, b, parts, self._risk)

    def dual(self, h: list[Any]) -> list[Array]:
        """θ + h·(change of the scores): slopes at the end of the step, to second order."""
        return [t + c * z for t, c, z in zip(self.state.theta, h, self.moved, strict=True)]


def level_step(bend: Any, level: Any) -> Any:
    """bend⁻¹·level; a direction without curvature (one number for all scores) stays where it is."""
    if np.ndim(bend) == 0:
        return np.divide(level, bend) if bend > 0 else np.float64(np.nan)
    K = bend.shape[0]
    step = np.linalg.lstsq(bend + 1.0 / K**2, level, rcond=None)[0] if np.isfinite(bend).all() else np.full(K, np.nan)
    return step - step.mean()


def total(parts: Any) -> Any:
    """The sum of what the blocks give."""
    return reduce(add, parts)


def finite_sum(parts: Any) -> float:
    """A sum that is infinite where anything overflowed."""
    with np.errstate(over="ignore", invalid="ignore"):
        return finite(float(total(parts)))


def finite(value: float) -> float:
    """The value, or infinity where something overflowed on the way to it."""
    return value if math.isfinite(value) else math.inf
