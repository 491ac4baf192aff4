"""Multilayer perceptrons under scikit-learn's names.

Theirs, for a batch of m rows: (1/m) Σ loss + (alpha/m)·½ Σ ‖W‖², columns and targets as they are; so ours with alpha / m, neither
standardized. First weights, rows set aside and the order of the rows are drawn as scikit-learn draws them: with the same steps on
the same batches the same network is learned, up to single precision, and up to SciPy's with ``solver="lbfgs"``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import sklearn.neural_network as theirs
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state, shuffle
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target, unique_labels

from certifit._types import Array, Matrix
from certifit.base import ConvergenceWarning
from certifit.certificate import Certificate
from certifit.models.neural import model as ours
from certifit.models.neural.base import BaseNetwork
from certifit.models.neural.layers import Columns, flat
from certifit.models.neural.objective import Target
from certifit.models.neural.parameters import check_hidden
from certifit.models.neural.training import Recipe, State
from certifit.parameters import Fitted
from certifit.progress import Progress
from certifit.sklearn.translation import By, Data, DropIn, Here, Of, Row, Same, Table, fresh, same
from certifit.sklearn.translation.asking import AsksForClasses, AsksForValues
from certifit.sklearn.translation.table import labels

__all__ = ["MLPClassifier", "MLPRegressor"]

AUTO = 200  # rows of a batch
LEAST_RATE = 1e-6  # at or below it, "adaptive" is at its end
FLAT = 1e7 * np.finfo(np.float64).eps  # SciPy's own, which scikit-learn leaves as it is


class _Order:
    """The rows of one epoch after the other, in the order that scikit-learn draws."""

    def __init__(self, n: int, draws: np.random.RandomState | None) -> None:
        self.rows, self.draws = np.arange(n), draws

    def next(self) -> Array:
        """Row numbers of the next epoch."""
        if self.draws is not None:
            self.rows = shuffle(self.rows, random_state=self.draws)
        return self.rows.astype(np.uint32)


class _Lines(Progress):
    """A line for each epoch, as scikit-learn prints them."""

    def tell(self, iteration: int, total: int, words: str) -> None:
        print(f"Iteration {iteration}, {words}")


class _AsTheyDraw(BaseNetwork):
    """A network whose draws, tolerance and plateaus are scikit-learn's; what they have no parameter for is set by the drop-in."""

    _draws: Any = Fitted()
    _evaluations: int = Fitted()
    _begin: Any = Fitted()
    """First weights, drawn before the rows that are set aside."""

    def _progress(self) -> AbstractContextManager[Progress]:
        return nullcontext(_Lines() if self.verbose else Progress())

    def _arranged(self, X: Matrix, y: Array) -> None:
        return None

    def _scaling(self, X: Matrix, weight: Array) -> Columns:
        try:
            return super()._scaling(X, weight)
        except ValueError as error:  # in their words
            raise ValueError(
                "Solver produced non-finite parameter weights. The input data may contain large values and need to be "
                f"preprocessed. ({error})"
            ) from error

    def _parted(self, X: Matrix, y: Array) -> tuple[Any, Any]:
        if not self._goes_on():
            self._begin = self._drawn((X.shape[1], *check_hidden(self.hidden), self._outputs(y)))
        if not self.early_stopping:
            return slice(None), None
        binary = hasattr(self, "classes_") and self._outputs(y) == 1
        learn, aside = train_test_split(
            np.arange(X.shape[0]),
            random_state=self._draws,
            test_size=self.validation_fraction,
            stratify=y.astype(bool)[:, None] if binary else None,
        )
        if aside.shape[0] < 2:
            raise ValueError(
                "The validation set is too small. Increase 'validation_fraction' or the size of your dataset."
            )
        return learn, aside

    def _summed(self, outputs: int) -> int:
        """Theirs tell the squared loss of several targets as a mean over these, and minimize the sum, as ours do."""
        return outputs if getattr(self, "loss", None) == "squared" and self.optimizer != "lbfgs" else 1

    def _outputs(self, y: Array) -> int:
        """How many scores a row has."""
        if y.ndim == 2:
            return y.shape[1]
        classes = self.classes_.shape[0] if hasattr(self, "classes_") else 1
        return classes if classes > 2 else 1

    def _drawn(self, sizes: tuple[int, ...]) -> Array:
        """Uniform weights and biases (Glorot and Bengio 2010), narrower for the sigmoid."""
        coefs, intercepts, width = [], [], 2.0 if self.activation == "sigmoid" else 6.0
        for n_in, n_out in pairwise(sizes):
            edge = np.sqrt(width / (n_in + n_out))
            coefs.append(self._draws.uniform(-edge, edge, (n_in, n_out)))
            intercepts.append(self._draws.uniform(-edge, edge, n_out))
        return flat(coefs, intercepts, dtype=self._kind(self._in_double()))

    def _first(self, sizes: tuple[int, ...], target: Target, rng: np.random.Generator) -> State:
        begin, self._begin = getattr(self, "_begin", None), None
        return State.start(self._drawn(sizes) if begin is None else begin)

    def _visits(self, weight: Array, rng: np.random.Generator, size: int = 0) -> Any:
        if not (weight == 1.0).all():
            return super()._visits(weight, np.random.default_rng(self._draws.randint(2**31 - 1)), size)
        n = weight.shape[0]
        # One batch of all rows has no order.
        return _Order(n, self._draws if self.shuffle and self.batch_size < n else None)

    def _recipe(self, target: Target, rng: np.random.Generator) -> Recipe:
        return replace(
            super()._recipe(target, rng),
            tol=float(self.tol) * (1 if self.early_stopping else self._summed(target.n_scores)),
            least_rate=np.nextafter(0.2 * LEAST_RATE, 1.0),
            flat=FLAT,
            evaluations=self._evaluations,
            visited=self._visited,
            unscaled=True,
            per_batch=True,
        )


