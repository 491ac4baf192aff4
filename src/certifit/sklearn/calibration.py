"""``sklearn.calibration``: probabilities that come true, by scikit-learn's folds and our maps."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.calibration as theirs
from sklearn import get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import LeaveOneOut, check_cv
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.multiclass import check_classification_targets

from certifit._types import Array, is_sparse
from certifit.certificate import Certificate
from certifit.data.gate import check_sample_weight
from certifit.models.reductions import calibrated as ours
from certifit.sklearn.svm import LinearSVC
from certifit.sklearn.translation import Data, DropIn, Free, Same, Table, same
from certifit.sklearn.translation.table import labels

__all__ = ["CalibratedClassifierCV"]


class Pair:
    """A fitted classifier and the maps of its scores; a class that the classifier has not seen has probability zero."""

    def __init__(self, estimator: Any, method: str, classes: Array) -> None:
        self.estimator, self.method, self.classes = estimator, method, classes
        self.known = np.searchsorted(classes, estimator.classes_)
        self.calibrators: list[Any] = []

    def learn(self, scores: Array, codes: Array, weight: Array) -> Pair:
        """Fit the maps to scores of rows whose labels have these codes."""
        if self.method == "temperature":  # which has no place for a class without a score
            seen = np.isin(codes, self.known)
            scores, codes, weight = scores[seen], codes[seen], weight[seen]
            if not seen.any():
                self.calibrators = [1.0]
                return self
        place = np.full(self.classes.shape[0], -1)
        place[self.known] = np.arange(self.known.shape[0])
        self.calibrators = ours.learn_maps(self.method, scores, place[codes], weight, self.known.shape[0])
        return self

    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities of all classes."""
        found = ours.mapped(
            self.method, self.calibrators, responses(self.estimator, X, self.method), self.known.shape[0]
        )
        out = np.zeros((found.shape[0], self.classes.shape[0]))
        out[:, self.known] = found
        return out


class Average:
    """Pairs whose probabilities are averaged."""

    def __init__(self, pairs: list[Pair]) -> None:
        self.pairs, self.classes_ = pairs, pairs[0].classes
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(pairs[0].estimator, name):
                setattr(self, name, getattr(pairs[0].estimator, name))
        inner = [getattr(pair.estimator, "certificate_", None) for pair in pairs]
        told = [one for one in inner if one is not None]
        note = "The maps are learned on rows left out. The classifier carries no certificate."
        self.certificate_ = Certificate.worst(told) if len(told) == len(inner) else Certificate.absent(0.0, note)


def responses(model: Any, X: Any, method: str) -> Array:
    """Decision values, or else probabilities (their logarithms for a temperature): (n, 1) for two classes, (n, K) for more."""
    if hasattr(model, "decision_function"):
        found = np.asarray(model.decision_function(X), dtype=np.float64)
        return found.reshape(-1, 1) if found.ndim == 1 else found
    p = np.asarray(model.predict_proba(X), dtype=np.float64)
    if method == "temperature":
        p = np.log(np.clip(p, ours.EDGE, 1.0))
        return p[:, 1:] - p[:, :1] if p.shape[1] == 2 else p
    return p[:, 1:] if p.shape[1] == 2 else p


def rows_of(values: Any, at: Array) -> Any:
    """Some rows of a matrix, a data frame or a list."""
    if hasattr(values, "iloc"):
        return values.iloc[at]
    if is_sparse(values):
        return values.tocsr()[at]
    return values[at] if hasattr(values, "shape") else [values[i] for i in at]


