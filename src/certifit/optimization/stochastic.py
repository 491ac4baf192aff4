"""Stochastic gradient descent: one batch of rows, one step, and a duality gap to say how far it came.

    z = w − η_t · mean over the batch of ℓ'(y_i, f_i)·x_i,        w ← prox_{η_t R}(z),      b ← b − η_t · mean ℓ'(y_i, f_i)

Weights are visits: in an epoch a row of weight s is visited s times (a fraction by chance), so that a weight of 2 and the row
given twice are the same draw. Iterates are averaged over windows of 1, 1, 2, 4, 8, … epochs (Polyak and Juditsky 1992;
Rakhlin et al. 2012), and at the end and in the middle of each window the gap is computed: the fit stops once it is small
enough, and cuts its step when a window brought little.

Three engines share that loop: the native one for the losses of `NATIVE`, one in NumPy for every other loss and penalty, and
one in NumPy for softmax over K classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from certifit._native import stochastic as native
from certifit._types import Array, Matrix
from certifit.base import Progress
from certifit.evaluation.losses import (
    Absolute,
    EpsilonInsensitive,
    Exponential,
    Gamma,
    Hinge,
    Huber,
    Logistic,
    Loss,
    PerceptronLoss,
    Poisson,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
)
from certifit.optimization.matrix import matvec, rmatvec, weighted_gram
from certifit.optimization.problem import Problem, dual_bound
from certifit.optimization.regularizer import Regularizer

__all__ = [
    "NATIVE",
    "Descent",
    "Engine",
    "NativeEngine",
    "NumpyEngine",
    "SoftmaxEngine",
    "SoftmaxProblem",
    "Steps",
    "Stream",
    "Visits",
    "descend",
    "engine_for",
    "held_out_loss",
    "native_rows",
    "typical_curvature",
]

# Class of a loss → its name in the kernel and the parameters it takes there. Exact classes only: a subclass may redefine
# its formulas, and then runs in NumPy.
NATIVE: dict[type[Loss], Any] = {
    Squared: lambda loss: ("squared",),
    Absolute: lambda loss: ("absolute",),
    Huber: lambda loss: ("huber", loss.delta, loss.curvature),
    Quantile: lambda loss: ("quantile", loss.quantile),
    EpsilonInsensitive: lambda loss: ("epsilon_insensitive", loss.epsilon),
    Logistic: lambda loss: ("logistic",),
    Hinge: lambda loss: ("hinge", 1.0),
    PerceptronLoss: lambda loss: ("hinge", 0.0),
    SquaredHinge: lambda loss: ("squared_hinge",),
    Exponential: lambda loss: ("exponential",),
    Poisson: lambda loss: ("poisson",),
    Gamma: lambda loss: ("gamma",),
}
SCHEDULES = ("optimal", "constant", "1/t", "1/sqrt(t)")
VISITS_LIMIT = 64  # whole weights are taken as counts while an epoch has at most this many visits a row
SAMPLE = 1000  # rows that the default step size looks at
NEWTON_LIMIT = 500  # columns up to which a bound is worth a Newton system
NEWTON_SAMPLE = 20_000  # rows that the Hessian of that system is taken from
NEWTON_STEPS = 3


class Stream(Problem):
    """A problem whose best constant is found from the distinct targets: labels repeat, and a pass over them is not free."""

    def __post_init__(self) -> None:
        if self.loss.task == "binary" and bool(((self.y == 0) | (self.y == 1)).all()):
            share = float(self.p @ self.y)
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


@dataclass(frozen=True)
class SoftmaxProblem:
    """Σ p_i softmax loss(y_i, W x_i + b) + Σ_k R(w_k) over K classes; y holds class numbers."""

    X: Matrix
    y: Array
    p: Array
    n_classes: int
    regularizer: Regularizer
    fit_intercept: bool
    scale: float = field(init=False)

    def __post_init__(self) -> None:
        share = np.bincount(self.y, weights=self.p, minlength=self.n_classes)
        share = share if self.fit_intercept else np.full(self.n_classes, 1.0 / self.n_classes)
        at_constant = -float(self.p @ np.log(np.maximum(share, 1e-300))[self.y])
        object.__setattr__(self, "scale", at_constant)


@dataclass(frozen=True)
class Steps:
    """How steps are taken."""

    schedule: str = "optimal"
    size: float | None = None
    batch: int = 1
    average: bool = True
    shuffle: bool = True
    cut: float = 0.5
    """Factor of the step when a window brought little."""


class Visits:
    """The rows of one epoch after the other, in a drawn order."""

    def __init__(self, weight: Array, shuffle: bool, rng: np.random.Generator) -> None:
        n = weight.shape[0]
        if n >= 2**32:
            raise ValueError(f"X has {n} rows; stochastic gradient descent takes fewer than 2³² at a time: use partial_fit.")
        self.rng, self.shuffle = rng, shuffle
        self.state = rng.integers(0, 2**64, size=4, dtype=np.uint64)
        total = float(weight.sum())
        counts = bool((weight == np.rint(weight)).all()) and total <= VISITS_LIMIT * n
        rate = weight if counts else weight * (n / total)
        whole = np.floor(rate)
        self.fraction = None if bool((whole == rate).all()) else rate - whole
        self.whole = whole.astype(np.int64)
        self.rows = np.arange(n, dtype=np.uint32)
        if self.fraction is None and not bool((self.whole == 1).all()):
            self.rows = np.repeat(self.rows, self.whole)

    def next(self) -> Array:
        """Row numbers of the next epoch."""
        if self.fraction is None:
            order = self.rows
        else:
            extra = self.rng.random(self.fraction.shape[0]) < self.fraction
            order = np.repeat(np.arange(self.fraction.shape[0], dtype=np.uint32), self.whole + extra)
        if self.shuffle:
            native.shuffle(order, self.state)
        return order


class Engine(Protocol):
    """What the loop asks of an engine."""

    t: float
    """Batches so far."""
    scale: float
    """Objective of the best constant."""
    goal: float
    """The gap that is wanted: a bound that reaches it need not be improved."""

    def epoch(self, order: Array, schedule: tuple[float, float, float, float], average_from: int) -> tuple[float, bool]:
        """Visit the rows; the mean running loss, and whether the scores ran away."""

    def restart(self) -> None:
        """Forget the average."""

    def save(self) -> Any:
        """What `load` needs to come back here."""

    def load(self, saved: Any) -> None:
        """Come back to a saved point."""

    def point(self) -> tuple[Array, Any]:
        """The averaged iterate, or the last one when there is no average; in the precision of X."""

    def evaluate(self, w: Array, b: Any) -> tuple[float, float]:
        """Objective and lower bound, in double precision."""


def native_rows(X: Matrix) -> Any:
    """X as the kernels read it: rows one after the other."""
    if sp.issparse(X):
        X = X.tocsr()
        if X.indices.dtype != X.indptr.dtype:
            X = sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
        return native.csr(X.data, X.indices, X.indptr, X.shape[1])
    return native.dense(np.require(X, requirements=["C", "A"]))


def _widened(X: Matrix) -> Matrix:
    """The dense kernel reads eight columns at a time: a narrower matrix gets columns of zeros."""
    if sp.issparse(X) or X.shape[1] >= 8:
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
        self.w = np.zeros(self.d)
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
            return objective, self._averaged_dual_bound()
        bound = dual_bound(problem, w, f, exact=True)
        return objective, self._sharpened(objective, bound, w, f)

    def _sharpened(self, objective: float, bound: float, w: Array, f: Array) -> float:
        """The bound, and a better one where that is not good enough already and a Newton step is cheap."""
        if objective - bound <= self.goal or self.d > NEWTON_LIMIT:
            return bound
        return max(bound, newton_bound(self.problem, w, f, objective - self.goal))

    def _averaged_dual_bound(self) -> float:
        problem = self.problem
        theta = self.dual / np.maximum(self.visits, 1.0)
        if problem.fit_intercept:
            theta = _balanced(theta, problem.p)
        v = -rmatvec(problem.X, problem.p * theta, exact=True)
        scale = _largest_scale(v, *problem.regularizer.conjugate_domain())
        with np.errstate(all="ignore"):
            conjugate = float(problem.p @ problem.loss.conjugate(problem.y, scale * theta))
            bound = -conjugate - problem.regularizer.conjugate(scale * v)
        return max(bound, 0.0) if np.isfinite(bound) else 0.0


class NativeEngine(_VectorEngine):
    """The compiled kernel: built-in losses; no, L1, L2 or elastic-net penalty of one strength for all."""

    def __init__(self, problem: Problem, steps: Steps) -> None:
        super().__init__(problem, steps)
        wide = _widened(problem.X)
        self.width = wide.shape[1]
        self.w, self.w_sum = np.zeros(self.width), np.zeros(self.width)
        self.rows = native_rows(wide)
        self.loss = native.loss(*NATIVE[type(problem.loss)](problem.loss))
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
        if type(problem.loss) not in NATIVE or parts is None or problem.regularizer.constraint is not None:
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
        if sp.issparse(problem.X) or not problem.loss.smooth:
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
            return objective, dual_bound(problem, w, f, exact=True)
        if problem.fit_intercept and not curvature > 0:
            return objective, 0.0
        shift = slope / curvature if problem.fit_intercept else 0.0
        v = -(g - shift * h)[: self.d]
        scale = _largest_scale(v, *problem.regularizer.conjugate_domain())
        conjugate = native.conjugate_sum(self.y, problem.p, f, self.loss, shift, scale, self.threads)
        with np.errstate(all="ignore"):
            bound = -conjugate - problem.regularizer.conjugate(scale * v)
        return objective, self._sharpened(objective, max(bound, 0.0) if np.isfinite(bound) else 0.0, w, f)


class NumpyEngine(_VectorEngine):
    """Any loss and any penalty, by their NumPy methods: `Loss.derivative` and the prox."""

    def __init__(self, problem: Problem, steps: Steps) -> None:
        super().__init__(problem, steps)
        self.X = problem.X.tocsr() if sp.issparse(problem.X) else problem.X

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
                eta = _step_at(schedule, self.scalars[3])
                m = rows.shape[0]
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


class SoftmaxEngine:
    """K scores for each row, one softmax loss."""

    def __init__(self, problem: SoftmaxProblem, steps: Steps) -> None:
        self.problem, self.steps, self.scale = problem, steps, problem.scale
        self.X = problem.X.tocsr() if sp.issparse(problem.X) else problem.X
        K, d = problem.n_classes, problem.X.shape[1]
        self.w, self.w_sum = np.zeros((K, d)), np.zeros((K, d))
        self.b, self.b_sum = np.zeros(K), np.zeros(K)
        if problem.fit_intercept:
            self.b = Softmax().optimal_constant(problem.y, problem.p, K)
        self.averaged, self.t, self.goal = 0.0, 0.0, 0.0

    def restart(self) -> None:
        self.w_sum[:], self.b_sum[:], self.averaged = 0.0, 0.0, 0.0

    def save(self) -> Any:
        return self.w.copy(), self.b.copy(), self.w_sum.copy(), self.b_sum.copy(), self.averaged, self.t

    def load(self, saved: Any) -> None:
        self.w, self.b, self.w_sum, self.b_sum, self.averaged, self.t = saved

    def _prox(self, W: Array, eta: float) -> Array:
        return np.stack([self.problem.regularizer.prox(w, eta) for w in W])

    def epoch(self, order: Array, schedule: tuple[float, float, float, float], average_from: int) -> tuple[float, bool]:
        loss, total = Softmax(), 0.0
        with np.errstate(all="ignore"):
            for k, start in enumerate(range(0, order.shape[0], self.steps.batch)):
                rows = order[start : start + self.steps.batch]
                X, y = self.X[rows], self.problem.y[rows]
                f = np.asarray(X @ self.w.T, dtype=np.float64) + self.b
                if not bool((np.abs(f) < 1e100).all()):
                    return np.inf, True
                g = loss.derivative(y, f)
                total += float(loss.value(y, f).sum())
                self.t += 1.0
                eta, m = _step_at(schedule, self.t), rows.shape[0]
                self.w = self._prox(self.w - (eta / m) * np.asarray((X.T @ g).T, dtype=np.float64), eta)
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
        """The dual point is π − (indicator of y), moved so that every class gets its share of probability."""
        problem, regularizer = self.problem, self.problem.regularizer
        rows, p = np.arange(problem.y.shape[0]), problem.p
        f = np.asarray(problem.X @ w.T, dtype=np.float64) + b
        objective = float(p @ Softmax().value(problem.y, f)) + sum(regularizer.value(row) for row in w)
        if not np.isfinite(objective):
            return np.inf, 0.0
        q = np.asarray(Softmax().predict(f))
        if problem.fit_intercept:
            share = np.bincount(problem.y, weights=p, minlength=problem.n_classes)
            for _ in range(3):
                # q_k(1 − c_k + Σ q_j c_j) keeps each row a distribution while |c| is small.
                curvature = np.diag(p @ q) - q.T @ (p[:, None] * q)
                c = np.linalg.lstsq(curvature, p @ q - share, rcond=None)[0]
                q = q * (1.0 - c + (q @ c)[:, None])
            if not ((q >= 0).all() and np.abs(p @ q - share).max() <= 1e-12):
                return objective, 0.0
        theta = q.copy()
        theta[rows, problem.y] -= 1.0
        v = -np.asarray(problem.X.T @ (p[:, None] * theta), dtype=np.float64).T
        scale = min(_largest_scale(row, *regularizer.conjugate_domain()) for row in v)
        q = scale * theta
        q[rows, problem.y] += 1.0
        with np.errstate(all="ignore"):
            entropy = float(p @ np.where(q > 0, q * np.log(np.maximum(q, 1e-300)), 0.0).sum(axis=1))
            bound = -entropy - sum(regularizer.conjugate(scale * row) for row in v)
        return objective, max(bound, 0.0) if np.isfinite(bound) else 0.0


def engine_for(problem: Problem, steps: Steps) -> NativeEngine | NumpyEngine:
    """The fastest engine that takes the problem."""
    return NativeEngine(problem, steps) if NativeEngine.takes(problem) else NumpyEngine(problem, steps)


@dataclass(frozen=True)
class Descent:
    """How a descent went."""

    coef: Array
    intercept: Any
    objective: float
    bound: float
    epochs: int
    step: float
    """The step size of the first batch."""
    history: list[float]
    """Running loss of each epoch, each row before it was learned from."""
    validation: list[float]
    note: str
    stopped_early: bool


def descend(
    engine: Engine,
    visits: Visits,
    steps: Steps,
    curvature: tuple[float, float],
    tol: float,
    max_epochs: int,
    clock: Progress,
    held_out: Any = None,
    patience: int = 5,
) -> Descent:
    """Epochs until the relative gap is `tol`, the rows held out say stop, or `max_epochs`.

    Parameters
    ----------
    curvature : (float, float)
        How far a first step of size one overshoots on a typical row, and the strength of L2: see `typical_curvature`.
    held_out : callable, optional
        Loss of a point (w, b) on rows set aside.
    """
    steep, l2 = curvature
    schedule = _schedule(steps, steep, l2)
    first = _step_at(schedule, engine.t + 1.0)
    notes: list[str] = []
    history: list[float] = []
    validation: list[float] = []
    best: tuple[float, Array, Any] | None = None
    bound, cuts, waited, lowest, stopped = 0.0, 0, 0, np.inf, False
    goal = engine.goal = tol * engine.scale
    epoch, window = 0, 0
    while epoch < max_epochs:
        if epoch & (epoch - 1) == 0:
            engine.restart()
            window = epoch
        saved = engine.save()
        order = visits.next()
        # The first window starts at the constant model: its first half is the way there, not the neighborhood.
        skip = (order.shape[0] // steps.batch) // 2 if epoch == window == 0 else 0
        loss, diverged = engine.epoch(order, schedule, skip)
        if diverged or not loss <= 1e3 * (history[0] if history else max(engine.scale, 1e-300)) + 1e-300:
            if engine.scale > 0 or diverged:
                engine.load(saved)
                if steps.size is not None:
                    notes.append(f"Diverged in epoch {epoch + 1} with step={steps.size:g}: give a smaller step.")
                    break
                cuts += 1
                if cuts > 60:
                    notes.append("Diverged with every step size that was tried; scale the features.")
                    break
                steep *= 8.0
                schedule = _schedule(steps, steep, l2)
                continue
        history.append(loss)
        epoch += 1
        if held_out is not None:
            w, b = engine.point()
            validation.append(held_out(w, b))
            if validation[-1] < lowest - 1e-4 * max(engine.scale, 0.0):
                lowest, waited, best = validation[-1], 0, (np.nan, w, b)
            else:
                waited += 1
            clock.update(epoch, max_epochs, np.inf)
            if waited >= patience:
                stopped = True
                break
            continue
        if epoch == max_epochs or _is_checkpoint(epoch):
            w, b = engine.point()
            objective, new_bound = engine.evaluate(w, b)
            bound = max(bound, new_bound)
            before = best[0] if best is not None else engine.scale
            if best is None or objective < best[0]:
                best = (objective, w, b)
            clock.update(epoch, max_epochs, (best[0] - bound) / engine.scale if engine.scale > 0 else np.inf)
            if best[0] - bound <= goal:
                break
            # A quarter of what is missing, where a good bound says what is missing; else a share of the whole.
            missing = 0.25 * (before - bound) if bound > 0.5 * before else 0.02 * before
            if not before - objective >= missing:
                # Never below c/√epochs: a step that is too small closes little too, and would be cut for ever.
                least = 1.0 / (steep * np.sqrt(epoch)) if steps.size is None else 0.0
                schedule = (max(schedule[0] * steps.cut, min(least, schedule[0])), *schedule[1:])
                engine.restart()
    if best is None:
        w, b = engine.point()
        best = (np.nan, w, b)
    objective, w, b = best
    if not np.isfinite(objective):
        objective, bound = engine.evaluate(w, b)
    if cuts and steps.size is None:
        notes.append(f"The first step size diverged and was cut {cuts} times.")
    return Descent(w, b, objective, bound, epoch, first, history, validation, " ".join(notes), stopped)


def typical_curvature(X: Matrix, y: Array, loss: Loss | Softmax, constant: float, scale: float, intercept: bool) -> float:
    """How far a gradient step of size one overshoots on a typical row: curvature of the loss times ‖x‖²."""
    rows = slice(None, None, max(1, X.shape[0] // SAMPLE))
    part = X[rows]
    with np.errstate(all="ignore"):
        part = part.astype(np.float64)
        squares = part.multiply(part).sum(axis=1) if sp.issparse(part) else np.einsum("ij,ij->i", part, part)
        norm = float(np.mean(squares)) + float(intercept)
        if isinstance(loss, Softmax):
            bend = 0.5
        elif np.isfinite(loss.smoothness):
            bend = float(loss.smoothness)
        elif loss.smooth:
            target = np.asarray(y[rows], dtype=np.float64)
            bend = 2.0 * float(np.mean(loss.second_derivative(target, np.full(target.shape, constant))))
        else:
            # A kink: a step should move a score by about the typical loss divided by the slope.
            target = np.asarray(y[rows], dtype=np.float64)
            low, high = loss.dual_domain(target)
            slope = float(np.mean(np.maximum(-low, high)))
            bend = slope * slope / scale if scale > 0 else 1.0
    value = bend * norm
    return value if np.isfinite(value) and value > 0 else 1.0


def newton_bound(problem: Problem, w: Array, f: Array, enough: float = np.inf) -> float:
    """The dual value at the slopes that Newton steps from here would lead to; stops at a value of `enough`.

    The plain dual point ℓ'(f) is off by ‖gradient‖²/(2·l2), which is large for a weak penalty. θ = ℓ'(f) + ℓ''(f)·(Xz + z₀)
    with the Newton step (z, z₀) is better by an order. Any step gives a valid bound, so a sample of rows serves the Hessian.
    """
    X, y, p, loss, regularizer = problem.X, problem.y, problem.p, problem.loss, problem.regularizer
    parts = regularizer.elastic()
    if parts is None or regularizer.constraint is not None or not np.isfinite(f).all():
        return 0.0
    l1, l2 = parts
    domain = regularizer.conjugate_domain()
    rows = slice(None, None, max(1, X.shape[0] // NEWTON_SAMPLE))
    sample, share = X[rows], p[rows] / p[rows].sum()
    w, best = w.copy(), 0.0
    with np.errstate(all="ignore"):
        for _ in range(NEWTON_STEPS):
            theta, h = loss.derivative(y, f), loss.second_derivative(y, f)
            v = -rmatvec(X, p * theta, exact=True)
            gram = weighted_gram(sample, share * h[rows])
            bend = np.diag(gram)[1:] + l2
            # Coefficients that a proximal step leaves at zero stay out of the system.
            active = np.flatnonzero(np.abs(w * bend + (v - l2 * w)) > l1)
            sign = np.sign(w * bend + (v - l2 * w))
            w[np.setdiff1d(np.arange(w.shape[0]), active)] = 0.0
            chosen = np.concatenate([[0], active + 1]) if problem.fit_intercept else active + 1
            if chosen.shape[0] == 0:
                return best
            system = gram[np.ix_(chosen, chosen)]
            right = np.concatenate([[-float(p @ theta)], (v - l2 * w - l1 * sign)[active]])[-chosen.shape[0] :]
            system[np.diag_indices_from(system)] += np.concatenate([[0.0], l2[active]])[-chosen.shape[0] :]
            unit = 1.0 / np.sqrt(np.maximum(np.diag(system), 1e-300))
            try:
                z = unit * np.linalg.solve(unit[:, None] * system * unit + 1e-12 * np.eye(unit.shape[0]), unit * right)
            except np.linalg.LinAlgError:
                return best
            move = np.zeros(w.shape[0])
            move[active] = z[-active.shape[0] :] if active.shape[0] else 0.0
            shift = matvec(X, move, exact=True) + (z[0] if problem.fit_intercept else 0.0)
            candidate = theta + h * shift
            if problem.fit_intercept:
                candidate = candidate - h * (float(p @ candidate) / float(p @ h))
            v = -rmatvec(X, p * candidate, exact=True)
            scale = min(_largest_scale(v, *domain), _largest_scale(candidate, *loss.dual_domain(y)))
            bound = -float(p @ loss.conjugate(y, scale * candidate, start=f)) - regularizer.conjugate(scale * v)
            best = max(best, bound) if np.isfinite(bound) else best
            w, f = w + move, f + shift
            if best >= enough or not np.isfinite(f).all():
                break
    return best


def _schedule(steps: Steps, steep: float, l2: float) -> tuple[float, float, float, float]:
    """(size, offset, slope, power) with η_t = size / (offset + slope·t)^power."""
    size = 1.0 / steep if steps.size is None else steps.size
    if steps.schedule == "constant":
        return size, 0.0, 0.0, 0.0
    if steps.schedule == "1/sqrt(t)":
        return size, 0.0, 1.0, 0.5
    if steps.schedule == "1/t":
        if steps.size is not None:
            return size, 0.0, 1.0, 1.0
        # Pegasos' 1/(l2·t), started where the first step does not overshoot.
        return size, 1.0, l2 * size, 1.0
    # An average forgives larger steps, and gains from them: Xu 2011.
    return size, 1.0, l2 * size, 0.75 if steps.average else 1.0


def _step_at(schedule: tuple[float, float, float, float], t: float) -> float:
    size, offset, slope, power = schedule
    return size if power == 0.0 else float(size * (offset + slope * t) ** -power)


def _is_checkpoint(epoch: int) -> bool:
    """1, 2, 3, 4, 6, 8, 12, 16, …: the end and the middle of each window."""
    third = epoch // 3 if epoch % 3 == 0 else epoch
    return epoch & (epoch - 1) == 0 or third & (third - 1) == 0


def _balanced(theta: Array, p: Array) -> Array:
    """Σ p·θ = 0 by shrinking the heavier sign: a dual point stays in its domain, which contains zero."""
    up, down = float(p @ np.maximum(theta, 0.0)), float(p @ np.maximum(-theta, 0.0))
    if up == 0.0 or down == 0.0:
        return np.zeros_like(theta)
    return np.where(theta > 0, theta * min(1.0, down / up), theta * min(1.0, up / down))


def _largest_scale(v: Array, low: Array, high: Array) -> float:
    """Largest t in [0, 1] with low ≤ t·v ≤ high, where low ≤ 0 ≤ high."""
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.where(v > high, high / v, np.where(v < low, low / v, 1.0))
    return float(limits.min(initial=1.0))


def held_out_loss(X: Matrix, y: Array, p: Array, loss: Loss) -> Any:
    """Weighted mean loss of a point on rows set aside."""

    def value(w: Array, b: float) -> float:
        with np.errstate(all="ignore"):
            risk = float(p @ loss.value(y, matvec(X, w, exact=True) + b))
        return risk if np.isfinite(risk) else np.inf

    return value
