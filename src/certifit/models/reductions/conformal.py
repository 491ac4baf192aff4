r"""Predictions with a guarantee: intervals and sets that hold the truth as often as they promise, whatever the model.

Rows that can be exchanged are all that is assumed. With scores r_i of n rows that the model did not learn from, and

    q = the ⌈(n + 1)·level⌉-th smallest of r_1, …, r_n        (∞ if there are too few)

a new row has r ≤ q with probability at least `level`, and at most level + 1/(n + 1) where no scores tie.

| method | score | interval | covers, at least |
|---|---|---|---|
| split | \|y − f(x)\| on rows set aside | f(x) ± q | level |
| quantile | max(a(x) − y, y − b(x)), for fitted quantiles a, b | [a(x) − q, b(x) + q] | level |
| cv+, jackknife+ | \|y_i − f_{−i}(x_i)\| | quantiles of f_{−i}(x) ∓ r_i over i | 2·level − 1, about level |
| adaptive sets | Σ_k p_k of the classes likelier than y | all classes up to q | level |

Vovk, Gammerman and Shafer (2005); Romano, Patterson and Candès (2019); Barber, Candès, Ramdas and Tibshirani (2021); Romano,
Sesia and Candès (2020).
"""

from __future__ import annotations

import inspect
import time
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from certifit._types import Array, Matrix
from certifit.base import CertifiedEstimator, CopiesMixin
from certifit.certificate import Certificate
from certifit.data.gate import check_real, check_x, check_xy, like_input
from certifit.data.targets import several_classes
from certifit.evaluation.splits.folds import content_folds
from certifit.models.reductions.multiclass import OfClassifier
from certifit.parameters import Choice, Declared, Either, Fitted, Flag, Integer, Learner, Nothing, Parameter, Real
from certifit.parameters import check_parameters as check_all

__all__ = ["ConformalClassifier", "ConformalRegressor", "adaptive_scores", "conformal_quantile"]

LEVEL = Parameter(0.9, Real(0, 1, open_low=True, open_high=True), "How often the truth must lie within.")
CALIBRATION = Parameter(
    0.25,
    Real(0, 0.5, open_low=True),
    "Share of the rows set aside; one in so many distinct rows, by content, so that copies of a row stay together.",
)


def conformal_quantile(scores: Array, weight: Array, level: float) -> Array:
    """The least value that scores of weight (Σweight + 1)·level do not exceed, along the first axis; ∞ if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.models.reductions.conformal import conformal_quantile
    >>> scores = np.arange(1.0, 10.0)
    >>> float(conformal_quantile(scores, np.ones(9), 0.8)), float(conformal_quantile(scores, np.ones(9), 0.95))
    (8.0, inf)
    """
    if scores.shape[0] == 0:
        return np.full(scores.shape[1:], np.inf)
    order = np.argsort(scores, axis=0, kind="stable")
    mass = np.cumsum(weight[order], axis=0)
    needed = (float(weight.sum()) + 1.0) * level
    enough = mass >= needed * (1.0 - 1e-12)
    first = enough.argmax(axis=0)
    ordered = np.take_along_axis(scores, order, axis=0)
    found = np.take_along_axis(ordered, np.expand_dims(first, 0), axis=0)[0]
    return np.where(enough.any(axis=0), found, np.inf)


def adaptive_scores(probabilities: Any) -> Array:
    """For each row and class, the probability of all classes that are likelier; of equally likely ones, those before it.

    The class itself does not count: otherwise the last one had a score of 1 in every row, and wherever more of the rows than the
    level leaves out had it for a truth, all sets would be full.

    Examples
    --------
    >>> from certifit.models.reductions.conformal import adaptive_scores
    >>> adaptive_scores([[0.2, 0.5, 0.3]])
    array([[0.8, 0. , 0.5]])
    """
    p = np.asarray(probabilities, dtype=np.float64)
    order = np.argsort(-p, axis=1, kind="stable")
    before = np.cumsum(np.take_along_axis(p, order[:, :-1], axis=1), axis=1)
    scores = np.zeros_like(p)
    np.put_along_axis(scores, order[:, 1:], before, axis=1)
    return scores