class _Classes(_AsTheyDraw, ours.MLPClassifier):
    pass


class _Numbers(_AsTheyDraw, ours.MLPRegressor):
    pass


_Classes.__name__, _Numbers.__name__ = "MLPClassifier", "MLPRegressor"  # in messages


def _learned_from(data: Data) -> int:
    """How many rows are not set aside."""
    estimator = data.estimator
    if not estimator.early_stopping or estimator.solver == "lbfgs":
        return data.rows
    return data.rows - int(np.ceil(float(estimator.validation_fraction) * data.rows))


def _batch(value: Any, data: Data) -> int:
    rows = max(1, _learned_from(data))
    if value == "auto":
        return min(AUTO, rows)
    if value > rows:
        warnings.warn(
            "Got `batch_size` less than 1 or larger than sample size. It is going to be clipped.",
            UserWarning,
            stacklevel=6,
        )
    return int(min(value, rows))


def _strength(alpha: Any, data: Data) -> float:
    if data.estimator.solver == "lbfgs":
        return float(alpha) / data.total
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(alpha) / _batch(data.estimator.batch_size, data)


def _hidden(value: Any, data: Data) -> tuple[int, ...]:
    sizes = list(value) if hasattr(value, "__iter__") else [value]
    if any(size <= 0 for size in sizes):
        raise ValueError(f"hidden_layer_sizes must be > 0, got {sizes}.")
    return tuple(sizes)


def _optimizer(value: Any, data: Data) -> str:
    nesterov = value == "sgd" and data.estimator.nesterovs_momentum and data.estimator.momentum > 0
    return "nesterov" if nesterov else str(value)


def _schedule(value: Any, data: Data) -> str:
    if data.estimator.solver != "sgd":
        return "constant"
    return {"adaptive": "plateau"}.get(value, value)


def _patience(value: Any, data: Data) -> int:
    return int(data.estimator.max_iter if np.isinf(value) else value) + 1


def _stops(value: Any, data: Data) -> bool:
    return bool(value) and data.estimator.solver != "lbfgs"


