"""The perceptron under scikit-learn's name: rows that are on the wrong side move the plane, others do not.

With a penalty the plane is drawn toward zero at every row, whether it moves the plane or not:

    w ← prox_{η·alpha·penalty}(w + η·s·x  if  s·(x·w + b) ≤ 0  else  w)        (s = ±1, the side of the row; η is eta0)

These are the steps of stochastic gradient descent on the perceptron loss. They minimize nothing: zero is the optimum.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import sklearn.linear_model as theirs

from certifit._types import Array, Matrix
from certifit.certificate import Certificate
from certifit.evaluation.losses import PerceptronLoss
from certifit.models.perceptron.base import Rows
from certifit.models.perceptron.model import Perceptron as OurPerceptron
from certifit.models.sgd.model import SGDClassifier as OurSGD
from certifit.optimization.stochastic.descent import Descent, Visits, step_schedule
from certifit.optimization.stochastic.engines import engine_for
from certifit.sklearn.linear_model.rows import CLASS_WEIGHT, N_JOBS, VERBOSE, linear, weighted_by_class
from certifit.sklearn.translation import By, Data, DropIn, Free, Here, Only, Same, Table, fresh

__all__ = ["Perceptron"]


class _OfUnitOffset(OurPerceptron):
    """The intercept moves by one at each mistake, as scikit-learn's; ours moves by the size of the rows."""

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, Array]:
        rows, codes = super()._rows(X, y, sample_weight)
        return replace(rows, offset=1.0 if self.fit_intercept else 0.0), codes


class _Mistakes(PerceptronLoss):
    """A row on the plane is a mistake too, or no first step would be taken from zero."""

    threshold = float(np.finfo(np.float64).tiny)


class _Penalized(OurSGD):
    """Steps of one size, and a penalty at each; they end where the loss no longer falls."""

    def _perceptron(self, X: Matrix, target: Array, weight: Array, seed: int) -> tuple[Descent, Certificate]:
        steps, start = self._options()[3], time.perf_counter()
        engine: Any = engine_for(self._partial_problem(X, target, weight), steps)
        engine.move(np.zeros(X.shape[1]), 0.0, 0.0)
        visits, schedule = Visits(weight, steps.shuffle, np.random.default_rng(seed)), step_schedule(steps, 1.0, 0.0)
        history: list[float] = []
        lowest, waited = np.inf, 0
        while len(history) < self.max_iter and waited < self.n_iter_no_change:
            history.append(engine.epoch(visits.next(), schedule, 0)[0])
            if self.stall is not None:
                waited = 0 if history[-1] < lowest - float(self.stall) else waited + 1
                lowest = min(lowest, history[-1])
        w, b = engine.point()
        if not (np.isfinite(w).all() and np.isfinite(b)):
            raise ValueError("The steps leave the range of numbers: scale X, or give a smaller eta0 or alpha.")
        self._steps_taken = engine.t
        note = "Steps of a penalized perceptron minimize nothing as a whole."
        seconds = time.perf_counter() - start
        certificate = Certificate.absent(history[-1], note, iterations=len(history), seconds=seconds)
        return Descent(w, b, np.nan, 0.0, len(history), float(self.step or 1.0), history, [], "", False), certificate


class Perceptron(DropIn, theirs.Perceptron):
    """Rosenblatt's perceptron; more than two classes each against the rest.

    It ends when no row is on the wrong side; with a penalty, when the loss no longer falls.
    """

    _ours = _OfUnitOffset
    _table: ClassVar[Table] = {
        "penalty": Here("with one, the perceptron's steps and the penalty's are taken by `certifit.SGDClassifier`"),
        "alpha": Here("the strength of the penalty, where there is one"),
        "l1_ratio": Here('the share of the absolute values in the penalty "elasticnet"'),
        "fit_intercept": Same(),
        "max_iter": Same(),
        "tol": By(
            lambda value, data: 0.0,
            "passes go on while a row is on the wrong side, up to max_iter of them; with a penalty, while the mean loss falls by "
            "more than this",
        ),
        "shuffle": Same(),
        "verbose": VERBOSE,
        "eta0": Here("the size of a step beside a penalty; without one it would only scale the plane"),
        "n_jobs": N_JOBS,
        "random_state": Same(),
        "early_stopping": Only((False,), "the perceptron has no loss to watch"),
        "validation_fraction": Free("of early stopping"),
        "n_iter_no_change": Here("passes without a fall of the loss after which a perceptron with a penalty ends"),
        "class_weight": CLASS_WEIGHT,
        "warm_start": Only((False,), "the perceptron starts at zero"),
    }
    class_weight: Any
    penalty: str | None
    eta0: float
    tol: float | None

    def fit(  # type: ignore[override]  # the order of the arguments is scikit-learn's
        self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None
    ) -> Any:
        """As `DropIn.fit`; the plane starts at zero, and other starts are refused."""
        if coef_init is not None or intercept_init is not None:
            raise NotImplementedError("Perceptron starts at zero: coef_init and intercept_init are not offered.")
        return super().fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Refused: our perceptron reads all rows."""
        raise NotImplementedError(
            "Perceptron.partial_fit is not offered: use SGDClassifier(loss='hinge'), which has it."
        )

    def _learn(self, data: Data) -> Any:
        data = weighted_by_class(data, self.class_weight)
        if self.penalty is None:
            return super()._learn(data)
        settings = {name: value for name, value in self._settings(data).items() if name != "tol"}
        asked = {name: getattr(self, name) for name in ("penalty", "alpha", "l1_ratio", "n_iter_no_change")}
        steps = {"schedule": "constant", "step": self.eta0, "average": False, "stall": self.tol}
        return fresh(_Penalized, loss=_Mistakes(), **settings, **asked, **steps).fit(data.X, data.y, data.sample_weight)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        found = {**linear(model), "classes_": model.classes_, "n_iter_": int(model.n_iter_)}
        return {**found, "intercept_": np.atleast_1d(found["intercept_"]), "t_": 1.0 + model.n_iter_ * data.rows}
