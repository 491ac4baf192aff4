"""Stochastic gradient descent under scikit-learn's names.

Theirs: (1/n) Σ s_i·loss + alpha·penalty; ours divides by Σ s_i, with alpha·n / Σ s_i. Both go to the same optimum by steps on
single rows; ours are of our own size, and end when the optimum is proven to be near, or as theirs when the loss no longer falls.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.linear_model as theirs

from certifit._types import Array, Matrix
from certifit.base import ConvergenceWarning
from certifit.certificate import Certificate
from certifit.evaluation.losses import EpsilonInsensitive, Huber, Loss, Squared, ZeroOne
from certifit.evaluation.losses.numbers.squared_epsilon import SquaredEpsilonInsensitive
from certifit.models.sgd import model as ours
from certifit.sklearn.linear_model.rows import CLASS_WEIGHT, N_JOBS, VERBOSE, WARM_START, linear, weighted_by_class
from certifit.sklearn.translation import By, Data, DropIn, Free, Here, Of, Row, Same, Table, fresh, same

__all__ = ["SGDClassifier", "SGDRegressor"]

LOSSES = {name: name for name in ("hinge", "squared_hinge", "modified_huber", "perceptron")}
LOSSES |= {"log_loss": "logistic", "squared_error": "squared"}
TUBES = {"epsilon_insensitive": EpsilonInsensitive, "squared_epsilon_insensitive": SquaredEpsilonInsensitive}
HALVED = ("squared_hinge", "modified_huber", "squared_epsilon_insensitive")
"""Losses of which ours is half of theirs."""
CLOSEST = 1e-6


def _loss(value: Any, data: Data) -> Any:
    epsilon = float(data.estimator.epsilon)
    if value == "huber":
        return Huber(epsilon)
    if value in TUBES:
        return TUBES[value](epsilon)
    return LOSSES[value]


def _strength(alpha: Any, data: Data) -> float:
    """The mean is by rows there and by weights here; their squared losses of margins and tubes are twice ours."""
    return _unit(data) * float(alpha) * data.rows / data.total


def _unit(data: Data) -> float:
    """Our loss, where theirs is one."""
    return 0.5 if data.estimator.loss in HALVED else 1.0


def _ends(tol: Any, data: Data) -> dict[str, Any]:
    """The gap at which passes end, and the fall of the loss that goes on counting as one."""
    gap = CLOSEST if tol is None or tol <= 0 else float(tol)
    unit = 1.0 if data.estimator.early_stopping else _unit(data)  # there it is a fall of the score
    return {"tol": gap, "stall": None if tol is None else unit * float(tol)}


class _ByAccuracy(ours.SGDClassifier):
    """Rows set aside are judged as scikit-learn's: by the share of them that is told right."""

    def _held_out(self, X: Matrix, y: Array, share: Array, loss: Loss) -> Callable[[Array, Any], float]:
        return super()._held_out(X, (y > 0.5).astype(np.float64), share, ZeroOne())


class _ByRSquared(ours.SGDRegressor):
    """Rows set aside are judged as scikit-learn's: by the share of the variance that is explained."""

    def _held_out(self, X: Matrix, y: Array, share: Array, loss: Loss) -> Callable[[Array, Any], float]:
        missed = super()._held_out(X, y, share, Squared())
        variance = float(share @ (y - share @ y) ** 2)
        return lambda w, b: 2.0 * missed(w, b) / variance if variance > 0.0 else missed(w, b)


_ByAccuracy.__name__, _ByRSquared.__name__ = "SGDClassifier", "SGDRegressor"  # as messages call them


ROWS: dict[str, Row] = {
    "loss": Of(_loss, "the same"),
    "penalty": Of(lambda value, data: "none" if value is None else value, "the same"),
    "alpha": By(
        _strength, "times rows over the sum of the weights; half of it for squared losses of margins and tubes"
    ),
    "l1_ratio": Of(lambda value, data: 0.0 if value is None else float(value), "the same"),
    **same("fit_intercept", "max_iter"),
    "tol": Of(
        _ends,
        "the same, and passes end earlier where the optimum is proven to be as near as that, relatively; None asks for 1e-6",
        None,
    ),
    "shuffle": Same(),
    "verbose": VERBOSE,
    "epsilon": Here("a part of the loss"),
    "random_state": Same(),
    "learning_rate": Here(
        'the optimum does not depend on the steps, and ours has its own; "pa1" and "pa2" are refused beside losses that have no '
        "such steps"
    ),
    "eta0": Free("ours has steps of its own"),
    "power_t": Here("ours has steps of its own; scikit-learn's warning about negative ones is given"),
    **same("early_stopping", "validation_fraction", "n_iter_no_change"),
    "warm_start": WARM_START,
    "average": Free("steps are averaged in any case, which changes the way and not the optimum"),
}