ROWS: dict[str, Row] = {
    "hidden_layer_sizes": Of(_hidden, "``hidden``", "hidden"),
    "activation": Of(lambda value, data: {"logistic": "sigmoid"}.get(value, value), '"logistic" is "sigmoid"'),
    "solver": Of(_optimizer, '``optimizer``; "sgd" with Nesterov\'s momentum is "nesterov"', "optimizer"),
    "alpha": By(
        _strength,
        'divided by the rows of a batch; for "lbfgs" by the sum of the weights. ``loss_curve_`` is without the penalty',
    ),
    "batch_size": By(_batch, '"auto" is 200; at most all rows'),
    "learning_rate": Of(
        _schedule,
        '``schedule``, for "sgd" only; "adaptive" is "plateau", which ends at a step size of 1e-6',
        "schedule",
    ),
    "learning_rate_init": Same("learning_rate"),
    **same("power_t", "max_iter", "shuffle"),
    "random_state": Here("what is drawn, is drawn from it as scikit-learn does"),
    "tol": Same(),
    "verbose": Of(lambda value, data: max(int(value), 0), "a line for each epoch", "verbose"),
    "warm_start": Same(),
    "momentum": Of(lambda value, data: {"momentum": value} if data.estimator.solver == "sgd" else {}, "the same", None),
    "nesterovs_momentum": Here("a part of the optimizer"),
    "early_stopping": Of(_stops, "the same, by accuracy or R²"),
    "validation_fraction": Of(
        lambda value, data: {"validation_fraction": value} if _stops(data.estimator.early_stopping, data) else {},
        "the same",
        None,
    ),
    "beta_1": Same("beta1"),
    "beta_2": Same("beta2"),
    "epsilon": Same(),
    "n_iter_no_change": Of(_patience, "one more: theirs stop when it is exceeded"),
    "max_fun": Here('most evaluations of "lbfgs"'),
}
SETTLED: dict[str, Any] = {"standardize": False, "standardize_target": False}


def _takes_steps(estimator: Any) -> bool:
    if estimator.solver == "lbfgs":
        raise AttributeError("partial_fit is only available for stochastic optimizers. lbfgs is not stochastic.")
    return True