class CalibratedClassifierCV(DropIn, theirs.CalibratedClassifierCV):
    """Any classifier, made to give probabilities that come true. The default classifier is our `LinearSVC`."""

    _ours = ours.CalibratedClassifier
    _table: ClassVar[Table] = {
        **same("estimator", "method", "cv"),
        "n_jobs": Free("the folds are fitted one after the other"),
        "ensemble": Same(),
    }

    def _get_estimator(self) -> Any:
        """The classifier that is cloned."""
        if self.estimator is not None:
            return self.estimator
        default = LinearSVC(random_state=0)
        return default.set_fit_request(sample_weight=True) if get_config()["enable_metadata_routing"] else default

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Any:
        """Fit classifiers on folds and the maps of their scores on the rows left out.

        Parameters
        ----------
        X : array, sparse matrix, data frame or list of n_samples
            Rows, as the classifier takes them.
        y : array of shape (n_samples,)
            Labels.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 counts a row twice.
        **fit_params : Any
            For `fit` of the classifier.
        """
        self._checked(self)
        check_classification_targets(y)
        y = labels(y)
        X, y = indexable(X, y)
        sample_weight = None if sample_weight is None else np.asarray(sample_weight)
        given, to_split = self._passed_on(sample_weight, fit_params)
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        n = codes.shape[0]
        weight = np.ones(n) if sample_weight is None else check_sample_weight(sample_weight, n)
        folds = list(self._folds(codes).split(X, codes, **to_split))
        self._keep(Average(self._pairs(X, y, classes, codes, weight, folds, given)), Data(self, X, y, sample_weight))
        return self

    def _pairs(
        self, X: Any, y: Any, classes: Array, codes: Array, weight: Array, folds: list[Any], given: Mapping[str, Any]
    ) -> list[Pair]:
        inner, n = self._get_estimator(), codes.shape[0]

        def fitted(at: Array) -> Pair:
            params = {name: rows_of(value, at) if _aligned(value, n) else value for name, value in given.items()}
            return Pair(clone(inner).fit(rows_of(X, at), rows_of(y, at), **params), self.method, classes)

        def scores(pair: Pair, at: Array) -> Array:
            return responses(pair.estimator, rows_of(X, at), self.method)

        together = not isinstance(inner, FrozenEstimator) if self.ensemble == "auto" else bool(self.ensemble)
        if together:
            pairs = [fitted(train) for train, _ in folds]
            for pair, (_, test) in zip(pairs, folds, strict=True):
                pair.learn(scores(pair, test), codes[test], weight[test])
            return pairs
        final = fitted(np.arange(n))
        K = final.known.shape[0]
        left_out = np.full((n, 1 if K == 2 else K), np.nan)
        for train, test in folds:
            pair = fitted(train)
            if K == 2:
                left_out[test] = scores(pair, test)
            else:
                left_out[np.ix_(test, pair.known)] = scores(pair, test)
        # A class that a fold has not seen scores there as low as any.
        left_out[np.isnan(left_out)] = np.nanmin(left_out)
        return [final.learn(left_out, codes, weight)]

    def _passed_on(self, sample_weight: Any, fit_params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What `fit` of the classifier and `split` of the folds get."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
            return dict(routed.estimator.fit), dict(routed.splitter.split)
        inner, given = self._get_estimator(), dict(fit_params)
        if sample_weight is not None:
            if "sample_weight" in inspect.signature(inner.fit).parameters:
                given["sample_weight"] = sample_weight
            else:
                warnings.warn(
                    f"Since {type(inner).__name__} does not appear to accept sample_weight, sample weights will only be used for "
                    "the calibration itself.",
                    UserWarning,
                    stacklevel=3,
                )
        return given, {}

    def _folds(self, codes: Array) -> Any:
        """Folds in which every class can be calibrated, as scikit-learn demands them."""
        if isinstance(self.cv, LeaveOneOut):
            raise ValueError(
                "LeaveOneOut cross-validation does not allow all classes to be present in test splits. Please use a "
                "cross-validation generator that allows all classes to appear in every test and train split."
            )
        count = self.cv if isinstance(self.cv, int) else getattr(self.cv, "n_splits", None)
        if count and (np.bincount(codes) < count).any():
            raise ValueError(
                f"Requesting {count}-fold cross-validation but provided less than {count} examples for at least one class."
            )
        return check_cv(self.cv, codes, classifier=True)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {"classes_": model.classes_, "calibrated_classifiers_": model.pairs}


def _aligned(value: Any, n: int) -> bool:
    """Whether a parameter of `fit` has an entry for every row."""
    if isinstance(value, (str, bytes, Mapping)):
        return False
    length = value.shape[0] if getattr(value, "shape", ()) else len(value) if hasattr(value, "__len__") else -1
    return bool(length == n)