class _Conformal(CopiesMixin, CertifiedEstimator):
    """What both share: rows at the gate, and rows set aside."""

    weights_are_counts = True  # a quantile of n scores depends on n
    calibration: float
    level: float

    def _gate(self, X: Any, y: Any, sample_weight: Any) -> tuple[Matrix, Array, Array]:
        tags = get_tags(self._inner()).input_tags
        return check_xy(
            self,
            X,
            y,
            sample_weight=sample_weight,
            numeric_target=not isinstance(self, ClassifierMixin),
            accept_sparse=("csr",) if tags.sparse else False,
            allow_nan=bool(tags.allow_nan),
            min_samples=2,
        )

    def _new(self, X: Any) -> Matrix:
        tags = get_tags(self._inner()).input_tags
        sparse = ("csr",) if tags.sparse else False
        return check_x(self, X, reset=False, accept_sparse=sparse, allow_nan=bool(tags.allow_nan))

    def _level(self, level: float | None) -> float:
        if level is None:
            return float(self.level)
        return float(check_real("level", level, low=0.0, high=1.0, open_low=True, open_high=True))

    def _aside(self, X: Matrix, y: Array) -> Array:
        """Which rows calibrate: one in 1/calibration of the distinct rows."""
        return content_folds(X, y, max(2, round(1.0 / float(self.calibration)))) == 0

    def _fitted(self, X: Matrix, y: Array, weight: Array, given: bool, **more: Any) -> Any:
        model = clone(self._inner()).set_params(**more)
        if not given:
            return model.fit(X, y)
        if not has_fit_parameter(model, "sample_weight"):
            raise ValueError(f"sample_weight was given, but {type(model).__name__}.fit takes no sample_weight.")
        return model.fit(X, y, sample_weight=weight)

    def _say(self, model: Any, started: float) -> None:
        note = "The coverage is guaranteed for exchangeable rows; the model inside carries no certificate."
        inner = getattr(model, "certificate_", None)
        self.certificate_ = inner or Certificate.absent(0.0, note, seconds=time.perf_counter() - started)


class ConformalRegressor(Declared, RegressorMixin, _Conformal):
    """Any regressor, with intervals that hold the truth as often as they promise.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import ConformalRegressor, Ridge
    >>> X, noise = np.random.default_rng(0).normal(size=(2, 400, 1))
    >>> y = X[:, 0] + noise[:, 0]
    >>> model = ConformalRegressor(Ridge(alpha=1e-3), level=0.9).fit(X[:200], y[:200])
    >>> low, high = model.predict_interval(X[200:]).T
    >>> bool(np.mean((low <= y[200:]) & (y[200:] <= high)) > 0.85)
    True
    """

    estimator: Any = Parameter(
        None,
        Either(Learner(example="Ridge()"), Nothing()),
        "What is cloned; None: `Ridge`, for quantiles `QuantileRegressor`. Quantiles need one with a parameter `quantile`.",
    )
    method: str = Parameter(
        "split", Choice("split", "cv+", "jackknife+", "quantile"), "How scores of unseen rows are found."
    )
    level: float = LEVEL
    calibration: float = CALIBRATION
    n_folds: int = Parameter(
        10, Integer(2), "Folds of cv+, dealt by content; jackknife+ has one for each distinct row."
    )

    estimator_: Any = Fitted("regressor", "The model behind `predict`; of quantiles, that of the median.")
    estimators_: list[Any] = Fitted("list", "The models behind the intervals.")
    scores_: Array = Fitted("array", "Scores of rows that their models did not learn from.")

    def _inner(self) -> Any:
        """The regressor that is cloned."""
        if self.estimator is not None:
            return self.estimator
        from certifit.models.linear.regression import Ridge
        from certifit.models.linear.robust import QuantileRegressor

        return QuantileRegressor(alpha=0.0) if self.method == "quantile" else Ridge()

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ConformalRegressor:
        """Fit the models, and score rows that they did not learn from."""
        started = time.perf_counter()
        check_all(self)
        quantiles = self.method == "quantile"
        if quantiles and "quantile" not in inspect.signature(type(self._inner())).parameters:
            raise ValueError(f"method='quantile' needs a regressor with a parameter quantile; got {self._inner()!r}.")
        X, y, weight = self._gate(X, y, sample_weight)
        given = sample_weight is not None
        if self.method in ("cv+", "jackknife+"):
            fold = content_folds(X, y, self.n_folds if self.method == "cv+" else y.shape[0])
            self.estimators_, self.scores_ = [], np.empty(y.shape[0])
            for k in range(int(fold.max()) + 1):
                out = fold == k
                self.estimators_.append(self._fitted(X[~out], y[~out], weight[~out], given))
                self.scores_[out] = np.abs(y[out] - self.estimators_[k].predict(X[out]))
            self._fold, self._weight = fold, weight
            self.estimator_ = self._fitted(X, y, weight, given)
        else:
            out = self._aside(X, y)
            learn = (X[~out], y[~out], weight[~out], given)
            if quantiles:
                ends = (0.5 - 0.5 * self.level, 0.5 + 0.5 * self.level)
                self.estimators_ = [self._fitted(*learn, quantile=end) for end in ends]
                self.estimator_ = self._fitted(*learn, quantile=0.5)
                low, high = (model.predict(X[out]) for model in self.estimators_)
                self.scores_ = np.maximum(low - y[out], y[out] - high)
            else:
                self.estimator_ = self._fitted(*learn)
                self.estimators_ = [self.estimator_]
                self.scores_ = np.abs(y[out] - self.estimator_.predict(X[out]))
            self._weight = weight[out]
        self._say(self.estimator_, started)
        return self

    def predict(self, X: Any) -> Array:
        """What the model predicts."""
        check_is_fitted(self, "scores_")
        rows = self._new(X)
        return like_input(rows, np.asarray(self.estimator_.predict(rows)))

    def predict_interval(self, X: Any, level: float | None = None) -> Array:
        """Intervals of new rows, shape (n_samples, 2); infinite where there are too few scores for the level.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        level : float, optional
            Another level than that of the fit; quantiles are fitted for theirs, and corrected for any.
        """
        check_is_fitted(self, "scores_")
        rows, level = self._new(X), self._level(level)
        if self.method in ("cv+", "jackknife+"):
            said = np.array([model.predict(rows) for model in self.estimators_])[self._fold]
            # The least of several lower ends is the greatest of their opposites.
            low = -conformal_quantile(self.scores_[:, None] - said, self._weight, level)
            high = conformal_quantile(self.scores_[:, None] + said, self._weight, level)
            return np.column_stack([low, high])
        q = float(conformal_quantile(self.scores_, self._weight, level))
        low, high = (np.asarray(self.estimators_[k].predict(rows)) for k in (0, -1))
        # Quantiles may cross, and a correction may be negative: an interval that would be empty is one point.
        low, high = low - q, high + q
        middle = 0.5 * (low + high) if np.isfinite(q) else low
        return np.column_stack([np.minimum(low, middle), np.maximum(high, middle)])


