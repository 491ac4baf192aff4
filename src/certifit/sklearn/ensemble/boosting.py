"""Histogram gradient boosting under scikit-learn's names: the same losses, bins, growth by gain, and leaf values."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import NoneType
from typing import Any, ClassVar

import numpy as np
import sklearn.ensemble as theirs
from scipy.sparse import vstack
from sklearn.metrics import check_scoring
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.evaluation.losses import Gamma, Poisson, Quantile
from certifit.models.boosting import model as ours
from certifit.models.boosting.fit import Manner, Plan
from certifit.representation.table.binning import Binner
from certifit.sklearn.ensemble.stopping import Stopping, set_aside, wanted
from certifit.sklearn.translation import By, Data, DropIn, Here, Of, Row, Same, Table, fresh, same
from certifit.sklearn.translation.asking import AsksForClasses, AsksForStages, AsksForValues
from certifit.sklearn.tree.model import class_weight

__all__ = ["HistGradientBoostingClassifier", "HistGradientBoostingRegressor"]

FARTHEST = 1e300
"""Infinite values are the farthest ones of their column."""

MOST_BINNED = 200_000
"""Rows that bins are found from: of more, scikit-learn draws as many, with replacement."""

WANTED = {"gamma": "strictly positive y", "poisson": "non-negative y and sum(y) > 0"}
LOSSES = {"squared_error": "squared", "absolute_error": "absolute", "log_loss": "logistic"}


def _loss(value: Any, data: Data) -> Any:
    if value == "quantile":
        return Quantile(float(data.estimator.quantile))
    return {"poisson": Poisson(), "gamma": Gamma()}.get(value, LOSSES.get(value, value))


def _categorical(value: Any, data: Data) -> Any:
    """Categories by the type of the column are what ours calls auto; what names no column is refused in scikit-learn's words."""
    if value is None or isinstance(value, str):
        return None if value is None else "auto"
    given = np.asarray(value)
    if given.size == 0:
        return None
    if given.dtype.kind not in "biuUO" or (given.dtype.kind == "O" and not all(isinstance(one, str) for one in given)):
        kinds = sorted({type(one).__name__ for one in given}) if given.dtype.kind == "O" else [given.dtype.name]
        raise ValueError(f"categorical_features must be an array-like of bool, int or str, got: {', '.join(kinds)}.")
    width, names = np.shape(data.X)[1], getattr(data.X, "columns", None)
    if given.dtype.kind in "UO":
        if names is None:
            raise ValueError(
                "categorical_features should be passed as an array of integers or as a boolean mask when the model is fitted "
                "on data without feature names."
            )
        unknown = [name for name in given if name not in list(names)]
        if unknown:
            raise ValueError(
                f"categorical_features has an item value '{unknown[0]}' which is not a valid feature name of the training data. "
                f"Observed feature names: {list(names)}"
            )
        return given.tolist()
    if given.dtype.kind == "b":
        if given.shape[0] != width:
            raise ValueError(
                "categorical_features set as a boolean mask must have shape (n_features,), got: "
                f"{given.shape} for {width} features"
            )
        return np.flatnonzero(given).tolist()
    if given.max() >= width or given.min() < 0:
        raise ValueError(
            "categorical_features set as integer indices must be in [0, n_features - 1], got values outside of it: "
            f"{given.tolist()} for {width} features"
        )
    return given.tolist()


def _monotone(value: Any, data: Data) -> Any:
    if value is not None and not isinstance(value, dict):
        columns = _categorical(data.estimator.categorical_features, data)
        if (
            isinstance(columns, list)
            and all(isinstance(one, int) for one in columns)
            and np.any(np.asarray(value)[columns])
        ):
            raise ValueError("Categorical features cannot have monotonic constraints.")
    return value


def _interactions(value: Any, data: Data) -> Any:
    if value == "no_interactions":
        return "none"
    if value is None or isinstance(value, str):
        return value
    if not all(isinstance(group, Iterable) for group in value):
        raise ValueError(f"Interaction constraints must be a sequence of tuples or lists, got: {value!r}.")
    last = np.shape(data.X)[1] - 1
    for group in value:
        if not all(isinstance(one, numbers.Integral) and 0 <= int(one) <= last for one in group):
            raise ValueError(
                f"Interaction constraints must consist of integer indices in [0, n_features - 1] = [0, {last}], specifying the "
                f"position of features, got invalid indices: {group!r}"
            )
    return [list(group) for group in value]


ROWS: dict[str, Row] = {
    "loss": Of(_loss, "the same under our name"),
    "learning_rate": Same(),
    "max_iter": Same("n_estimators"),
    **same("max_leaf_nodes", "max_depth", "min_samples_leaf"),
    "l2_regularization": Same("l2"),
    "max_features": Of(lambda value, data: float(value), "drawn for each tree, not for each node", "colsample"),
    "max_bins": Same(),
    "categorical_features": By(_categorical, "the same", blind=(NoneType, str)),
    "monotonic_cst": By(_monotone, "the same", "monotone_constraints", (NoneType,)),
    "interaction_cst": By(_interactions, "the same", "interactions", (NoneType, str)),
    "warm_start": Same(),
    "early_stopping": Of(lambda value, data: False, "by scikit-learn's rule"),
    "scoring": Here("scikit-learn's scorers watch the stages, where it stops early"),
    "validation_fraction": Here("the rows that scikit-learn would draw; None watches those of the fit"),
    **same("n_iter_no_change", "tol"),
    "verbose": Of(lambda value, data: int(bool(value)), "a progress bar"),
    "random_state": Same(),
}


