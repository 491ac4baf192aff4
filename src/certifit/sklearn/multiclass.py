"""``sklearn.multiclass``: many classes, or many labels, by models of two classes.

The parts are fitted one beside the other by `certifit.models.reductions`; what scikit-learn reads from them, it reads from ours.
A label that all rows have, or none, needs no model.
"""

from __future__ import annotations

import itertools
import time
import warnings
from typing import Any, ClassVar

import numpy as np
import sklearn.multiclass as theirs
from sklearn.base import BaseEstimator, clone
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.gate import check_x
from certifit.models.reductions import multiclass as ours
from certifit.models.reductions.multiclass import combined, side_by_side
from certifit.sklearn.translation import Data, DropIn, Free, Same, Table, same
from certifit.sklearn.translation.drawing import stream
from certifit.sklearn.translation.routing import for_the_estimator
from certifit.sklearn.translation.table import labels as one_column

__all__ = ["OneVsOneClassifier", "OneVsRestClassifier", "OutputCodeClassifier"]

ROWS: Table = {"estimator": Same(), "n_jobs": Same()}


class _Parts(DropIn):
    """Models of two classes beside each other; the certificate of their sum is the sum of theirs."""

    estimator: Any
    n_jobs: int | None
    estimators_: Any
    classes_: Array
    _known: ClassVar[str] = "classes"
    """What a label that was not announced is said not to belong to."""

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Any:  # type: ignore[override]  # the signature is scikit-learn's
        """As `DropIn.fit`; `fit_params` go to the estimator, if metadata routing is switched on."""
        self._checked(self)
        self._fit(X, y, for_the_estimator(self, "fit", fit_params))
        return self

    def _fit(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        raise TypeError(f"{type(self).__name__} must say which problems of two classes it solves.")

    def _solve(self, jobs: list[tuple[Any, ...]]) -> None:
        """Fit all problems, and keep them with their certificate and what they know of the columns."""
        started = time.perf_counter()
        self.estimators_ = side_by_side(_fit_one, jobs, self.n_jobs)
        self.model_ = self.estimators_
        learned = [part for part in self.estimators_ if not isinstance(part, Constant)]
        self._judge(combined(learned, time.perf_counter() - started))
        self._columns()

    def _columns(self) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            for part in self.estimators_:
                if hasattr(part, name):
                    setattr(self, name, getattr(part, name))

    def _judge(self, certificate: Certificate | None) -> None:
        """The parts have said themselves where they stopped short."""
        assert certificate is not None
        self.certificate_ = certificate

    def _goes_on(self, y: Any, classes: Any) -> bool:
        """Whether this is a later call of `partial_fit`; the first one says which classes there will be."""
        first = not hasattr(self, "estimators_") or not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if first:
            self.classes_ = np.unique(np.asarray(classes))
        elif classes is not None and not np.array_equal(self.classes_, np.unique(np.asarray(classes))):
            raise ValueError(
                f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {self.classes_!r}"
            )
        if len(np.setdiff1d(y, self.classes_)):
            raise ValueError(
                f"Mini-batch contains {np.unique(y)} while {self._known} must be subset of {self.classes_}"
            )
        return not first


class Constant(BaseEstimator):
    """What to say of a label that all training rows have, or none."""

    def __init__(self, label: int = 0) -> None:
        self.label = label

    def predict(self, X: Any) -> Array:
        """The label."""
        return np.full(Data(None, X).rows, self.label)

    decision_function = predict

    def predict_proba(self, X: Any) -> Array:
        """One for the label."""
        return np.tile([1.0 - self.label, float(self.label)], (Data(None, X).rows, 1))


def _fit_one(base: Any, X: Any, target: Array, params: dict[str, Any], names: tuple[Any, Any] | None = None) -> Any:
    """A model of one problem."""
    labels = np.unique(target)
    if labels.shape[0] > 1:
        return clone(base).fit(X, target, **params)
    label = int(labels[0])
    if names is not None:
        warnings.warn(f"Label {names[max(label, 0)]} is present in all training examples.", UserWarning, stacklevel=2)
    return Constant(label)


def _go_on(part: Any, X: Any, target: Array, params: dict[str, Any]) -> Any:
    """A model of one problem after one more part of the rows."""
    return part.partial_fit(X, target, classes=np.array([0, 1]), **params) if target.size else part


def _check_labels(y: Array) -> None:
    """Refuse targets that are no classes; to look at whole numbers and words for this takes longer than many a fit."""
    if y.ndim != 1 or y.dtype.kind not in "biuSU":
        check_classification_targets(y)


def _learns_in_parts(self: Any) -> bool:
    """Raises what the estimator raises, if it has no `partial_fit`."""
    part = self.estimators_[0] if hasattr(self, "estimators_") else self.estimator
    return callable(part.partial_fit)


class OneVsRestClassifier(_Parts, theirs.OneVsRestClassifier):
    """Each class against all others; an indicator matrix as y has several labels a row."""

    _ours = ours.OneVsRest
    _table: ClassVar[Table] = {**ROWS, "verbose": Free("the parts have progress bars of their own")}

    def _fit(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        self._late: dict[str, Any] = {}
        labels = y if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biuSU" else None
        self.classes_ = np.empty(0) if labels is None else np.unique(labels)
        if labels is not None and self.classes_.shape[0] > 2:
            targets = (labels[:, None] == self.classes_).astype(np.int64)
        else:
            binarizer = self._late["binarizer"] = LabelBinarizer(sparse_output=True)
            targets = binarizer.fit_transform(y).toarray()
            self.classes_ = binarizer.classes_
        self._solve([
            (self.estimator, X, target, params, (f"not {label}", label))
            for target, label in zip(targets.T, self.classes_[-targets.shape[1] :], strict=True)
        ])  # fmt: skip

    @property
    def label_binarizer_(self) -> Any:
        """Labels as an indicator matrix; made of the classes when it is asked for, which takes longer than many a fit."""
        if "classes_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no label_binarizer_ before it is fitted.")
        if "binarizer" not in self._late:
            self._late["binarizer"] = LabelBinarizer(sparse_output=True).fit(self.classes_)
        return self._late["binarizer"]

    @available_if(_learns_in_parts)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, **partial_fit_params: Any) -> Any:
        """Let every part go on with these rows; `classes` are needed in the first call."""
        params = for_the_estimator(self, "partial_fit", partial_fit_params)
        if not self._goes_on(y, classes):
            self._late = {}
            self.estimators_ = [clone(self.estimator) for _ in self.classes_]
        targets = self.label_binarizer_.transform(y).toarray()
        jobs = [(part, X, target, params) for part, target in zip(self.estimators_, targets.T, strict=False)]
        self.estimators_ = side_by_side(_go_on, jobs, self.n_jobs)
        self._columns()
        return self


