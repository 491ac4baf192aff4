"""Settings of any learner, chosen by cross-validation.

    setting* = argmin over settings of Σ_k W_k error_k(setting) / Σ_k W_k,        then a fit on all rows

| strategy | which settings are tried |
|---|---|
| grid | every combination |
| random | `n_iter` draws, from lists or distributions |
| halving | all on few rows; the best 1/factor of them on factor times as many; … ; the last on all rows |

With the rule of one standard error the simplest setting wins whose error exceeds the least by no more than its standard error
over the folds. Successive halving: Jamieson and Talwalkar (2016). Alphas of `Ridge`, `Lasso`, `ElasticNet` and
`LogisticRegression` come from one walk along their path for each fold, unless there is a time limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from certifit._types import Array, is_sparse
from certifit.base import CertifiedEstimator, CopiesMixin
from certifit.certificate import Certificate
from certifit.data.equal_rows import row_codes
from certifit.data.gate import check_sample_weight
from certifit.data.tabular import TableRows
from certifit.evaluation.metrics.inputs import check_labels
from certifit.evaluation.metrics.predictions import predict_for
from certifit.evaluation.metrics.registry import METRICS, Metric, resolve_metric
from certifit.evaluation.resampling.fitting import Data, warn_of_failures
from certifit.evaluation.risk.resamples import generator
from certifit.evaluation.splits.choice import Curve, Fold, folds_of
from certifit.evaluation.splits.sealed import folds
from certifit.models.reductions.trial import Trial
from certifit.parameters.common import CV, N_JOBS, ONE_STANDARD_ERROR, RANDOM_STATE, VERBOSE
from certifit.parameters.declared import Declared, OneOf, Parameter, check_parameters
from certifit.parameters.declared import Fitted as Attribute
from certifit.parameters.domains import Any_, Choice, Either, Flag, Function, Integer, Learner, Named, Nothing, Real
from certifit.progress import progress

__all__ = ["Search"]

# Which direction is simpler, for parameters that have the same meaning everywhere.
SIMPLER_HIGH = frozenset({"alpha", "min_samples_leaf", "min_samples_split", "ccp_alpha", "n_neighbors", "bandwidth"})
SIMPLER_LOW = frozenset({"C", "degree", "max_depth", "max_leaf_nodes", "gamma", "n_estimators", "n_knots", "max_iter"})


def _has(name: str) -> Callable[[Any], bool]:
    def check(search: Any) -> bool:
        return hasattr(getattr(search, "best_estimator_", search._inner()), name)

    return check


class Search(Declared, CopiesMixin, CertifiedEstimator):
    """Any learner with the settings that do best on rows left out.

    The names of what is found are scikit-learn's: scores are higher when better, so errors appear with a minus sign.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import Ridge, Search
    >>> X, noise = np.random.default_rng(4).normal(size=(2, 100, 5))
    >>> y, settings = X[:, 0] + noise[:, 0], {"alpha": [1e-3, 1e-1, 10.0]}
    >>> Search(Ridge(), settings).fit(X, y).best_params_
    {'alpha': 0.001}
    >>> Search(Ridge(), settings, one_standard_error=True).fit(X, y).best_params_
    {'alpha': 0.1}
    """

    estimator: Any = Parameter(
        None, Either(Learner(example="Ridge()"), Nothing()), "What is cloned; None: `Ridge`, over seven alphas."
    )
    parameters: Any = Parameter(
        None,
        Any_("dict, list of dict or None", wrong=(3, "alpha", {}, {"alpha": []}, {"alpha": 1.0})),
        "Values of each parameter, ``step__name`` inside a pipeline; with several dictionaries, the combinations of each. Drawn "
        "settings may also come from distributions of scipy.stats.",
    )
    strategy: str = OneOf(("grid", "random", "halving"), "Which settings are tried, and on how many rows.")
    n_iter: int = Parameter(20, Integer(1), "Settings drawn, when they are drawn.")
    factor: int = Parameter(3, Integer(2), "Of halving: one in so many goes on, to so many times the rows.")
    metric: Any = Parameter(
        "auto",
        Either(Choice("auto"), Named("certifit.metrics.Metric", Metric, METRICS)),
        "What is judged; auto: squared error, for classifiers log loss, or accuracy where there are no probabilities.",
        kind="str or Metric",
    )
    cv: Any = CV
    one_standard_error: bool = ONE_STANDARD_ERROR
    simplicity: Any = Parameter(
        None,
        Either(Function(), Nothing()),
        "A function of a setting (a dict) that is higher the simpler it is. None knows the direction of common parameters, such "
        "as alpha, C and max_depth.",
    )
    time_limit: float | None = Parameter(
        None,
        Either(Real(0, open_low=True), Nothing()),
        "Seconds after which no further setting is begun; at least one is tried.",
    )
    refit: bool = Parameter(True, Flag(), "Whether to fit the best setting on all rows.")
    random_state: Any = RANDOM_STATE
    n_jobs: int | None = N_JOBS.but(text="Threads that fit folds at the same time; None is one, -1 all.")
    verbose: int = VERBOSE

    best_estimator_: Any = Attribute("estimator", "Fitted on all rows, if `refit`.")
    best_params_: dict[str, Any] = Attribute("dict", "The setting chosen.")
    best_score_: float = Attribute("float", "Its mean score on rows left out: the best of many, and so too good.")
    best_index_: int = Attribute("int", "Its place in `cv_results_`.")
    cv_results_: dict[str, Any] = Attribute("dict of arrays", "Everything tried; `to_frame()` is the same as a frame.")
    failures_: list[str] = Attribute("list of str", "What went wrong with which setting.")
    n_splits_: int = Attribute("int", "Number of folds.")
    metric_: str = Attribute("str", "Name of what was judged.")
    complete_: bool = Attribute("bool", "Whether all settings were tried within the time.")

    def _inner(self) -> Any:
        """The learner that is cloned."""
        if self.estimator is not None:
            return self.estimator
        from certifit.models.linear.regression import Ridge

        return Ridge()

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self._inner())
        tags.estimator_type, tags.target_tags = inner.estimator_type, inner.target_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags, tags.target_tags.multi_output = inner.input_tags, False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Search:
        """Try the settings on folds, and fit the best one on all rows."""
        started = time.perf_counter()
        check_parameters(self)
        settings = self._settings()
        table, y = self._rows(X, y)
        weight = check_sample_weight(sample_weight, table.n)
        classes = np.unique(y[weight > 0]) if is_classifier(self._inner()) else None
        data = Data(table, y, weight, sample_weight is not None, classes)
        self.metric_ = self._judged().name
        numbers = _numbers(X, table)
        parts, order = self._parts(data, numbers)
        self.n_splits_ = len(parts)
        trial = Trial(self, data, parts, order, started, numbers)
        with progress(self.verbose, type(self).__name__) as bar:
            trial.run(settings, bar)
        self._choose(settings, trial)
        self.failures_ = trial.failures
        self.complete_ = trial.complete
        if self.refit:
            used = np.flatnonzero(weight > 0)
            self.best_estimator_ = data.fit(clone(self._inner()).set_params(**self.best_params_), used)
            for name in ("n_features_in_", "feature_names_in_", "classes_"):
                if hasattr(self.best_estimator_, name):
                    setattr(self, name, getattr(self.best_estimator_, name))
        warn_of_failures("Search", trial.failures, trial.fits)
        inner = getattr(getattr(self, "best_estimator_", None), "certificate_", None)
        note = "The setting is the best of those tried on rows left out; the model carries no certificate."
        self.certificate_ = inner or Certificate.absent(-self.best_score_, note, seconds=time.perf_counter() - started)
        return self

    def _rows(self, X: Any, y: Any) -> tuple[TableRows, Array]:
        """X and y of one length; the learner looks at their contents."""
        table = TableRows(X)
        if table.n == 0:
            raise ValueError("X has 0 samples: at least 2 are needed.")
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        y = column_or_1d(y, warn=True)
        if y.shape[0] != table.n:
            raise ValueError(f"X and y must have the same number of rows: X has {table.n}, y has {y.shape[0]}.")
        if is_classifier(self._inner()):
            check_classification_targets(y)
            return table, check_labels("y", y)
        try:
            numbers = y.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must hold numbers for a regression: {error}.") from error
        if not np.isfinite(numbers).all():
            raise ValueError("y contains NaN or infinity: drop the rows whose target is missing.")
        return table, y

    def _settings(self) -> list[dict[str, Any]]:
        """The settings to try; a name the learner does not have fails here, before any row is read."""
        wanted = self.parameters
        if wanted is None:
            if self.estimator is not None:
                raise ValueError(
                    "parameters must say which values to try, such as {'alpha': [0.01, 0.1, 1.0]}; got None."
                )
            wanted = {"alpha": np.geomspace(1e-4, 1e2, 7).tolist()}
        several = [wanted] if isinstance(wanted, Mapping) else wanted
        if (
            not isinstance(several, (list, tuple))
            or not several
            or not all(isinstance(d, Mapping) and d for d in several)
        ):
            raise TypeError(
                f"parameters must be a dict of names and values, or a list of them; got {self.parameters!r}."
            )
        drawn = False
        for name, values in (pair for one in several for pair in one.items()):
            if hasattr(values, "rvs"):
                drawn = True
            elif isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
                raise ValueError(
                    f"parameters: the values of {name!r} must be a sequence of one or more, or a distribution; got {values!r}."
                )
        if drawn and self.strategy == "grid":
            raise ValueError("a grid needs lists of values: strategy='random' or 'halving' draws from distributions.")
        if self.strategy == "random" or drawn:
            grid = None if drawn else len(ParameterGrid(list(several)))
            count = self.n_iter if grid is None else min(self.n_iter, grid)
            found = list(ParameterSampler(list(several), count, random_state=self.random_state))
        else:
            found = list(ParameterGrid(list(several)))
        for setting in found:
            clone(self._inner()).set_params(**setting)
        return found

    def _judged(self) -> Metric:
        if not (isinstance(self.metric, str) and self.metric == "auto"):
            return resolve_metric(self.metric)
        if not is_classifier(self._inner()):
            return METRICS["mse"]
        return METRICS["log_loss" if hasattr(self._inner(), "predict_proba") else "accuracy"]

    def _parts(self, data: Data, numbers: Any) -> tuple[list[Fold], Array]:
        """Folds, and an order of the rows whose every start is fair: both by content where X is numeric."""
        kept = data.weight > 0
        used = np.flatnonzero(kept)
        if data.classes is not None and data.classes.shape[0] < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 classes, but the data has one class only.")
        codes = data.y[used] if data.classes is None else np.searchsorted(data.classes, data.y[used])
        if used.shape[0] < 2:
            raise ValueError(f"X has n_samples={used.shape[0]} sample of positive weight: choosing needs at least 2.")
        if numbers is not None or not isinstance(self.cv, (int, np.integer, type(None))):
            rows = np.zeros((used.shape[0], 1)) if numbers is None else numbers[used]
            names_of = None if data.classes is None else data.classes.tolist()
            found = folds_of(self.cv, rows, codes, kept=kept, given=data.y, classes=names_of)
            parts = [Fold(used[train], used[test]) for train, test in found]
        else:
            task = "regression" if data.classes is None else "multiclass"
            dealt = folds(data.y[used], 5 if self.cv is None else int(self.cv), task=task)
            parts = [Fold(used[train], used[test]) for train, test in dealt if test.size]
        if not parts:
            raise ValueError("No row can be left out: every class has one distinct row. Give more rows.")
        draw = generator(self.random_state).random(data.table.n)
        if numbers is not None:
            draw[used] = row_codes(numbers[used], codes.astype(np.float64)).astype(np.float64)
        return parts, draw

    def _choose(self, settings: list[dict[str, Any]], trial: Trial) -> None:
        """The setting with the least error, or the simplest that is as good, among those that got furthest."""
        errors, reached = trial.errors, trial.rung
        with np.errstate(invalid="ignore"):
            weights = trial.weights
            curve = Curve.of(errors, weights)
        last = reached == reached[np.isfinite(curve.mean)].max(initial=-1)
        if not (np.isfinite(curve.mean) & last).any():
            raise trial.first or ValueError(f"{self._judged().label} is not finite for any setting.")
        among = np.flatnonzero(last & np.isfinite(curve.mean))
        price = self._prices([settings[k] for k in among])
        short = Curve(curve.mean[among], curve.standard_error[among], errors[among])
        self.best_index_ = int(among[short.best(price, one_standard_error=self.one_standard_error)])
        self.best_params_ = dict(settings[self.best_index_])
        self.best_score_ = -float(curve.mean[self.best_index_])
        self.cv_results_ = trial.results(settings, curve)

    def _prices(self, settings: list[dict[str, Any]]) -> Array:
        """The higher, the simpler; in doubt the setting that was tried first."""
        if self.simplicity is not None:
            return np.array([float(self.simplicity(setting)) for setting in settings])
        price = -np.arange(len(settings)) / (1.0 + len(settings))
        if not self.one_standard_error:
            return price
        for name in sorted({name for setting in settings for name in setting}):
            plain = name.rsplit("__", 1)[-1]
            values = [setting.get(name) for setting in settings]
            if plain in SIMPLER_HIGH | SIMPLER_LOW and all(isinstance(v, (int, float)) for v in values):
                ranks = np.unique(np.array(values, dtype=np.float64), return_inverse=True)[1]
                price = price + (ranks if plain in SIMPLER_HIGH else -ranks)
            elif len(set(map(repr, values))) > 1:
                raise ValueError(
                    f"one_standard_error=True: which values of {name!r} are simpler is not known. Give simplicity, a function "
                    "of a setting that is higher the simpler it is."
                )
        return price

    def _best(self) -> Any:
        check_is_fitted(self, "cv_results_")
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("refit=False: no model was fitted on all rows; clone the estimator with best_params_.")
        return self.best_estimator_

    def to_frame(self) -> Any:
        """Everything tried as a polars frame, best first."""
        import polars as pl

        check_is_fitted(self, "cv_results_")
        columns = {
            name: [str(v) for v in values] if values.dtype == object else values
            for name, values in self.cv_results_.items()
            if isinstance(values, np.ndarray)
        }
        return pl.DataFrame(columns).sort("rank_test_score")

    def predict(self, X: Any) -> Array:
        """What the best setting predicts."""
        return np.asarray(self._best().predict(X))

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Its probabilities."""
        return np.asarray(self._best().predict_proba(X))

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Its scores."""
        return np.asarray(self._best().decision_function(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The metric of the best setting on other rows, higher when better; with metric="auto" its own score, R² or accuracy."""
        model = self._best()
        if isinstance(self.metric, str) and self.metric == "auto":
            return float(model.score(X, y, **({} if sample_weight is None else {"sample_weight": sample_weight})))
        metric = self._judged()
        prediction = predict_for(model, X, metric.needs)
        value = metric(y, prediction, sample_weight=sample_weight, classes=getattr(model, "classes_", None))
        return -value if metric.lower_is_better else value


def _numbers(X: Any, table: TableRows) -> Any:
    """X as a numeric matrix, which has codes of its content; None where a column holds anything else."""
    if is_sparse(X):
        return X.tocsr()
    columns = [table.column(name) for name in table.names]
    if any(column.dtype.kind == "c" for column in columns):  # the learner will refuse them
        return None
    try:
        return np.column_stack([column.astype(np.float64) for column in columns])
    except (TypeError, ValueError):
        return None