def _finite(X: Any) -> Any:
    infinite = isinstance(X, np.ndarray) and X.dtype.kind == "f" and np.isinf(X).any()
    return np.clip(X, -FARTHEST, FARTHEST) if infinite else X


def _distinct(column: Any) -> int:
    """Different values that are not missing."""
    values = np.asarray(column)
    return int(np.unique(values[~np.isnan(values)] if values.dtype.kind == "f" else values.astype(str)).shape[0])


def _categories_by_type(X: Any) -> dict[int, int]:
    """How many categories the columns of such a type have."""
    import narwhals as nw

    columns = enumerate(nw.from_native(X, eager_only=True).iter_columns())
    return {j: one.drop_nulls().n_unique() for j, one in columns if one.dtype in (nw.Categorical, nw.Enum)}


def _below(X: Any, more: Any) -> Any:
    """Further rows under those of X, in its own kind of table."""
    if hasattr(X, "columns"):
        import narwhals as nw

        return nw.to_native(nw.concat([nw.from_native(X), nw.from_native(more)], how="vertical"))
    return vstack([X, more], format="csr") if is_sparse(X) else np.vstack([np.asarray(X), np.asarray(more)])


def _bins(X: Matrix, weight: Array, plan: Plan) -> Binner:
    return Binner(plan.max_bins, plan.categorical, "quantiles").fit(X, weight, n_threads=plan.n_threads)


def _bins_of_some(seed: int) -> Callable[[Matrix, Array, Plan], Binner]:
    """Bins of as many rows as scikit-learn draws, in the proportion of their weights."""

    def bins(X: Matrix, weight: Array, plan: Plan) -> Binner:
        if X.shape[0] <= MOST_BINNED:
            return _bins(X, weight, plan)
        share = None if weight.strides == (0,) else weight / weight.sum()
        drawn = check_random_state(seed).choice(X.shape[0], MOST_BINNED, p=share)
        return _bins(X[drawn], np.broadcast_to(1.0, MOST_BINNED), plan)

    return bins


THEIRS = Manner(_bins, count_rows=True, min_curvature=1e-3, searched=False)
"""Trees as scikit-learn grows them: the same bins, leaves of so many rows, and Newton's step as it comes."""


