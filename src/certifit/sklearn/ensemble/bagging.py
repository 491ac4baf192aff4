"""Bagging under scikit-learn's names: rows and columns are drawn by its rule and from its stream, so the bags are the same.

A copy that takes weights gets how often each row was drawn; one that does not gets the rows themselves.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.ensemble as theirs
from sklearn import get_config
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import column_or_1d
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.validation import has_fit_parameter, validate_data

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.gate import check_x
from certifit.models.forest import bagging as ours
from certifit.models.reductions.multiclass import side_by_side
from certifit.sklearn.translation import Data, DropIn, Free, Here, Of, Table, same
from certifit.sklearn.translation.drawing import stream
from certifit.sklearn.translation.routing import for_the_estimator
from certifit.sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = ["BaggingClassifier", "BaggingRegressor"]

LARGEST_SEED = np.iinfo(np.int32).max
FEWEST_DRAWS = 10  # below this, and below the cube root of the rows, scikit-learn warns

ROWS: Table = {
    **same("estimator", "n_estimators"),
    "max_samples": Of(
        lambda value, data: 1.0 if value is None else value, "the same; None is as many as there are rows"
    ),
    **same("max_features", "bootstrap"),
    "bootstrap_features": Here("columns are drawn by scikit-learn's rule"),
    "oob_score": Of(lambda value, data: bool(value), "the same; a function judges what the rows out of bag were told"),
    "warm_start": Here("copies that are there already are kept, as by scikit-learn"),
    **same("n_jobs", "random_state"),
    "verbose": Free("the copies have progress bars of their own"),
}


class _Bagging(DropIn):
    """What bagging for classes and for numbers shares."""

    estimator: Any
    n_estimators: int
    max_samples: Any
    max_features: Any
    bootstrap: bool
    bootstrap_features: bool
    oob_score: Any
    warm_start: bool
    n_jobs: int | None
    random_state: Any
    estimators_: list[Any]
    estimators_features_: list[Array]
    n_features_in_: int
    _member: ClassVar[Any]

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Any:  # type: ignore[override]
        """As `DropIn.fit`; weights are chances to be drawn, and `fit_params` go to the copies."""
        self._checked(self)
        params = for_the_estimator(self, "fit", fit_params)
        X, y = self._read(X, y)
        if sample_weight is not None:
            sample_weight = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), X.shape[:1])
            if not sample_weight.any():
                raise ValueError("Sample weights must contain at least one weight that is not zero.")
            if not self.bootstrap:
                _say(
                    f"When fitting {type(self).__name__} with sample_weight it is recommended to use bootstrap=True, got False."
                )
        started, target = time.perf_counter(), self._target(y)
        if self._grow(X, target, sample_weight, params):
            if self.oob_score:
                self._out_of_bag(X, target)
            self.model_ = self.estimators_
            self.certificate_ = Certificate.absent(
                0.0, "A mean of fits optimizes no objective as a whole.", iterations=len(self.estimators_),
                seconds=time.perf_counter() - started,
            )  # fmt: skip
        return self

    def _read(self, X: Any, y: Any) -> tuple[Any, Array]:
        """Rows in whatever form the copies take, and their targets; scikit-learn takes longer to look at them than many a fit."""
        if _are_numbers(X, 2) and X.dtype.kind == "f" and _are_numbers(y, 1) and X.shape[0] == y.shape[0]:
            return check_x(self, X, reset=True), y
        kinds: Any = {"accept_sparse": ["csr", "csc"], "dtype": None, "ensure_all_finite": False}
        X, y = validate_data(self, X, y, multi_output=True, **kinds)
        return X, y

    def _target(self, y: Array) -> Array:
        """What the copies learn."""
        if y.ndim == 1:
            return y
        return column_or_1d(y, warn=True) if y.shape[1] == 1 else y

    def _grow(self, X: Any, y: Array, weight: Array | None, params: dict[str, Any]) -> bool:
        """Fit the copies that are missing; False where none is."""
        if not self.bootstrap and self.oob_score:
            raise ValueError("Out of bag estimation only available if bootstrap=True")
        if self.warm_start and self.oob_score:
            raise ValueError("Out of bag estimate only available if warm_start=False")
        self.estimator_ = self._member() if self.estimator is None else self.estimator
        self._n_samples, self._sample_weight = X.shape[0], weight
        self._max_samples, self._max_features = self._amounts(X, weight)
        self.__dict__.pop("oob_score_", None)
        if not self.warm_start or not hasattr(self, "estimators_"):
            self.estimators_, self.estimators_features_, self._drawn = [], [], []
        there = len(self.estimators_)
        if self.n_estimators < there:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to len(estimators_)={there} when warm_start==True"
            )
        if self.n_estimators == there:
            _say("Warm-start fitting without increasing n_estimators does not fit new trees.")
            return False
        rng = stream(self.random_state)
        if there:
            rng.randint(LARGEST_SEED, size=there)  # the seeds of those that are there
        self._seeds = rng.randint(LARGEST_SEED, size=self.n_estimators - there)
        bags = [self._bag(int(seed)) for seed in self._seeds]
        jobs = [
            (seeded(self.estimator_, int(seed)), X, y, *bag, params)
            for seed, bag in zip(self._seeds, bags, strict=True)
        ]
        self.estimators_ += side_by_side(_fit_one, jobs, self.n_jobs)
        self.estimators_features_ += [columns for columns, _ in bags]
        self._drawn += [rows for _, rows in bags]
        return True

    def _amounts(self, X: Any, weight: Array | None) -> tuple[int, int]:
        """Rows and columns of a bag."""
        draws, columns = self.max_samples, self.max_features
        if draws is None:
            draws = X.shape[0]
        elif isinstance(draws, float):
            total = X.shape[0] if weight is None else weight.sum()
            asked, draws = draws, max(int(draws * total), 1)
            if draws < max(FEWEST_DRAWS, X.shape[0] ** (1 / 3)):
                what = "number of samples" if weight is None else "total sum of sample weights"
                _say(
                    f"Using the fractional value max_samples={asked} when the {what} is {total} results in a low number "
                    f"({draws}) of bootstrap samples. We recommend passing `max_samples` as an integer instead."
                )
        if not self.bootstrap and draws > X.shape[0]:
            raise ValueError(
                f"Effective max_samples={draws} must be <= n_samples={X.shape[0]} to be able to sample without replacement."
            )
        columns = int(columns * X.shape[1]) if isinstance(columns, float) else columns
        if columns > X.shape[1]:
            raise ValueError("max_features must be <= n_features")
        return int(draws), max(1, int(columns))

    def _bag(self, seed: int) -> tuple[Array, Array]:
        """Columns and rows of one copy."""
        rng = stream(seed)
        columns = _draw(rng, self.bootstrap_features, self.n_features_in_, self._max_features)
        if self._sample_weight is None:
            return columns, _draw(rng, self.bootstrap, self._n_samples, self._max_samples)
        chance = self._sample_weight / self._sample_weight.sum()
        return columns, rng.choice(self._n_samples, self._max_samples, replace=self.bootstrap, p=chance)

    @property
    def estimators_samples_(self) -> list[Array]:
        """Rows of each copy, as often as they were drawn."""
        return list(self._drawn)

    def _out_of_bag(self, X: Any, y: Array) -> None:
        """The attributes that `oob_score` asks for."""
        raise TypeError(f"{type(self).__name__} must say what it keeps of the rows out of bag.")

    def _left_out(self, X: Any) -> list[tuple[Any, Array, Any]]:
        """Each copy with the rows that it has not seen: their numbers, and their columns for it."""
        found = []
        for model, rows, columns in zip(self.estimators_, self._drawn, self.estimators_features_, strict=True):
            out = np.setdiff1d(np.arange(X.shape[0]), rows)
            if out.size:
                found.append((model, out, X[out][:, columns]))
        return found

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {}


def _are_numbers(one: Any, ndim: int) -> bool:
    """Whether it is a plain array of finite real numbers, with something in it."""
    plain = type(one) is np.ndarray and one.ndim == ndim and one.dtype.type in (np.float64, np.float32, np.int64)
    return plain and one.size > 0 and bool(one.dtype.kind == "i" or np.isfinite(one).all())


def _say(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=4)


def _draw(rng: Any, repeatedly: bool, population: int, size: int) -> Array:
    if repeatedly:
        return np.asarray(rng.randint(0, population, size))
    return np.asarray(sample_without_replacement(population, size, random_state=rng))


def seeded(estimator: Any, seed: Any) -> Any:
    """A copy whose draws, and those of its parts, come from a seed: in the order of the names of the parameters."""
    model = clone(estimator)
    names = [name for name in sorted(model.get_params(deep=True)) if name.split("__")[-1] == "random_state"]
    if names:
        rng = stream(seed)
        model.set_params(**{name: rng.randint(LARGEST_SEED) for name in names})
    return model


def _takes_weights(estimator: Any) -> bool:
    if get_config()["enable_metadata_routing"]:
        return bool(get_routing_for_object(estimator).consumes("fit", ("sample_weight",)))
    return bool(has_fit_parameter(estimator, "sample_weight"))


def _fit_one(model: Any, X: Any, y: Array, columns: Array, rows: Array, params: dict[str, Any]) -> Any:
    all_columns = np.array_equal(columns, np.arange(X.shape[1]))
    if _takes_weights(model):
        counts = np.bincount(rows, minlength=X.shape[0])
        model.fit(X if all_columns else X[:, columns], y, **{**params, "sample_weight": counts})
        return model
    part = X[rows] if all_columns else X[rows][:, columns]
    model.fit(
        part, y[rows], **{name: np.asarray(value)[rows] if np.ndim(value) else value for name, value in params.items()}
    )
    return model


class BaggingClassifier(_Bagging, theirs.BaggingClassifier):
    """The mean of the probabilities, or of the votes, of copies fitted on drawn rows."""

    _ours, _member = ours.BaggingClassifier, DecisionTreeClassifier
    _table: ClassVar[Table] = ROWS

    def _target(self, y: Array) -> Array:
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.n_classes_ = len(self.classes_)
        return np.asarray(codes)

    def _out_of_bag(self, X: Any, y: Array) -> None:
        total = np.zeros((X.shape[0], self.n_classes_))
        for model, out, part in self._left_out(X):
            if hasattr(model, "predict_proba"):
                total[np.ix_(out, model.classes_)] += model.predict_proba(part)
            else:
                total[out, model.predict(part)] += 1
        mass = total.sum(axis=1)
        _warn_of_unseen(mass)
        with np.errstate(invalid="ignore"):
            self.oob_decision_function_ = total / mass[:, None]
        judge = self.oob_score if callable(self.oob_score) else accuracy_score
        self.oob_score_ = judge(y, np.argmax(total, axis=1))


class BaggingRegressor(_Bagging, theirs.BaggingRegressor):
    """The mean of copies fitted on drawn rows."""

    _ours, _member = ours.BaggingRegressor, DecisionTreeRegressor
    _table: ClassVar[Table] = ROWS

    def _out_of_bag(self, X: Any, y: Array) -> None:
        total, seen = np.zeros(X.shape[0]), np.zeros(X.shape[0])
        for model, out, part in self._left_out(X):
            total[out] += model.predict(part)
            seen[out] += 1
        _warn_of_unseen(seen)
        self.oob_prediction_ = total / np.maximum(seen, 1)
        judge = self.oob_score if callable(self.oob_score) else r2_score
        self.oob_score_ = judge(y, self.oob_prediction_)


def _warn_of_unseen(seen: Array) -> None:
    if (seen == 0).any():
        _say(
            "Some inputs do not have OOB scores. This probably means too few estimators were used to compute any reliable oob "
            "estimates."
        )