class _Perceptron(DropIn):
    """One fit or pass of our network, and what scikit-learn tells of it."""

    random_state: Any
    max_fun: int
    max_iter: int
    solver: str
    warm_start: bool
    early_stopping: bool
    alpha: float
    t_: int
    loss_curve_: list[float]
    validation_scores_: list[float] | None
    coefs_: list[Array]

    def _asked(self, X: Any) -> Any:
        return X

    def _prepared(self, data: Data, goes_on: bool) -> Any:
        """Our model, as it stands or anew."""
        settings = self._settings(data)
        if goes_on:
            model = self.model_.set_params(**settings)
            if self.solver != "lbfgs" and model._moments is not None and self.warm_start:
                model._moments = None  # theirs begin anew
        else:
            model = fresh(self._ours, **settings)
        model._draws, model._evaluations = check_random_state(self.random_state), int(self.max_fun)
        model._visited = self.t_ if goes_on else 0
        return model

    def _learn(self, data: Data) -> Any:
        if np.ndim(data.y) == 2 and np.shape(data.y)[1] == 1:
            data.y = labels(data.y)
        goes_on = self.warm_start and "model_" in vars(self)
        model = self._prepared(data, goes_on)
        if not goes_on:
            self._forget()
        model.fit(data.X, data.y, data.sample_weight)
        self._count(model, data, model.n_iter_)
        if not model._settled and not model._ran_away and self.solver != "lbfgs":
            warnings.warn(
                f"Stochastic Optimizer: Maximum iterations ({self.max_iter}) reached and the optimization hasn't converged yet.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return model

    def _one_pass(self, X: Any, y: Any, sample_weight: Any, **classes: Any) -> Any:
        """One pass over these rows, from where the last one ended."""
        self._checked(self)
        if self.early_stopping:
            raise ValueError("partial_fit does not support early_stopping=True")
        data = Data(self, X, y, sample_weight)
        goes_on = "model_" in vars(self)
        model = self._prepared(data, goes_on)
        if not goes_on:
            self._forget()
        model.partial_fit(X, y, sample_weight=sample_weight, **classes)
        self._count(model, data, 1)
        self._keep(model, data)
        return self

    def _forget(self) -> None:
        """Nothing was learned before."""
        self.t_, self.loss_curve_ = 0, []
        self.validation_scores_ = [] if self.early_stopping else None

    def _count(self, model: Any, data: Data, epochs: int) -> None:
        """What these epochs add to the visits and the curves."""
        self.n_iter_ = int(model.n_iter_) if self.solver == "lbfgs" else int(epochs)
        if self.solver == "lbfgs":
            return
        self.t_ += int(epochs) * _learned_from(data)
        targets = model._summed(model.coefs_[-1].shape[1])
        curve = model.loss_curve_[len(model.loss_curve_) - epochs :]
        self.loss_curve_ = [*self.loss_curve_, *(loss / targets for loss in curve)]
        if self.validation_scores_ is not None:
            gone = [float("nan")] if model._ran_away else []
            self.validation_scores_ = [*self.validation_scores_, *model.history_.get("validation_score", []), *gone]

    n_iter_: int

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        kind = np.float32 if getattr(data.X, "dtype", None) == np.float32 else np.float64
        found: dict[str, Any] = {
            "coefs_": [coef.astype(kind) for coef in model.coefs_],
            "intercepts_": [intercept.astype(kind) for intercept in model.intercepts_],
            "n_layers_": len(model.coefs_) + 1,
            "n_outputs_": model.coefs_[-1].shape[1],
            "out_activation_": self._out_activation(model),
        }
        if self.solver == "lbfgs":
            return {**found, "loss_": float(model.certificate_.objective)}
        scores = self.validation_scores_
        return {
            **found,
            "loss_": self.loss_curve_[-1] if self.loss_curve_ else float("nan"),
            "best_loss_": min(self.loss_curve_, default=float("inf")) if scores is None else None,
            "best_validation_score_": None if scores is None else max(scores),
        }

    def _out_activation(self, model: Any) -> str:
        raise NotImplementedError

    def _judge(self, certificate: Certificate | None) -> None:
        """Of a network nothing is claimed."""
        assert certificate is not None
        self.certificate_ = certificate


class MLPClassifier(_Perceptron, AsksForClasses, theirs.MLPClassifier):
    """A network for classes; a y of several columns of 0 and 1 is of rows with several labels."""

    _ours = _Classes
    _always: ClassVar[Mapping[str, Any]] = {**SETTLED, "scoring": "accuracy"}
    _table: ClassVar[Table] = ROWS

    classes_: Array

    def _learn(self, data: Data) -> Any:
        if self.warm_start and "model_" in vars(self):
            classes = unique_labels(data.y)
            if set(classes) != set(self.classes_):
                raise ValueError(
                    "warm_start can only be used where `y` has the same classes as in the previous call to fit. "
                    f"Previously got {self.classes_}, `y` has {classes}"
                )
        return super()._learn(data)

    @available_if(_takes_steps)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> Any:
        """One pass over these rows, from where the last call ended; `classes` are needed in the first call."""
        if classes is not None and type_of_target(y).startswith("multilabel"):
            classes = np.arange(len(classes))
        return self._one_pass(X, y, sample_weight, classes=classes)

    def _out_activation(self, model: Any) -> str:
        return "softmax" if model._loss.coupled else "logistic"

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {**super()._fitted(model, data), "classes_": model.classes_}


class MLPRegressor(_Perceptron, AsksForValues, theirs.MLPRegressor):
    """A network for one number or several."""

    _ours = _Numbers
    _always: ClassVar[Mapping[str, Any]] = {**SETTLED, "scoring": "r2"}
    _table: ClassVar[Table] = {
        "loss": Of(lambda value, data: {"squared_error": "squared"}.get(value, value), "the same"),
        **ROWS,
    }

    @available_if(_takes_steps)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """One pass over these rows, from where the last call ended."""
        return self._one_pass(X, y, sample_weight)

    def _out_activation(self, model: Any) -> str:
        return "exp" if self.loss == "poisson" else "identity"