class OneVsOneClassifier(_Parts, theirs.OneVsOneClassifier):
    """Each class against each other one; votes decide, and confidence between equal votes."""

    _ours = ours.OneVsOne
    _known = "it"
    _table: ClassVar[Table] = ROWS

    def _rows(self, X: Any, y: Any, reset: bool) -> tuple[Any, Array]:
        labels = one_column(y)
        _check_labels(labels)
        rows = check_x(self, X, reset=reset, allow_nan=True, accept_sparse=("csr", "csc"))
        if rows.shape[0] != labels.shape[0]:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {[rows.shape[0], labels.shape[0]]!r}"
            )
        return rows, labels

    def _fit(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        rows, labels = self._rows(X, y, reset=True)
        self.classes_ = np.unique(labels)
        if self.classes_.shape[0] == 1:
            raise ValueError("OneVsOneClassifier can not be fit when only one class is present.")
        both = get_tags(self).input_tags.pairwise
        jobs, indices = [], []
        for taken, target in self._pairs(labels):
            part = rows[np.ix_(taken, taken)] if both else rows[taken]
            jobs.append((self.estimator, part, target, {name: _of(value, taken) for name, value in params.items()}))
            indices.append(taken)
        width = rows.shape[1]
        self._solve(jobs)
        self.n_features_in_ = width
        self.pairwise_indices_ = tuple(indices) if both else None

    def _pairs(self, labels: Array) -> list[tuple[Array, Array]]:
        """Rows of each pair of classes, and which of them are of the second."""
        found = []
        for first, second in itertools.combinations(self.classes_, 2):
            taken = np.flatnonzero((labels == first) | (labels == second))
            found.append((taken, (labels[taken] == second).astype(np.intp)))
        return found

    @available_if(_learns_in_parts)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, **partial_fit_params: Any) -> Any:
        """Let every part go on with these rows; `classes` are needed in the first call."""
        params = for_the_estimator(self, "partial_fit", partial_fit_params)
        later = self._goes_on(y, classes)
        count = self.classes_.shape[0]
        if not later:
            self.estimators_ = [clone(self.estimator) for _ in range(count * (count - 1) // 2)]
        rows, labels = self._rows(X, y, reset=not later)
        jobs = [
            (part, rows[taken], target, {name: _of(value, taken) for name, value in params.items()})
            for part, (taken, target) in zip(self.estimators_, self._pairs(labels), strict=True)
        ]
        self.estimators_ = side_by_side(_go_on, jobs, self.n_jobs)
        self.pairwise_indices_ = None
        return self


def _of(value: Any, taken: Array) -> Any:
    """The part of an argument that belongs to some of the rows."""
    return np.asarray(value)[taken] if np.ndim(value) else value


class OutputCodeClassifier(_Parts, theirs.OutputCodeClassifier):
    """A word of bits for each class, drawn as scikit-learn draws it, and a model for each bit."""

    _ours = ours.OutputCode
    _table: ClassVar[Table] = {
        **ROWS,
        **same("code_size", "random_state"),
    }

    def _fit(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        labels = one_column(y)
        _check_labels(labels)
        if labels.size == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape={np.shape(X)}) while a minimum of 1 is required by OutputCodeClassifier."
            )
        self.classes_, codes = np.unique(labels, return_inverse=True)
        size = (self.classes_.shape[0], int(self.classes_.shape[0] * self.code_size))
        bits = stream(self.random_state).uniform(size=size) > 0.5
        self.code_book_ = np.where(bits, 1.0, -1.0 if hasattr(self.estimator, "decision_function") else 0.0)
        targets = self.code_book_[np.ravel(codes)].astype(int)
        self._solve([(self.estimator, X, target, params) for target in targets.T])