class _Descent(DropIn):
    """Coefficients, passes and steps."""

    tol: Any

    def fit(  # type: ignore[override]  # the order of the arguments is scikit-learn's
        self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None
    ) -> Any:
        """As `DropIn.fit`.

        Parameters
        ----------
        X, y : arrays
            Rows and target.
        coef_init, intercept_init : arrays, optional
            Checked and not used: the optimum does not depend on where the search starts.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 counts a row twice.
        """
        self._check_start(coef_init, intercept_init, X, y)
        return super().fit(X, y, sample_weight)

    def _check_start(self, coef: Any, intercept: Any, X: Any, y: Any) -> None:
        """Refuse a start that does not fit the data, although none is needed."""
        if coef is None and intercept is None:
            return
        functions, columns = self._functions(y), np.shape(X)[-1:]
        wanted = (functions, *columns) if functions > 1 else columns
        if coef is not None and np.shape(coef if functions > 1 else np.ravel(coef)) != wanted:
            raise ValueError(f"Provided coef_init does not match dataset: it must have shape {wanted}.")
        if intercept is not None and np.shape(intercept) not in ([(functions,)] if functions > 1 else [(), (1,)]):
            raise ValueError(f"Provided intercept_init does not match dataset: it must have shape ({functions},).")

    def _functions(self, y: Any) -> int:
        """How many linear functions are learned."""
        return 1

    def _settings(self, data: Data) -> dict[str, Any]:
        """What scikit-learn refuses beyond its checks of single parameters is refused."""
        if self.learning_rate in ("pa1", "pa2") and self.loss not in self._passive:
            raise ValueError(
                f"learning_rate={self.learning_rate!r} is for loss={' or '.join(map(repr, self._passive))}; got {self.loss!r}."
            )
        if self.penalty == "elasticnet" and self.l1_ratio is None:
            raise ValueError("l1_ratio must be set when penalty is 'elasticnet'.")
        weight = data.sample_weight
        if self.early_stopping and weight is not None and not np.any(weight):
            raise ValueError(
                "The sample weights for validation set are all zero, consider using a different random state. Here they are zero "
                "everywhere: give rows to learn from a positive weight."
            )
        if self.early_stopping and data.rows and data.rows * (1.0 - float(self.validation_fraction)) < 1.0:
            raise ValueError(
                f"With validation_fraction={self.validation_fraction!r} none of the {data.rows} rows is left to learn from."
            )
        if self.power_t < 0:
            warnings.warn(
                "Negative values for `power_t` are deprecated in scikit-learn 1.8; here it has no effect.",
                FutureWarning,
                stacklevel=5,
            )
        return super()._settings(data)

    _passive: ClassVar[tuple[str, ...]]
    """Losses for which there are passive-aggressive steps."""
    learning_rate: str
    loss: str
    penalty: str | None
    l1_ratio: float | None
    power_t: float
    validation_fraction: float

    def _one_pass(self, X: Any, y: Any, sample_weight: Any, **classes: Any) -> Any:
        """One pass over these rows, from where the last one ended."""
        if self.early_stopping:
            raise ValueError("early_stopping should be False with partial_fit: no rows are set aside there.")
        self._checked(self)
        data = Data(self, X, y, sample_weight)
        model = self.model_ if "model_" in vars(self) else fresh(self._ours, **self._settings(data))
        self._keep(model.partial_fit(X, y, sample_weight=sample_weight, **classes), data)
        return self

    def _judge(self, certificate: Certificate | None) -> None:
        """Who asks for no tolerance wants as many passes as he said."""
        assert certificate is not None
        self.certificate_ = certificate
        asked = self.tol is not None and certificate.kind != "none" and not self.early_stopping
        if asked and not certificate.certified and self.n_iter_ >= self.max_iter:
            warnings.warn(
                "Maximum number of iteration reached before convergence. Consider increasing max_iter to improve the fit. "
                f"{certificate}",
                ConvergenceWarning,
                stacklevel=5,
            )

    early_stopping: bool
    n_iter_: int
    max_iter: int

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        found = {**linear(model), "n_iter_": int(model.n_iter_), "t_": float(model.t_) + 1.0}
        return {**found, "intercept_": np.atleast_1d(found["intercept_"])}


class SGDClassifier(_Descent, theirs.SGDClassifier):
    """A linear classifier; more than two classes each against the rest."""

    _ours = _ByAccuracy
    _passive = ("hinge",)
    _table: ClassVar[Table] = {
        **ROWS,
        "n_jobs": N_JOBS,
        "class_weight": CLASS_WEIGHT,
    }

    def _functions(self, y: Any) -> int:
        classes = len(set(np.ravel(y).tolist()))
        return classes if classes > 2 else 1

    def _learn(self, data: Data) -> Any:
        return super()._learn(weighted_by_class(data, self.class_weight))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """One pass over these rows, from where the last call ended; `classes` are needed in the first call."""
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight 'balanced' is not supported for partial_fit. In order to use 'balanced' weights, use "
                "compute_class_weight('balanced', classes=classes, y=y). In place of y you can use a large enough sample of the "
                "full training set target to properly estimate the class frequency distributions. Pass the resulting weights as "
                "the class_weight parameter."
            )
        data = Data(self, X, y, sample_weight)
        weight = weighted_by_class(data, self.class_weight).sample_weight
        return self._one_pass(X, y, weight, classes=classes)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {**super()._fitted(model, data), "classes_": model.classes_}


class SGDRegressor(_Descent, theirs.SGDRegressor):
    """A linear regression."""

    _ours = _ByRSquared
    _passive = ("epsilon_insensitive",)
    _table: ClassVar[Table] = ROWS

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """One pass over these rows, from where the last call ended."""
        return self._one_pass(X, y, sample_weight)
