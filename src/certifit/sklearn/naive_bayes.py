"""``sklearn.naive_bayes``: closed forms, the same here and there."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import sklearn.naive_bayes as theirs
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, is_sparse
from certifit.models.bayes.naive import presets as ours
from certifit.sklearn.translation import By, Data, Here, Row, Same, Table, fresh
from certifit.sklearn.translation.asking import AsksForClasses

__all__ = ["BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB"]


class _Naive(AsksForClasses):
    """Counts, all at once or in parts."""

    class_prior: Any
    priors: Any
    _told: ClassVar[tuple[str, ...]] = ("class_count_", "class_log_prior_", "feature_log_prob_")

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Add rows to those already counted.

        Parameters
        ----------
        X, y, sample_weight : arrays
            Rows, labels and weights.
        classes : array, optional
            All labels that will ever come; needed in the first call.
        """
        self._checked(self)
        data = Data(self, X, y, sample_weight)
        first = "model_" not in vars(self)
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        model = fresh(self._ours, **self._settings(data)) if first else self.model_
        if not first and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {self.classes_!r}"
            )
        with self._words(data):
            model.partial_fit(X, y, classes, sample_weight)
        self._keep(model, data)
        return self

    def _learn(self, data: Data) -> Any:
        with self._words(data):
            return super()._learn(data)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True  # gaps are left out of the product; scikit-learn's refuses them
        return tags

    @contextmanager
    def _words(self, data: Data) -> Iterator[None]:
        """What scikit-learn says of priors that are none, and of labels that nobody announced."""
        try:
            yield
        except ValueError as error:
            if "labels that are not in classes" in str(error):
                raise ValueError(f"The target label(s) in y do not exist in the initial classes. {error}") from error
            if str(error).startswith("min_categories must be"):
                raise ValueError(f"'min_categories' should have shape (n_features,). {error}") from error
            if not str(error).startswith("priors must be"):
                raise
            self.classes_ = np.unique(np.asarray(data.y))  # scikit-learn has read the labels before the priors
            priors = np.ravel(self.priors if hasattr(self, "priors") else self.class_prior)
            kind = "Number of priors must match number of classes."
            if f"{priors.shape[0]} probabilities" in str(error):
                kind = "Priors must be non-negative." if (priors < 0).any() else "The sum of the priors should be 1."
            raise ValueError(f"{kind} {error}") from error

    def predict_joint_log_proba(self, X: Any) -> Array:
        """ln P(x, class), shape (n_samples, n_classes)."""
        check_is_fitted(self)
        return self.model_.predict_joint_log_proba(self._asked(X))

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {"classes_": model.classes_, **{name: getattr(model, name) for name in self._told}}


class _OneShare(ours.GaussianNB):
    """Our model with scikit-learn's smoothing: one number for all columns, a share of the largest variance of a column."""

    def _smoothing_of(self, factor: Any) -> Any:
        factor.settle(0.0)  # the variances of the columns over all rows
        return self._added(factor) / np.where(factor.overall > 0, factor.overall, 1.0)

    def _added(self, factor: Any) -> float:
        return float(self.var_smoothing) * float(factor.overall.max(initial=0.0))


_OneShare.__name__ = "GaussianNB"  # in messages


class GaussianNB(_Naive, theirs.GaussianNB):
    """Each feature normal in each class."""

    _ours = _OneShare
    _table: ClassVar[Table] = {"priors": Same(), "var_smoothing": Same()}
    _told: ClassVar[tuple[str, ...]] = ("class_count_", "class_prior_", "theta_", "var_")

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {**super()._fitted(model, data), "epsilon_": model._added(model._factors[0])}


LEAST = 1e-10
"""What scikit-learn takes for the least smoothing, unless it is forced to take less."""


def _smoothing(value: Any, data: Data) -> Any:
    """One number, or one for each column; almost nothing is a little more unless `force_alpha` says that it is meant."""
    alpha = np.asarray(value, dtype=np.float64)
    columns = np.shape(data.X)[1] if np.ndim(data.X) == 2 or is_sparse(data.X) else None
    if alpha.ndim and columns is not None and alpha.shape != (columns,):
        raise ValueError(
            f"When alpha is an array, it should contains `n_features`. Got {alpha.shape[0]} elements instead of {columns}."
        )
    if (alpha < 0).any():
        raise ValueError("All values in alpha must be greater than 0.")
    if (alpha < LEAST).any() and not data.estimator.force_alpha:
        warnings.warn(
            f"alpha too small will result in numeric errors, setting alpha = {LEAST:.1e}. Use `force_alpha=True` to keep alpha "
            "unchanged.",
            UserWarning,
            stacklevel=6,
        )
        alpha = np.maximum(alpha, LEAST)
    return alpha if alpha.ndim else float(alpha)


COUNTS: dict[str, Row] = {
    "alpha": By(_smoothing, "the same, a number or one for each column"),
    "force_alpha": Here("without it, less than 1e-10 is 1e-10, with a warning"),
    "fit_prior": Same(),
    "class_prior": Same("priors"),
}


class MultinomialNB(_Naive, theirs.MultinomialNB):
    """Counts of words."""

    _ours = ours.MultinomialNB
    _table: ClassVar[Table] = COUNTS
    _told: ClassVar[tuple[str, ...]] = (*_Naive._told, "feature_count_")


class BernoulliNB(_Naive, theirs.BernoulliNB):
    """Whether words occur."""

    _ours = ours.BernoulliNB
    _table: ClassVar[Table] = {**COUNTS, "binarize": Same()}
    _told: ClassVar[tuple[str, ...]] = (*_Naive._told, "feature_count_")


class ComplementNB(_Naive, theirs.ComplementNB):
    """Counts of words in the other classes."""

    _ours = ours.ComplementNB
    _table: ClassVar[Table] = {**COUNTS, "norm": Same()}
    _told: ClassVar[tuple[str, ...]] = (*_Naive._told, "feature_count_")

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {**super()._fitted(model, data), "feature_all_": np.asarray(model.feature_count_).sum(axis=0)}


class CategoricalNB(_Naive, theirs.CategoricalNB):
    """A table of shares for each feature."""

    _ours = ours.CategoricalNB
    _table: ClassVar[Table] = {**COUNTS, "min_categories": Same()}
    _told: ClassVar[tuple[str, ...]] = (*_Naive._told, "category_count_", "n_categories_")

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """As of the others; fractions are cut off."""
        return super().partial_fit(_whole(X), y, classes, sample_weight)

    def _learn(self, data: Data) -> Any:
        return super()._learn(replace(data, X=_whole(data.X)))

    def _asked(self, X: Any) -> Any:
        return _whole(super()._asked(X))


def _whole(X: Any) -> Any:
    """Scikit-learn takes the whole part of numbers for the category."""
    return np.trunc(X) if isinstance(X, np.ndarray) and X.dtype.kind == "f" else X
