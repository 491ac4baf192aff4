"""What the models fitted by stochastic gradient descent share: parameters, one descent, one pass of `partial_fit`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from certifit._types import Array, Matrix, is_sparse
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.data.equal_rows import content_order
from certifit.data.sparse import canonical
from certifit.evaluation.losses import Loss, Softmax, resolve_loss
from certifit.evaluation.penalties import L1, Penalty, resolve_constraint, resolve_penalty
from certifit.evaluation.splits.folds import content_folds
from certifit.models.linear.parameters import CONSTRAINT, LOSS, PENALTY
from certifit.optimization.objective.forms.halves import halves, in_halves, whole
from certifit.optimization.objective.problem import Problem, Solution
from certifit.optimization.objective.regularizer import Regularizer
from certifit.optimization.objective.trust import admitted
from certifit.optimization.objective.units import condition, is_extreme
from certifit.optimization.stochastic.descent import SCHEDULES, Descent, Steps, Visits, descend, step_schedule
from certifit.optimization.stochastic.engines import (
    Stream,
    engine_for,
    held_out_loss,
    typical_curvature,
)
from certifit.optimization.stochastic.specks import without_specks
from certifit.parameters.common import ALPHA, FIT_INTERCEPT, L1_RATIO, MAX_EPOCHS, SHUFFLE, TOL, VALIDATION_FRACTION
from certifit.parameters.declared import Declared, Fitted, Parameter, check_parameters
from certifit.parameters.domains import Choice, Either, Flag, Integer, Nothing, Real
from certifit.parameters.methods import VISITS, weights
from certifit.progress import Progress
from certifit.threads import n_threads, one_blas_thread

__all__ = [
    "BaseSGD",
    "by_rows",
    "curvature_of",
    "of_extreme_size",
    "partial_certificate",
    "quiet_blas",
]

LARGE = 5_000_000  # entries of X


def quiet_blas(X: Any) -> Any:
    """A context in which BLAS keeps to one thread, for X so large that an epoch takes a while.

    Threads of BLAS spin for a time after their work, here the check that X is finite; a descent is one long chain of steps,
    and on a busy machine they would take its core away.
    """
    if getattr(X, "size", 0) < LARGE:
        return nullcontext()
    return one_blas_thread()


class BaseSGD(
    Declared,
    CertifiedEstimator,
    takes={"fit.sample_weight": VISITS, "partial_fit.sample_weight": weights("Visits of each row.")},
):
    """What regressor and classifier share: parameters, and one descent for one vector of targets."""

    loss: Any = LOSS.but(
        text="A name from ``certifit.losses.LOSSES`` or a loss object. Built-in losses run in native code; one of your own runs "
        "in NumPy through its `derivative`, best with a `batch_size` of 32 or more."
    )
    penalty: Any = PENALTY
    alpha: float = ALPHA.but(1e-4)
    l1_ratio: float = L1_RATIO
    fit_intercept: bool = FIT_INTERCEPT
    batch_size: int = Parameter(1, Integer(1), "Rows of a step; their mean gradient is used.")
    schedule: str = Parameter(
        "optimal",
        Choice(*SCHEDULES),
        'Step size of batch t, with c the parameter `step`: "constant" c, "1/t" c/t, "1/sqrt(t)" c/√t, and "optimal" '
        "c/(1 + c·l2·t)^¾ (exponent 1 without averaging), where l2 is the strength of the squared part of the penalty.",
    )
    step: float | None = Parameter(
        None,
        Either(Real(0, open_low=True), Nothing()),
        'The constant c. None takes 1/(curvature of the loss · mean ‖x‖²), and less if that diverges; for "1/t" it then takes '
        "c/(1 + c·l2·t), which becomes 1/(l2·t) (Pegasos).",
    )
    plateau_cut: float = Parameter(
        0.5,
        Real(0, 1, open_low=True),
        "Factor of the step after a window of epochs that closed less than a quarter of the gap, or with `early_stopping` after "
        "half of `n_iter_no_change` epochs that did not lower the loss of the rows set aside; 1 never cuts.",
    )
    average: bool = Parameter(
        True,
        Flag(),
        "Whether the model is the average of the iterates of the last window (epochs 1, 2, 3–4, 5–8, …) or the last iterate.",
    )
    shuffle: bool = SHUFFLE
    early_stopping: bool = Parameter(
        False, Flag(), "Set rows aside and stop when their loss no longer falls; the best epoch is kept."
    )
    validation_fraction: float = VALIDATION_FRACTION
    n_iter_no_change: int = Parameter(
        5,
        Integer(1),
        "Epochs without improvement on the rows set aside (with `stall`, of the running loss) after which to stop.",
    )
    stall: float | None = Parameter(
        None,
        Either(Real(0), Nothing()),
        "Stop, too, when for `n_iter_no_change` epochs the mean loss (the running one, or that of the rows set aside) has fallen "
        "by no more than this below its lowest. None goes on until the optimum is proven to be near.",
    )
    tol: float = TOL.but(1e-3)
    max_iter: int = MAX_EPOCHS
    constraint: Any = CONSTRAINT.but(
        text="``Box``, ``NonNegative``, ``L1Ball`` or ``L2Ball`` from ``certifit.penalties``: every step is projected onto it, "
        "in NumPy, best with a `batch_size` of 32 or more."
    )
    split: bool = Parameter(
        False,
        Flag(),
        "The lasso in split variables: w = u − v, with projected steps in u, v ≥ 0 instead of soft thresholds; "
        'for ``penalty="l1"``.',
    )

    n_iter_: int = Fitted("int", "Epochs (the most of all classes).")
    t_: float = Fitted("float", "Steps taken (of one class).")
    step_: float = Fitted("float", "The first step size.")
    loss_curve_: list[Any] = Fitted(
        "list of float, or a list of lists for several classes",
        "Mean loss of each epoch, every row before it was learned from.",
    )
    validation_loss_: list[Any] | None = Fitted(
        "list of float, a list of lists, or None", "Loss of the rows set aside after each epoch."
    )
    certificate_: Certificate = Fitted("Certificate", "How far the fit is from the best possible one.")
    n_features_in_: int = Fitted("int", "Number of columns.")

    def _options(self) -> tuple[Loss, Penalty, float, Steps]:
        """Everything that can be wrong before any data is read."""
        check_parameters(self)
        options = {"l1_ratio": self.l1_ratio} if self.penalty == "elasticnet" else {}
        loss, penalty = resolve_loss(self.loss), resolve_penalty(self.penalty, **options)
        if self.split and not (type(penalty) is L1 and float(self.alpha) > 0 and self.constraint is None):
            raise ValueError(
                f"split=True needs penalty='l1', alpha > 0 and no constraint: absolute values are what is split; got "
                f"penalty={self.penalty!r}, alpha={self.alpha!r}, constraint={self.constraint!r}."
            )
        step, cut = None if self.step is None else float(self.step), float(self.plateau_cut)
        steps = Steps(self.schedule, step, int(self.batch_size), bool(self.average), bool(self.shuffle), cut)
        return loss, penalty, float(self.alpha), steps

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1, size=4))

    def _ordered(self, X: Matrix, y: Array, weight: Array) -> tuple[Matrix, Array, Array]:
        """Rows as the epochs read them; in the order of their content if their order is drawn anyway."""
        X = by_rows(X)
        order = content_order(X, y) if self.shuffle else None
        return (X, y, weight) if order is None else (X[order], y[order], weight[order])

    def _split(self, X: Matrix, y: Array) -> Array | None:
        """Rows set aside, if any are wanted."""
        if not self.early_stopping:
            return None
        folds = max(2, round(1.0 / self.validation_fraction))
        few = ValueError(
            f"early_stopping sets rows aside, and X has too few distinct rows ({X.shape[0]} rows) for "
            f"validation_fraction={self.validation_fraction}."
        )
        try:
            aside = content_folds(X, y, folds) == 0
        except ValueError as error:
            raise few from error
        if X.shape[0] < folds or not aside.any() or aside.all():
            raise few
        return np.asarray(aside)

    def _descend(
        self,
        X: Matrix,
        y: Array,
        weight: Array,
        aside: Array | None,
        rng: np.random.Generator,
        clock: Progress,
        loss: Loss | None = None,
    ) -> tuple[Descent, Certificate]:
        """One descent, by default with the loss of the parameters, and its certificate."""
        given, penalty, alpha, steps = self._options()
        loss = given if loss is None else loss
        held_out: Callable[[Array, Any], float] | None = None
        if aside is not None:
            share = weight[aside] / weight[aside].sum()
            held_out = self._held_out(X[aside], y[aside], share, loss)
            X, y, weight = X[~aside], y[~aside], weight[~aside]
        regularizer = self._regularizer(penalty, alpha, X.shape[1], loss)
        p = np.full(y.shape[0], 1.0 / y.shape[0]) if (weight == weight[0]).all() else weight / weight.sum()
        problem: Problem = Stream(X, y, p, loss, regularizer, self.fit_intercept, n_threads(self.n_jobs))
        units = None
        if is_extreme(problem):
            if held_out is not None:
                raise ValueError("X or y is of extreme magnitude: scale it before fitting with early_stopping.")
            problem, units = condition(problem)
        taken = in_halves(problem) if self.split else problem
        if held_out is not None and self.split:
            aside_loss = held_out
            held_out = lambda w, b: aside_loss(whole(w), b)  # noqa: E731 - the same loss, of u − v
        engine = engine_for(taken, steps)
        size = 0 if is_sparse(X) else X.nbytes
        visits = Visits(weight, steps.shuffle, rng, size)
        result = descend(
            engine,
            visits,
            steps,
            curvature_of(taken),
            float(self.tol),
            int(self.max_iter),
            clock,
            held_out,
            int(self.n_iter_no_change),
            None if self.stall is None else float(self.stall),
        )
        if self.split:
            w = whole(result.coef)
            result = replace(result, coef=w, objective=problem.objective(w, result.intercept))
        if steps.average:
            w, objective = without_specks(problem, result.coef, result.intercept, result.objective)
            result = replace(result, coef=w, objective=objective)
        solution = Solution(result.coef, result.intercept, result.epochs, "sgd")
        certificate = admitted(problem, solution, self._certificate(result, engine.scale, clock))
        if units is not None:
            solution, certificate = units.restore(solution, certificate)
            result = replace(result, coef=solution.coef, intercept=solution.intercept)
        if not (np.isfinite(result.coef).all() and np.isfinite(result.intercept).all()):
            raise ValueError("X has columns of a magnitude that leaves no finite coefficients: scale X.")
        self._steps_taken = engine.t
        return result, certificate

    def _held_out(self, X: Matrix, y: Array, share: Array, loss: Loss) -> Callable[[Array, Any], float]:
        """What the rows set aside say of a point: less is better."""
        return held_out_loss(X, y, share, loss)

    def _certificate(self, result: Descent, scale: float, clock: Progress) -> Certificate:
        note = result.note
        reached = result.objective - result.bound <= self.tol * scale
        if self.early_stopping and not reached:
            # Stopping short is what was asked for: no reason to warn.
            note = f"{'Stopped early' if result.stopped_early else 'Not stopped'} by the rows set aside. {note}".strip()
        elif result.stopped_early and not reached:
            note = f"Stopped where the running loss no longer fell. {note}".strip()
        kind = "none" if self.early_stopping and not reached else "duality gap"
        objective = result.objective if np.isfinite(result.objective) else np.finfo(np.float64).max
        return Certificate(
            kind,
            objective=objective,
            bound=result.bound,
            scale=scale,
            tol=float(self.tol),
            iterations=result.epochs,
            seconds=clock.seconds,
            note=note,
        )

    def _one_pass(
        self, problem: Any, weight: Array, saved: Any, start: Any, rng: np.random.Generator
    ) -> tuple[Any, Array, Any]:
        """One epoch, for `partial_fit`: the new state and its point. `start` is a fitted model to go on from."""
        steps = self._options()[3]
        engine = engine_for(problem, steps)
        if saved is None:
            if start is not None:
                w, b, t = start
                engine.move(halves(w) if self.split else w, b, t)
            saved = (engine.save(), curvature_of(problem))
        state, (steep, l2) = saved
        order = Visits(weight, steps.shuffle, rng).next()
        for _ in range(60):
            engine.load(state)
            _, diverged = engine.epoch(order, step_schedule(steps, steep, l2), 0)
            if not diverged:
                break
            if steps.size is not None:
                raise ValueError(f"partial_fit diverged with step={steps.size:g}: give a smaller step, or scale X.")
            steep *= 8.0
        else:
            raise ValueError("partial_fit diverged with every step size that was tried: scale X.")
        self.t_ = engine.t
        w, b = engine.point()
        return (engine.save(), (steep, l2)), whole(w) if self.split else w, b

    def _partial_problem(self, X: Matrix, y: Array, weight: Array, n_classes: int = 0) -> Any:
        """The objective of one part of the data."""
        loss, penalty, alpha, _ = self._options()
        if of_extreme_size(X) or of_extreme_size(y):
            raise ValueError("X or y is of extreme magnitude (beyond 1e±50): scale it before partial_fit.")
        chosen = Softmax(n_classes) if n_classes else loss
        regularizer, p = self._regularizer(penalty, alpha, X.shape[1], chosen), weight / weight.sum()
        problem = Stream(X, y, p, chosen, regularizer, self.fit_intercept)
        return in_halves(problem) if self.split else problem

    def _regularizer(self, penalty: Penalty, alpha: float, d: int, loss: Loss) -> Regularizer:
        """Penalty and constraint of d coefficients."""
        constraint = resolve_constraint(self.constraint)
        if loss.coupled and (constraint is not None or self.split):
            raise ValueError("constraint and split are for one score a row: use multi_class='ovr'.")
        return Regularizer.of(penalty, alpha, constraint, d)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def curvature_of(problem: Any) -> tuple[float, float]:
    """What the default step size is made of."""
    steep = typical_curvature(
        problem.X, problem.y, problem.p, problem.loss, problem.constant, problem.scale, problem.fit_intercept
    )
    parts = problem.regularizer.elastic()
    return steep, 0.0 if parts is None else float(parts[1].min(initial=np.inf))


def of_extreme_size(values: Any) -> bool:
    """Whether squares of the entries leave the range of double precision."""
    entries = values.data if is_sparse(values) else values
    largest = float(max(entries.max(initial=0.0), -entries.min(initial=0.0)))
    return not (largest == 0.0 or 1e-50 < largest < 1e50)


def by_rows(X: Matrix) -> Matrix:
    """Row-major, without repeated entries: what epochs and content splits read."""
    if not is_sparse(X):
        return np.require(X, requirements=["C", "A"])
    return canonical(X.tocsr())


def partial_certificate(calls: int, clock: Progress) -> Certificate:
    """What is known after `partial_fit`: nothing, since the data come and go."""
    note = "partial_fit sees a part of the data at a time: there is no objective to bound."
    return Certificate.absent(0.0, note, bound=-np.inf, iterations=calls, seconds=clock.seconds)