class ConformalClassifier(Declared, OfClassifier, ClassifierMixin, _Conformal):
    """Any classifier with probabilities, with sets of labels that hold the truth as often as they promise.

    A set has the likeliest labels, as many as the row needs; it is never empty.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import ConformalClassifier, LogisticRegression
    >>> X, noise = np.random.default_rng(0).normal(size=(2, 600, 1))
    >>> y = np.where(X[:, 0] + noise[:, 0] > 0, "up", "down")
    >>> model = ConformalClassifier(LogisticRegression(), level=0.9).fit(X[:300], y[:300])
    >>> sets = model.predict_set(X[300:])
    >>> sets.shape, bool(sets[y[300:, None] == model.classes_].mean() > 0.85)
    ((300, 2), True)
    """

    estimator: Any = Parameter(
        None,
        Either(Learner(("predict_proba",), "LogisticRegression()"), Nothing()),
        "What is cloned; None: `LogisticRegression`.",
    )
    level: float = LEVEL
    class_conditional: bool = Parameter(
        False, Flag(), "Whether the promise holds for the rows of each class by itself, by an own quantile for each."
    )
    calibration: float = CALIBRATION

    classes_: Array = Fitted("array of shape (K,)", "The labels.")
    estimator_: Any = Fitted("classifier", "Fitted on the rows that were not set aside.")
    scores_: Array = Fitted("array", "Scores of the rows set aside.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ConformalClassifier:
        """Fit the classifier, and score rows that were set aside."""
        started = time.perf_counter()
        check_all(self)
        X, y, weight = self._gate(X, y, sample_weight)
        self.classes_, codes = several_classes(self, y)
        out = self._aside(X, codes.astype(np.float64))
        for k in range(self.classes_.shape[0]):
            if out[codes == k].all():  # a class must be learned before it can be judged
                out[codes == k] = False
        learn = (X[~out], self.classes_[codes[~out]], weight[~out], sample_weight is not None)
        self.estimator_ = self._fitted(*learn)
        # Where every class has one distinct row nothing can be set aside: no scores, and sets of all labels.
        self.scores_ = self._scores(X[out])[np.arange(int(out.sum())), codes[out]] if out.any() else np.zeros(0)
        self._weight, self._codes = weight[out], codes[out]
        self._say(self.estimator_, started)
        return self

    def _scores(self, X: Matrix) -> Array:
        return adaptive_scores(self.estimator_.predict_proba(X))

    def predict_set(self, X: Any, level: float | None = None) -> Array:
        """Which labels are in the set of each row, shape (n_samples, n_classes), in the order of `classes_`.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        level : float, optional
            Another level than that of the fit.
        """
        check_is_fitted(self, "scores_")
        rows, level = self._new(X), self._level(level)
        scores = self._scores(rows)
        q = np.full(self.classes_.shape[0], conformal_quantile(self.scores_, self._weight, level))
        if self.class_conditional:
            for k in range(q.shape[0]):
                own = self._codes == k
                q[k] = conformal_quantile(self.scores_[own], self._weight[own], level) if own.any() else np.inf
        return np.asarray(scores <= q + 1e-12)  # the likeliest label has a score of zero: no set is empty

    def predict_proba(self, X: Any) -> Array:
        """The classifier's probabilities."""
        check_is_fitted(self, "scores_")
        rows = self._new(X)
        return like_input(rows, np.asarray(self.estimator_.predict_proba(rows)))

    def predict(self, X: Any) -> Array:
        """The classifier's label."""
        most = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[most])
