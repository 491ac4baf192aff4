"""The perceptron with a penalty, which draws the plane toward zero at every row, whether the row moves it or not:

    w ← prox_{η·alpha·penalty}(w + η·s·x  if  s·(x·w + b) ≤ 0  else  w)        (s = ±1, the side of the row; η is the step)

These are the steps of stochastic gradient descent on the perceptron loss. They minimize nothing: zero is the optimum.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from certifit._types import Array, Matrix
from certifit.certificate import Certificate
from certifit.evaluation.losses import PerceptronLoss
from certifit.models.sgd.model import SGDClassifier
from certifit.optimization.stochastic.descent import Descent, Visits, step_schedule
from certifit.optimization.stochastic.engines import engine_for

__all__ = ["Mistakes", "PenalizedPerceptron"]


class Mistakes(PerceptronLoss):
    """A row on the plane is a mistake too, or no first step would be taken from zero."""

    threshold = float(np.finfo(np.float64).tiny)


class PenalizedPerceptron(SGDClassifier):
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
