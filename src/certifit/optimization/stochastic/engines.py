"""Engines of stochastic gradient descent: what takes the steps, and what evaluates a point.

The native one serves the losses that name a `kernel` with no, an L1, L2 or elastic-net penalty; one in NumPy every other loss and
penalty; one in NumPy the losses of K scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import certifit._native.stochastic as native
from certifit._types import Array, Matrix, is_sparse
from certifit.data.equal_rows import CONTENT_LIMIT
from certifit.evaluation.losses import Loss
from certifit.evaluation.losses.base import kernel_form
from certifit.optimization.objective.bounds import dual_bound, largest_scale
from certifit.optimization.objective.problem import Problem
from certifit.optimization.stochastic.bounds import averaged_bound, newton_bound
from certifit.optimization.stochastic.descent import Steps, step_at
from certifit.representation.design.design import as_design

__all__ = [
    "NativeEngine",
    "NumpyEngine",
    "ScoresEngine",
    "Stream",
    "engine_for",
    "held_out_loss",
    "native_rows",
    "typical_curvature",
]

SAMPLE = 1000  # rows that the default step size looks at
NEWTON_LIMIT = 500  # columns up to which a bound is worth a Newton system
LARGE = 2_000_000  # entries of X from which a better bound waits for the fourth epoch: it costs as much as an epoch


class Stream(Problem):
    """A problem whose best constant is found from the distinct targets: labels repeat, and a pass over them is not free."""

    def __post_init__(self) -> None:
        # Targets in [0, 1] are all 0 or 1 if and only if their squares add up to as much as they do.
        # (Sums by einsum: threads that BLAS leaves spinning would take the core of the epoch that follows.)
        if self.loss.task == "binary" and float(np.einsum("i,i->", self.y, self.y)) == float(self.y.sum()):
            share = float(np.einsum("i,i->", self.p, self.y))
            small = Problem(
                np.zeros((2, 1)),
                np.array([0.0, 1.0]),
                np.array([1.0 - share, share]),
                self.loss,
                self.regularizer,
                self.fit_intercept,
            )
            object.__setattr__(self, "constant", small.constant)
            object.__setattr__(self, "scale", small.scale)
        else:
            super().__post_init__()


def native_rows(X: Matrix) -> Any:
    """X as the kernels read it: rows one after the other."""
    if is_sparse(X):
        X = X.tocsr()
        if X.indices.dtype != X.indptr.dtype:
            X = sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
        return native.csr(X.data, X.indices, X.indptr, X.shape[1])
    return native.dense(np.require(X, requirements=["C", "A"]))


def _widened(X: Matrix) -> Matrix:
    """The dense kernel reads eight columns at a time: a narrower matrix gets columns of zeros."""
    if is_sparse(X) or X.shape[1] >= 8:
        return X
    wide = np.zeros((X.shape[0], 8), dtype=X.dtype)
    wide[:, : X.shape[1]] = X
    return wide


class _VectorEngine:
    """One score for each row: iterate, average and averaged dual point."""

    def __init__(self, problem: Problem, steps: Steps) -> None:
        self.problem, self.steps, self.scale = problem, steps, problem.scale
        self.goal = 0.0
        n, self.d = problem.shape
        self.width = self.d
        self.w = problem.start()[0]
        self.w_sum = np.zeros(self.d)
        self.scalars = np.array([problem.constant if problem.fit_intercept else 0.0, 0.0, 0.0, 0.0])
        # A loss with kinks has no curvature to build a dual point from: the average of its slopes is one.
        wanted = 0 if problem.loss.smooth else n
        self.dual, self.visits = np.zeros(wanted), np.zeros(wanted)

    @property
    def t(self) -> float:
        return float(self.scalars[3])

    def restart(self) -> None:
        self.w_sum[:] = 0.0
        self.scalars[1:3] = 0.0
        self.dual[:] = 0.0
        self.visits[:] = 0.0

    def move(self, w: Array, b: float, t: float) -> None:
        """Continue from a fitted model, as if it were the last iterate after t batches."""
        self.w[: self.d] = w
        self.scalars[0], self.scalars[3] = b, t

    def save(self) -> tuple[Array, Array, Array]:
        return self.w.copy(), self.w_sum.copy(), self.scalars.copy()

    def load(self, saved: tuple[Array, Array, Array]) -> None:
        self.w[:], self.w_sum[:], self.scalars[:] = saved

    def point(self) -> tuple[Array, float]:
        k = self.scalars[2]
        w, b = (self.w_sum / k, self.scalars[1] / k) if k > 0 else (self.w, self.scalars[0])
        dtype = self.problem.X.dtype
        return w[: self.d].astype(dtype).astype(np.float64), float(b)

    def evaluate(self, w: Array, b: float) -> tuple[float, float]:
        problem = self.problem
        f = problem.scores(w, b, exact=True)
        objective = problem.risk(f) + problem.regularizer.value(w)
        if not problem.loss.smooth:
            return objective, averaged_bound(problem, self.dual / np.maximum(self.visits, 1.0))
        bound = dual_bound(problem.known(w, f, b), exact=True)
        return objective, self._sharpened(objective, bound, w, f)

    def _sharpened(self, objective: float, bound: float, w: Array, f: Array) -> float:
        """The bound, and a better one where that is not good enough already and a Newton step is cheap."""
        if objective - bound <= self.goal or self.d > NEWTON_LIMIT:
            return bound
        n = self.problem.shape[0]
        if n * self.d > LARGE and self.t * self.steps.batch < 3.5 * n:
            return bound
        return max(bound, newton_bound(self.problem, w, f, objective - self.goal))


class NativeEngine(_VectorEngine):
    """The compiled kernel: built-in losses; no, L1, L2 or elastic-net penalty of one strength for all."""

    def __init__(self, problem: Problem, steps: Steps) -> None:
        super().__init__(problem, steps)
        wide = _widened(problem.X)
        self.width = wide.shape[1]
        self.w, self.w_sum = np.zeros(self.width), np.zeros(self.width)
        self.rows = native_rows(wide)
        self.loss = native.loss(*kernel_form(problem.loss))
        parts = problem.regularizer.elastic()
        assert parts is not None
        self.l1, self.l2 = (float(part.max(initial=0.0)) for part in parts)
        self.y = np.ascontiguousarray(problem.y, dtype=np.float64)
        n = self.y.shape[0]
        # Below a million entries waking threads costs more than they save.
        self.threads = min(problem.threads, 1 + n * self.width // (1 << 20))
        self.watch = 1 if n <= 20_000 else 8  # the running loss costs a logarithm a row

    @staticmethod
    def takes(problem: Problem) -> bool:
        """Whether the kernel knows the loss and the penalty."""
        parts = problem.regularizer.elastic()
        if not kernel_form(problem.loss) or parts is None or problem.regularizer.constraint is not None:
            return False
        return all(bool((part == part[:1]).all()) for part in parts)

    def epoch(self, order: Array, schedule: tuple[float, float, float, float], average_from: int) -> tuple[float, bool]:
        plan = native.plan(
            self.loss, schedule, self.l1, self.l2, self.problem.fit_intercept, self.steps.average, self.steps.batch
        )
        total, watched, diverged = native.epoch(
            self.rows,
            self.y,
            order,
            plan,
            average_from,
            self.watch,
            self.w,
            self.w_sum,
            self.scalars,
            self.dual,
            self.visits,
        )
        finite = bool(np.isfinite(self.scalars).all() and np.isfinite(self.w).all())
        return total / max(watched, 1.0), diverged or not finite

    def evaluate(self, w: Array, b: float) -> tuple[float, float]:
        problem = self.problem
        if is_sparse(problem.X) or not problem.loss.smooth:
            return super().evaluate(w, b)
        wide = np.zeros(self.width)
        wide[: self.d] = w
        risk, slope, curvature, g, h, f = native.evaluate(
            self.rows, self.y, problem.p, self.loss, wide, b, self.threads
        )
        if not np.isfinite(risk):
            return np.inf, 0.0
        objective = risk + problem.regularizer.value(w)
        if self.l1 == 0.0 and self.l2 == 0.0:
            # Every column must be made orthogonal, which takes a Gram matrix.
            return objective, dual_bound(problem.known(w, f, b), exact=True)
        if problem.fit_intercept and not curvature > 0:
            return objective, 0.0
        shift = slope / curvature if problem.fit_intercept else 0.0
        v = -(g - shift * h)[: self.d]
        scale = largest_scale(v, *problem.regularizer.conjugate_domain())
        conjugate = native.conjugate_sum(self.y, problem.p, f, self.loss, shift, scale, self.threads)
        with np.errstate(all="ignore"):
            bound = -conjugate - problem.regularizer.conjugate(scale * v)
        return objective, self._sharpened(objective, max(bound, 0.0) if np.isfinite(bound) else 0.0, w, f)


class NumpyEngine(_VectorEngine):
    """Any loss and any penalty, by their NumPy methods: `Loss.derivative` and the prox."""

    def __init__(self, problem: Problem, steps: Steps) -> None:
        super().__init__(problem, steps)
        self.X = problem.X.tocsr() if is_sparse(problem.X) else problem.X

    def epoch(self, order: Array, schedule: tuple[float, float, float, float], average_from: int) -> tuple[float, bool]:
        problem, loss = self.problem, self.problem.loss
        total, w, b = 0.0, self.w, self.scalars[0]
        with np.errstate(all="ignore"):
            for k, start in enumerate(range(0, order.shape[0], self.steps.batch)):
                rows = order[start : start + self.steps.batch]
                X, y = self.X[rows], problem.y[rows]
                f = np.asarray(X @ w, dtype=np.float64) + b
                if not bool((np.abs(f) < 1e100).all()):
                    return np.inf, True
                g = loss.derivative(y, f)
                total += float(loss.value(y, f).sum())
                if self.dual.shape[0]:
                    np.add.at(self.dual, rows, g)
                    np.add.at(self.visits, rows, 1.0)
                self.scalars[3] += 1.0
                m = rows.shape[0]
                # A last batch with fewer rows takes a shorter step, so that every row counts the same.
                eta = step_at(schedule, self.scalars[3]) * m / min(self.steps.batch, order.shape[0])
                w = problem.regularizer.prox(w - (eta / m) * np.asarray(X.T @ g, dtype=np.float64), eta)
                if problem.fit_intercept:
                    b -= eta * float(g.sum()) / m
                if self.steps.average and k >= average_from:
                    self.w_sum += w
                    self.scalars[1] += b
                    self.scalars[2] += 1.0
        self.w[:], self.scalars[0] = w, b
        finite = bool(np.isfinite(w).all() and np.isfinite(b))
        return total / max(order.shape[0], 1), not finite


class ScoresEngine:
    """K scores for each row, which meet in one loss."""

    def __init__(self, problem: Problem, steps: Steps) -> None:
        self.problem, self.steps, self.scale = problem, steps, problem.scale
        self.X = problem.X.tocsr() if is_sparse(problem.X) else problem.X
        self.w, self.b = problem.start()
        self.w_sum, self.b_sum = np.zeros_like(self.w), np.zeros_like(self.b)
        self.averaged, self.batches, self.goal = 0.0, 0.0, 0.0

    @property
    def t(self) -> float:
        return self.batches

    def restart(self) -> None:
        self.w_sum[:], self.b_sum[:], self.averaged = 0.0, 0.0, 0.0

    def move(self, w: Array, b: Array, t: float) -> None:
        """Continue from a fitted model, as if it were the last iterate after t batches."""
        self.w, self.b, self.batches = w.astype(np.float64), b.astype(np.float64), t

    def save(self) -> Any:
        return self.w.copy(), self.b.copy(), self.w_sum.copy(), self.b_sum.copy(), self.averaged, self.batches

    def load(self, saved: Any) -> None:
        # Copies: the sums are added to in place.
        w, b, w_sum, b_sum, self.averaged, self.batches = saved
        self.w, self.b, self.w_sum, self.b_sum = w.copy(), b.copy(), w_sum.copy(), b_sum.copy()

    def epoch(self, order: Array, schedule: tuple[float, float, float, float], average_from: int) -> tuple[float, bool]:
        loss, total = self.problem.loss, 0.0
        with np.errstate(all="ignore"):
            for k, start in enumerate(range(0, order.shape[0], self.steps.batch)):
                rows = order[start : start + self.steps.batch]
                X, y = self.X[rows], self.problem.y[rows]
                f = np.asarray(X @ self.w.T, dtype=np.float64) + self.b
                if not bool((np.abs(f) < 1e100).all()):
                    return np.inf, True
                g = loss.derivative(y, f)
                total += float(loss.value(y, f).sum())
                self.batches += 1.0
                m = rows.shape[0]
                eta = step_at(schedule, self.batches) * m / min(self.steps.batch, order.shape[0])
                self.w = self.problem.regularizer.prox(
                    self.w - (eta / m) * np.asarray((X.T @ g).T, dtype=np.float64), eta
                )
                if self.problem.fit_intercept:
                    self.b = self.b - eta * g.sum(axis=0) / m
                if self.steps.average and k >= average_from:
                    self.w_sum += self.w
                    self.b_sum += self.b
                    self.averaged += 1.0
        return total / max(order.shape[0], 1), not bool(np.isfinite(self.w).all() and np.isfinite(self.b).all())

    def point(self) -> tuple[Array, Array]:
        k = self.averaged
        w, b = (self.w_sum / k, self.b_sum / k) if k > 0 else (self.w, self.b)
        return w.astype(self.problem.X.dtype).astype(np.float64), b.copy()

    def evaluate(self, w: Array, b: Array) -> tuple[float, float]:
        state = self.problem.at(w, b, exact=True)
        return state.objective, dual_bound(state, exact=True) if np.isfinite(state.objective) else 0.0


def engine_for(problem: Problem, steps: Steps) -> NativeEngine | NumpyEngine | ScoresEngine:
    """The fastest engine that takes the problem."""
    if problem.loss.coupled:
        return ScoresEngine(problem, steps)
    return NativeEngine(problem, steps) if NativeEngine.takes(problem) else NumpyEngine(problem, steps)


def typical_curvature(
    X: Matrix, y: Array, p: Array, loss: Loss, constant: float, scale: float, intercept: bool
) -> float:
    """How far a gradient step of size one overshoots on a typical row: curvature of the loss times ‖x‖²."""
    # A sample only where all rows would be felt: on small data weights must stand for repetitions exactly.
    every = max(1, X.shape[0] // SAMPLE) if X.shape[0] * X.shape[1] > CONTENT_LIMIT else 1
    rows = slice(None, None, every)
    part, share = X[rows], p[rows] / p[rows].sum()
    with np.errstate(all="ignore"):
        part = part.astype(np.float64)
        squares = part.multiply(part).sum(axis=1) if is_sparse(part) else np.einsum("ij,ij->i", part, part)
        norm = float(share @ np.asarray(squares).ravel()) + float(intercept)
        if np.isfinite(loss.smoothness):
            bend = float(loss.smoothness)
        elif loss.smooth:
            target = np.asarray(y[rows], dtype=np.float64)
            bend = 2.0 * float(share @ loss.second_derivative(target, np.full(target.shape, constant)))
        else:
            # A kink: a step should move a score by about the typical loss divided by the slope.
            target = np.asarray(y[rows], dtype=np.float64)
            low, high = loss.dual_domain(target)
            slope = float(share @ np.maximum(-low, high))
            bend = slope * slope / scale if scale > 0 else 1.0
    value = bend * norm
    return value if np.isfinite(value) and value > 0 else 1.0


def held_out_loss(X: Matrix, y: Array, p: Array, loss: Loss) -> Any:
    """Weighted mean loss of a point on rows set aside."""
    design = as_design(X)

    def value(w: Array, b: Any) -> float:
        with np.errstate(all="ignore"):
            risk = float(p @ loss.value(y, design.scores(w, b, exact=True)))
        return risk if np.isfinite(risk) else np.inf

    return value
