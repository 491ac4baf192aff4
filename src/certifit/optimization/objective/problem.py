"""The one objective, as solvers see it.

minimize over w, b    P(w, b) = Σ p_i ℓ(y_i, x_i·w + b) + R(w),        p_i = s_i / Σs

A loss of K scores has w of shape (K, d), b of shape (K,) and R(w) = Σ_k R(w_k); with one score they are (d,) and a number.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from certifit._types import Array, Matrix, is_sparse
from certifit.evaluation.losses import Loss
from certifit.evaluation.losses.base import constant_by_slopes
from certifit.evaluation.losses.terms import TwoSidedHinge
from certifit.optimization.objective.fold import Block, Part, State, finite, finite_sum, total
from certifit.optimization.objective.regularizer import Regularizer
from certifit.representation.design.design import Partitioned, as_design
from certifit.threads import one_blas_thread

__all__ = ["Point", "Problem", "Solution"]

LONG = 10_000  # rows from which BLAS sums by threads
Point = tuple[Array, Any]
"""Coefficients and intercept."""


@dataclass(frozen=True)
class Problem:
    """Data, loss and regularizer of one fit; p sums to one and is positive.

    X is a matrix or a `Design`; or it is `Partitioned`: then y and p are sequences with one array for each part.
    """

    X: Matrix
    y: Any
    p: Any
    loss: Loss
    regularizer: Regularizer
    fit_intercept: bool
    threads: int = 1
    constant: Any = field(init=False)
    constant_risk: float = field(init=False)
    scale: float = field(init=False)

    def __post_init__(self) -> None:
        zero = 0.0 if self.n_scores == 1 else np.zeros(self.n_scores)
        # Threads of BLAS would spin on after sums as short as these, and take the processors from the solver.
        with one_blas_thread() if self.shape[0] > LONG else nullcontext():
            constant = self._optimal_constant() if self.fit_intercept else zero
            # A log link with nothing but zeros wants −∞; e^−800 is zero too. What is finite is the mean of something.
            constant = -800.0 if self.n_scores == 1 and constant == -np.inf else constant
            at_constant, at_zero = self._constant_risks(constant, zero)
        object.__setattr__(self, "constant", constant)
        object.__setattr__(self, "constant_risk", at_constant)
        # Rounding of y itself is no gap: a constant target would otherwise never be certified.
        object.__setattr__(self, "scale", max(at_constant, 1e-15 * at_zero if np.isfinite(at_zero) else 0.0))

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The rows, in the blocks where they are kept; empty ones are left out."""
        if not self.in_parts:
            return (Block(as_design(self.X, self.threads), self.y, self.p, self.loss),)
        parts = zip(self.X.parts, self.y, self.p, strict=True)
        return tuple(Block(as_design(X, self.threads), y, p, self.loss) for X, y, p in parts if X.shape[0])

    @cached_property
    def _weighted(self) -> tuple[Block, ...]:
        """The same with weights that are arrays, as passes over X want them, and not one number for all rows."""
        return tuple(block._replace(p=np.ascontiguousarray(block.p)) for block in self.blocks)

    @property
    def in_parts(self) -> bool:
        """Whether the rows lie in several places, with a y and a p for each."""
        return isinstance(self.X, Partitioned)

    @cached_property
    def of_matrices(self) -> bool:
        """Whether all rows are those of matrices."""
        return all(block.design.in_memory for block in self.blocks)

    @property
    def in_memory(self) -> bool:
        """Whether X, y and p are arrays, as solvers that look at single rows or columns want them."""
        return not self.in_parts and self.of_matrices

    @cached_property
    def dense(self) -> bool:
        """Whether X is a NumPy array."""
        return self.in_memory and not is_sparse(self.X)

    @cached_property
    def n_scores(self) -> int:
        """K, the scores of each row."""
        return max(self.loss.n_scores(block.y) for block in self.blocks)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of X."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @cached_property
    def hinge_terms(self) -> TwoSidedHinge | None:
        """The kinks of a piecewise linear loss; rows in memory."""
        return self.loss.hinge_terms(self.y)

    def _optimal_constant(self) -> Any:
        if len(self.blocks) == 1:
            return self.loss.optimal_constant(self.blocks[0].y, self.blocks[0].p)
        if self.n_scores > 1:  # the shares of the classes are all that counts
            K = self.n_scores
            share = total(block.p @ (block.y if block.y.ndim == 2 else np.eye(K)[block.y]) for block in self.blocks)
            return self.loss.optimal_constant(share[None, :] / share.sum(), np.ones(1))
        with np.errstate(all="ignore"):
            return constant_by_slopes(
                lambda c: self._constant_sum(self.loss.derivative, c),
                (lambda c: self._constant_sum(self.loss.second_derivative, c)) if self.loss.smooth else None,
            )

    def _constant_sum(self, of: Callable[[Array, Array], Array], constant: float) -> float:
        """Σ p of what the loss says about a constant score."""
        return float(total(block.p @ of(block.y, np.full(block.y.shape, constant)) for block in self.blocks))

    def _constant_risks(self, constant: Any, zero: Any) -> tuple[float, float]:
        if self.n_scores == 1 and not self.in_parts:
            with np.errstate(over="ignore", invalid="ignore"):
                at_constant, at_zero = self.loss.constant_risks(self.y, self.p, constant)
            return finite(at_constant), finite(at_zero)
        return self._constant_risk(constant), self._constant_risk(zero)

    def _constant_risk(self, constant: Any) -> float:
        if self.n_scores == 1:
            return self._finite(lambda block: np.full(block.y.shape, constant))
        if any(block.y.ndim == 2 for block in self.blocks):
            return self._finite(lambda block: np.tile(constant[:, None], block.p.shape).T)
        classes = np.arange(self.n_scores)  # rows of a class have one loss: their share is all that counts
        losses = self.loss.value(classes, np.tile(constant, (self.n_scores, 1)))
        return finite_sum(np.bincount(block.y, block.p, self.n_scores) @ losses for block in self.blocks)

    def _finite(self, scores: Callable[[Block], Array]) -> float:
        return finite_sum(block.risk(scores(block)) for block in self.blocks)

    def start(self) -> Point:
        """The best constant model, moved into the constraint."""
        K, d = self.n_scores, self.shape[1]
        return self.regularizer.project(np.zeros(d if K == 1 else (K, d))), self.constant

    def at(self, w: Array, b: Any, *, exact: bool = False) -> State:
        """The objective at a point; `exact` is for single precision data."""
        return State(self, w, b, [Part.of(block, w, b, exact=exact) for block in self._weighted])

    def known(self, w: Array, f: Array, b: Any = 0.0) -> State:
        """The objective at a point whose scores are known; rows in memory."""
        return State(self, w, b, [Part(self._weighted[0], f)])

    def scores(self, w: Array, b: Any, *, exact: bool = False) -> Array:
        """f = X·w + b; rows in memory."""
        return self.blocks[0].design.scores(w, b, exact=exact)

    def risk(self, f: Array) -> float:
        """Weighted mean loss of scores, infinite where a loss overflows; rows in memory."""
        return finite_sum([self.blocks[0].risk(f)])

    def objective(self, w: Array, b: Any) -> float:
        """P(w, b), in double precision whatever the precision of X."""
        return self.at(w, b, exact=True).objective

    def centered(self, z: Any) -> Any:
        """Without what all K scores share, where that changes nothing: the optimum is there, and so are all gradients."""
        return z - z.sum(axis=0) / len(z) if self.loss.shift_invariant else z

    def join(self, w: Array, b: Any) -> Array:
        """Intercepts first, if there are any: shape (D,) or (K, D)."""
        return np.concatenate([np.asarray(b)[..., None], w], axis=-1) if self.fit_intercept else w

    def split(self, z: Array) -> Point:
        """The reverse of `join`."""
        if not self.fit_intercept:
            return z, 0.0 if z.ndim == 1 else np.zeros(z.shape[0])
        return z[..., 1:], float(z[0]) if z.ndim == 1 else z[:, 0]

    def some(self, chosen: Array) -> Problem:
        """The problem of some rows; rows in memory."""
        p = self.p[chosen]
        return replace(self, X=self.X[chosen], y=self.y[chosen], p=p / p.sum())

    def with_designs(self, matrix: Callable[[Block], Matrix], **changes: Any) -> Problem:
        """The problem with another matrix for each block of rows."""
        made = [matrix(block) for block in self.blocks]
        y, p = [block.y for block in self.blocks], [block.p for block in self.blocks]
        if not self.in_parts:
            return replace(self, X=made[0], **changes)
        return replace(self, **{"X": Partitioned(made), "y": y, "p": p, **changes})


@dataclass(frozen=True)
class Solution:
    """What a solver returns: the point, the best proven bound, and how it went."""

    coef: Array
    intercept: Any
    iterations: int
    solver: str
    bound: float = -np.inf
    objective: float = np.nan
    """The value at the point, if the solver knows it in double precision."""
    kind: str = "duality gap"
    note: str = ""
    dual: Array | None = None
    """θ, the slope of each row's loss at the dual point behind the bound, from solvers that keep one."""
    extra: dict[str, Any] = field(default_factory=dict)
