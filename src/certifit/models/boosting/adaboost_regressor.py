"""AdaBoost for numbers: AdaBoost.R2 (Drucker 1997).

Each learner is fitted under weights w and errs on row i by a share e_i ∈ [0, 1]; with the greatest error D = max |y_i − h(x_i)|,

    linear |y_i − h(x_i)| / D        square (|y_i − h(x_i)| / D)²        exponential 1 − exp(−|y_i − h(x_i)| / D)

Its error is ε = Σ w_i e_i / Σ w_i. Learners with ε < ½ get the vote ln(1/β), β = ε/(1 − ε), and the weights of rows fall by
β^(1 − e_i): what was told well counts less. The prediction is the weighted median of the learners, so that a few bad ones cannot
spoil it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.equal_rows import repetitions
from certifit.data.gate import like_input
from certifit.data.medians import weighted_median
from certifit.models.boosting.additive import ESTIMATOR, LEAST_ERROR, SEED, Additive
from certifit.models.forest.base import drawing_order, drawn_counts, fit_drawn
from certifit.models.tree.model import DecisionTreeRegressor
from certifit.parameters import LEARNING_RATE, N_ESTIMATORS, Declared, Flag, OneOf, Parameter
from certifit.progress import Progress

__all__ = ["AdaBoostRegressor"]


class AdaBoostRegressor(Declared, RegressorMixin, Additive):
    """AdaBoost.R2 with any regressor: the weighted median of learners that attend to what the ones before told badly.

    A learner with the error ε votes with rate · ln((1 − ε)/ε), and the weights of the rows fall by
    (ε/(1 − ε))^(rate · (1 − e_i)), where e_i ∈ [0, 1] is how much it errs on row i, in parts of its greatest error.

    Attributes
    ----------
    estimators_ : list
        The learners.
    estimator_weights_ : array
        Their votes.
    estimator_errors_ : array
        Weighted error ε of each learner.
    certificate_ : Certificate
        Of kind ``"none"``; its objective is the weighted mean absolute error of the training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import AdaBoostRegressor
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> model = AdaBoostRegressor(n_estimators=50).fit(X, np.sin(6 * X[:, 0]))
    >>> model.score(X, np.sin(6 * X[:, 0])) > 0.95
    True
    """

    estimator: Any = ESTIMATOR.but(text="The learner; a tree of three levels if not given.")
    n_estimators: int = N_ESTIMATORS.but(50, "Most learners; fewer if one is perfect or errs by half or more.")
    _: KW_ONLY
    learning_rate: float = LEARNING_RATE.but(text="Factor of every vote, and exponent of the factors of the weights.")
    loss: str = OneOf(("linear", "square", "exponential"), "How much a learner errs on a row.")
    bootstrap: bool = Parameter(
        False,
        Flag(),
        "Whether each learner sees rows drawn by their weights, as Drucker's, instead of the weights themselves.",
    )
    random_state: Any = SEED.but(text="Seed of the learners and of the draws.")

    def _inner(self) -> Any:
        return DecisionTreeRegressor(max_depth=3) if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AdaBoostRegressor:
        """Fit one learner after the other."""
        clock = Progress()
        X, y, start = self._read_rows(X, y, sample_weight, numeric=True, weighted=not self.bootstrap)
        y = np.asarray(y, dtype=np.float64)
        order = drawing_order(X, y) if self.bootstrap else np.empty(0, dtype=np.uint32)
        rng, weight, total = check_random_state(self.random_state), start.copy(), float(start.sum())
        self.estimators_: list[Any] = []
        votes, errors = [], []
        for _ in range(self.n_estimators):
            model = self._fresh(rng)
            if self.bootstrap:
                fit_drawn(model, X, y, drawn_counts(rng, order, weight, repetitions(start)))
            else:
                model.fit(X, y, sample_weight=weight)
            missed = self._missed(np.abs(np.asarray(model.predict(X), dtype=np.float64) - y))
            error = float(weight @ missed / total)
            useless = error >= 0.5
            if useless and self.estimators_:
                break  # it would vote for nothing, or against itself
            self.estimators_.append(model)
            errors.append(error)
            beta = max(error, LEAST_ERROR) / (1 - max(error, LEAST_ERROR)) if not useless else 1.0
            votes.append(self.learning_rate * -np.log(beta) if not useless else 1.0)
            if useless or error <= 0:
                break
            weight = weight * beta ** (self.learning_rate * (1.0 - missed))
            weight *= total / weight.sum()  # weights keep their sum, so that they still count rows
        self.estimator_weights_, self.estimator_errors_ = np.array(votes), np.array(errors)
        self._certify(self._certificate(X, y, start / total, clock))
        return self

    def _missed(self, distance: Array) -> Array:
        """e_i, in parts of the greatest error."""
        greatest = float(distance.max(initial=0.0))
        share = distance / greatest if greatest > 0 else distance
        if self.loss == "square":
            return share * share
        return share if self.loss == "linear" else -np.expm1(-share)

    def _certificate(self, X: Any, y: Array, p: Array, clock: Progress) -> Certificate:
        note = (
            "Each learner is fitted greedily under its weights, and the median of all is not optimized as a whole. The "
            "objective is the mean absolute error of the training rows."
        )
        return Certificate.absent(
            float(p @ np.abs(self._medians(X, len(self.estimators_)) - y)),
            note,
            scale=float(p @ np.abs(y - weighted_median(y, p))),
            iterations=len(self.estimators_),
            seconds=clock.seconds,
        )

    def _medians(self, X: Any, count: int) -> Array:
        """Of the first `count` learners, what the least one says that at least half of the votes do not exceed."""
        said = np.array([np.asarray(model.predict(X), dtype=np.float64) for model in self.estimators_[:count]])
        order = np.argsort(said, axis=0, kind="stable")
        held = np.cumsum(self.estimator_weights_[:count][order], axis=0)
        middle = np.argmax(held >= 0.5 * held[-1], axis=0)
        rows = np.arange(said.shape[1])
        return np.asarray(said[order[middle, rows], rows])

    def predict(self, X: Any) -> Array:
        """The weighted median of what the learners say."""
        return like_input(X, self._medians(self._read_new(X), len(self.estimators_)))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """`predict` after each learner."""
        rows = self._read_new(X)
        for count in range(1, len(self.estimators_) + 1):
            yield like_input(X, self._medians(rows, count))