class _Boosting(AsksForStages, DropIn):
    """What boosting for classes and for numbers shares."""

    warm_start: bool
    loss: Any
    categorical_features: Any
    max_bins: int
    scoring: Any
    n_iter_no_change: int
    tol: float
    random_state: Any

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Any:
        """As `DropIn.fit`.

        Parameters
        ----------
        X, y, sample_weight
            As in `DropIn.fit`.
        X_val, y_val, sample_weight_val : arrays, optional
            Rows that early stopping watches, in the place of some of X.
        """
        for one, other, names in ((X_val, y_val, "Xy"), (y_val, X_val, "yX")):
            if one is not None and other is None:
                raise ValueError(f"{names[0]}_val is provided, but {names[1]}_val was not provided.")
        self._aside = None
        if X_val is not None:
            wanted(self, 0, given=True)
            self._aside = np.concatenate([np.zeros(len(y), dtype=bool), np.ones(len(y_val), dtype=bool)])
            if sample_weight is not None or sample_weight_val is not None:
                parts = ((y, sample_weight), (y_val, sample_weight_val))
                sample_weight = np.concatenate([np.ones(len(t)) if w is None else np.asarray(w) for t, w in parts])
            X, y = _below(X, X_val), np.concatenate([np.asarray(y), np.asarray(y_val)])
        try:
            return super().fit(X, y, sample_weight)
        finally:
            del self._aside

    _aside: Array | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True  # scikit-learn's refuses them
        return tags

    def _asked(self, X: Any) -> Any:
        return _finite(self._with_missing(super()._asked(X)))

    def _with_missing(self, X: Any) -> Any:
        """Negative numbers of categories are missing values, as for scikit-learn."""
        columns = self._numbered_categories(X)
        if not columns or not isinstance(X, np.ndarray) or X.dtype.kind != "f" or not (X[:, columns] < 0).any():
            return X
        X = X.copy()
        X[:, columns] = np.where(X[:, columns] < 0, np.nan, X[:, columns])
        return X

    def _numbered_categories(self, X: Any) -> list[int]:
        """Columns that were named as categories, by number."""
        given = self.categorical_features
        if given is None or isinstance(given, str) or np.ndim(X) != 2:
            return []
        found = _categorical(given, Data(self, X))
        if found is None:
            return []
        return [list(X.columns).index(one) if isinstance(one, str) else int(one) for one in found]

    def _check_cardinality(self, X: Any) -> None:
        """As many bins as categories, in scikit-learn's words."""
        if isinstance(X, np.ndarray) and isinstance(self.categorical_features, str | None):
            return
        names = list(getattr(X, "columns", []))
        found = {j: names[j] if names else None for j in self._numbered_categories(X)}
        counts = {j: _distinct(X[name] if names else X[:, j]) for j, name in found.items() if not is_sparse(X)}
        if names and isinstance(self.categorical_features, str):
            counts = _categories_by_type(X)
        for j, count in counts.items():
            if count > self.max_bins:
                label = f"{str(names[j])!r}" if names else f"at index {j}"
                raise ValueError(
                    f"Categorical feature {label} is expected to have a cardinality <= {self.max_bins} but actually has a "
                    f"cardinality of {count}."
                )

    def _learn(self, data: Data) -> Any:
        settings = self._settings(data)
        more = self.warm_start and "model_" in vars(self)
        model = self.model_.set_params(**settings) if more else fresh(self._ours, **settings)
        model.watch = model.rows_aside = None
        y = np.asarray(data.y)
        stops, many = wanted(self, data.rows, self._aside is not None), data.rows > MOST_BINNED
        seed = 0  # to draw one takes longer than a small fit
        if stops or many:
            seed = check_random_state(self.random_state).randint(np.iinfo(np.uint32).max, dtype="u8")
        model.manner = replace(THEIRS, bins=_bins_of_some(seed)) if many else THEIRS
        if stops:
            aside = (
                set_aside(self, y, hasattr(self._ours, "predict_proba"), seed) if self._aside is None else self._aside
            )
            if aside is not None and data.sample_weight is not None:
                aside = aside[np.asarray(data.sample_weight) > 0]  # our gate drops the others
            model.rows_aside = aside
            model.watch = Stopping(
                model, self._watching(), self.n_iter_no_change, self.tol, data.sample_weight is not None
            )
        if self.loss == "poisson" and y.dtype.kind in "biuf" and not (np.min(y) >= 0 and np.sum(y) > 0):
            raise ValueError(f"loss='poisson' requires {WANTED['poisson']}.")
        rows = self._with_missing(data.X)
        self._check_cardinality(rows)
        try:
            return model.fit(rows, data.y, data.sample_weight)
        except ValueError as error:
            if "infinity" in str(error) and isinstance(rows, np.ndarray):
                return model.fit(_finite(rows), data.y, data.sample_weight)
            if not str(error).startswith("y must be"):
                raise
            raise ValueError(f"loss={self.loss!r} requires {WANTED[self.loss]}. {error}") from error
        finally:
            self._watched = model.watch is not None
            model.watch = None
            del model.manner

    def _watching(self) -> Any:
        """The scorer, or None for the loss."""
        by_loss = isinstance(self.scoring, str) and self.scoring == "loss"
        return None if by_loss else check_scoring(self, scoring=self.scoring)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        held = model.validation_loss_
        found: dict[str, Any] = {
            "n_trees_per_iteration_": len(model.start_),
            "do_early_stopping_": self._watched,
            "validation_score_": -np.asarray(held if held is not None else []),
            "train_score_": np.empty(0),
            "is_categorical_": self._mask(model),
        }
        return found | ({"classes_": model.classes_} if "classes_" in vars(model) else {})

    def _mask(self, model: Any) -> Array | None:
        """Which columns are categories, where they were given; None where none is."""
        if self.categorical_features is None or isinstance(self.categorical_features, str):
            return None
        given = np.asarray(self.categorical_features)
        if given.size == 0:
            return None
        if given.dtype.kind in "OU":
            mask = np.isin(model.feature_names_in_, given)
        else:
            mask = given.astype(bool) if given.dtype.kind == "b" else np.isin(np.arange(model.n_features_in_), given)
        return mask if mask.any() else None

    @property
    def n_iter_(self) -> int:
        """Stages kept."""
        check_is_fitted(self)
        return int(self.model_.n_iter_)


class HistGradientBoostingRegressor(_Boosting, AsksForValues, theirs.HistGradientBoostingRegressor):
    """Boosted trees for numbers."""

    _ours = ours.GradientBoostingRegressor
    _table: ClassVar[Table] = {**ROWS, "quantile": Of(lambda value, data: {}, "of the quantile loss", None)}


class HistGradientBoostingClassifier(_Boosting, AsksForClasses, theirs.HistGradientBoostingClassifier):
    """Boosted trees for classes."""

    _ours = ours.GradientBoostingClassifier
    _table: ClassVar[Table] = {**ROWS, "class_weight": By(class_weight, "the same", blind=(NoneType, str))}

    def decision_function(self, X: Any) -> Array:
        """Raw scores before the link to probabilities."""
        check_is_fitted(self)
        return self.model_.decision_function(self._asked(X))

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """`predict_proba` after each stage."""
        check_is_fitted(self)
        yield from self.model_.staged_predict_proba(self._asked(X))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """`decision_function` after each stage."""
        check_is_fitted(self)
        for scores in self.model_._staged_scores(self._asked(X)):
            yield scores[:, 0] if scores.shape[1] == 1 else scores
