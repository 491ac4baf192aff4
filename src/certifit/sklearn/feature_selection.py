"""``sklearn.feature_selection``: columns by their own scores, one after the other, or by what a model finds important."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import sklearn.feature_selection as theirs
from sklearn import get_config
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv, cross_val_score
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import validate_data

from certifit._types import Array, Matrix, is_sparse
from certifit.models.selection.elimination import RecursiveElimination, eliminate
from certifit.models.selection.filters import SelectBest
from certifit.models.selection.moves import MaskMoves, best_move
from certifit.models.selection.stepwise import StepwiseSelection
from certifit.sklearn.translation import Data, DropIn, Here, Same, Table, fresh
from certifit.sklearn.translation.routing import routed

__all__ = ["RFE", "SelectKBest", "SequentialFeatureSelector"]


class Found(SimpleNamespace):
    """What a search has found, where no model of ours is left behind."""

    @classmethod
    def of(cls, asked: Any, **found: Any) -> Found:
        """With what scikit-learn's check knows of the columns."""
        names = {name: getattr(asked, name) for name in ("n_features_in_", "feature_names_in_") if name in vars(asked)}
        return cls(**names, **found)


SCORES = {theirs.f_classif: "anova", theirs.f_regression: "f", theirs.chi2: "chi2"}
LARGEST = float(np.finfo(np.float64).max)


class SelectKBest(DropIn, theirs.SelectKBest):
    """The columns with the highest scores.

    `f_classif`, `f_regression` and `chi2` are ours; any other function is called as it is, `mutual_info_classif` and
    `mutual_info_regression` among them: ours, in bins, is ``certifit.SelectBest("mutual_information")``.
    """

    _ours = SelectBest
    _table: ClassVar[Table] = {
        "score_func": Here(
            "``by``, for `f_classif`, `f_regression` and `chi2`; other functions score the columns themselves"
        ),
        "k": Here("how many of the scores count, when columns are taken"),
    }

    def fit(self, X: Any, y: Any = None) -> Any:  # type: ignore[override]  # the signature is scikit-learn's
        """Score the columns.

        Parameters
        ----------
        y : array of shape (n_samples,), optional
            Target; a function may do without.
        """
        return super().fit(X, y)

    def _learn(self, data: Data) -> Any:
        by = SCORES.get(self.score_func)
        if by is not None and data.y is not None and np.ndim(data.y) == 1:
            self._check_k(data.X)
            return fresh(self._ours, by=by).fit(data.X, data.y)
        if data.y is None:
            X, y = validate_data(self, data.X, accept_sparse=["csr", "csc"]), None
        else:
            X, y = validate_data(self, data.X, data.y, accept_sparse=["csr", "csc"], multi_output=True)
        self._check_k(X)
        scores = self.score_func(X, y)
        pair = scores if isinstance(scores, list | tuple) else (scores, None)
        return Found.of(self, scores_=np.asarray(pair[0]), pvalues_=None if pair[1] is None else np.asarray(pair[1]))

    def _check_k(self, X: Any) -> None:
        d = np.shape(X)[1] if len(np.shape(X)) == 2 else self.k
        if self.k != "all" and self.k > d:
            warnings.warn(
                f"k={self.k} is greater than n_features={d}. All the features will be returned.",
                UserWarning,
                stacklevel=4,
            )

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        scores = model.scores_
        if self.score_func is theirs.f_regression:  # which keeps scores finite
            scores = np.minimum(scores, LARGEST)
        return {"scores_": scores, "pvalues_": model.pvalues_}


class _ScoredMoves(MaskMoves):
    """Subsets of columns by the mean score of scikit-learn's folds."""

    def __init__(self, asked: Any, X: Matrix, y: Any, params: Mapping[str, Any]) -> None:
        super().__init__(X.shape[1])
        self._asked, self._X, self._y, self._params = asked, X, y, params
        self._folds = check_cv(asked.cv, y, classifier=is_classifier(asked.estimator))

    def of(self, members: Array) -> float:
        """Minus the mean score."""
        scores = cross_val_score(
            clone(self._asked.estimator),
            self._X[:, members],
            self._y,
            cv=self._folds,
            scoring=self._asked.scoring,
            n_jobs=self._asked.n_jobs,
            params=dict(self._params),
        )
        return -float(scores.mean())


class SequentialFeatureSelector(DropIn, theirs.SequentialFeatureSelector):
    """Columns one after the other, by scikit-learn's folds and scorers."""

    _ours = StepwiseSelection
    _table: ClassVar[Table] = {
        "estimator": Same(),
        "n_features_to_select": Here("at so many columns, or that share of them, the steps end"),
        "tol": Here('steps end where the score rises by less, if n_features_to_select is "auto"'),
        "direction": Same(),
        "scoring": Here("scikit-learn's scorers judge the subsets"),
        "cv": Same(),
        "n_jobs": Here("folds are fitted by so many jobs, which does not change the answer"),
    }

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:  # type: ignore[override]  # the signature is scikit-learn's
        """Search for columns.

        Parameters
        ----------
        y : array of shape (n_samples,), optional
            Target, for estimators that have one.
        **params : Any
            For the estimator, the folds and the scorer, if metadata routing is switched on.
        """
        self._checked(self)
        routed(self, "fit", params)
        allowed = self.__sklearn_tags__().input_tags.allow_nan
        X = validate_data(self, X, accept_sparse="csc", ensure_min_features=2, ensure_all_finite=not allowed)
        wanted, backward = self._wanted(X.shape[1]), self.direction == "backward"
        if self.tol is not None and self.tol < 0 and not backward:
            raise ValueError("tol must be strictly positive when doing forward selection")
        moves = _ScoredMoves(self, X, y, params)
        if backward:
            moves.members[:] = True
        given = self.n_features_to_select != "auto"
        until_flat = self.tol is not None and not given
        last = np.inf
        for _ in range(X.shape[1] - wanted if given and backward else wanted):
            move = best_move(moves, outward=backward)
            if move is None or (until_flat and last - move[1] < self.tol):
                break
            moves.change(move[0])
            last = move[1]
        self._keep(Found.of(self, support_=moves.members), Data(self, X, y))
        return self

    def _wanted(self, d: int) -> int:
        """How many columns, or how many steps where it is left open."""
        asked = self.n_features_to_select
        if asked == "auto":
            return d // 2 if self.tol is None else d - 1
        if isinstance(asked, int | np.integer):
            if asked >= d:
                raise ValueError("n_features_to_select must be < n_features.")
            return int(asked)
        return int(d * asked)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {"support_": model.support_, "n_features_to_select_": model.support_.sum()}


def _importances(model: Any, getter: Any) -> Array:
    """Squares of what a model makes of its columns, summed over its scores; raises in scikit-learn's words."""
    if getter == "auto":
        getter = next((name for name in ("coef_", "feature_importances_") if hasattr(model, name)), None)
        if getter is None:
            raise ValueError(
                f"when `importance_getter=='auto'`, the underlying estimator {type(model).__name__} should have `coef_` or "
                "`feature_importances_` attribute. Either pass a fitted estimator to feature selector or call fit before "
                "calling transform."
            )
    found = (attrgetter(getter) if isinstance(getter, str) else getter)(model)
    squares = np.asarray(found.toarray() if is_sparse(found) else found) ** 2
    return np.asarray(squares.sum(axis=0) if squares.ndim > 1 else squares)


class RFE(DropIn, theirs.RFE):
    """Fit, leave out the least important columns, and fit again."""

    _ours = RecursiveElimination
    _table: ClassVar[Table] = {
        "estimator": Same(),
        "n_features_to_select": Same("n_features"),
        "step": Same(),
        "verbose": Here("prints how many columns a model is fitted with"),
        "importance_getter": Here("squares of coefficients or importances, of an attribute, or of a function"),
    }

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Any:  # type: ignore[override]  # the signature is scikit-learn's
        """Eliminate columns.

        Parameters
        ----------
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Target.
        **fit_params : Any
            For `fit` of the estimator.
        """
        self._checked(self)
        if get_config()["enable_metadata_routing"]:
            fit_params = dict(process_routing(self, "fit", **fit_params).estimator.fit)
        X, y = validate_data(
            self, X, y, accept_sparse="csc", ensure_min_features=2, ensure_all_finite=False, multi_output=True
        )
        d = X.shape[1]

        def fitted(columns: Array) -> Any:
            if self.verbose > 0 and columns.shape[0] > wanted:
                print(f"Fitting estimator with {columns.shape[0]} features.")
            return clone(self.estimator).fit(X[:, columns], y, **fit_params)

        wanted = self._wanted(d)
        step = int(max(1, self.step * d)) if 0.0 < self.step < 1.0 else int(self.step)
        rank, model = eliminate(fitted, lambda one: _importances(one, self.importance_getter), d, wanted, step)
        self._keep(Found.of(self, ranking_=rank, estimator_=model), Data(self, X, y))
        return self

    def _wanted(self, d: int) -> int:
        asked = self.n_features_to_select
        if asked is None:
            return d // 2
        if not isinstance(asked, int | np.integer):
            return int(d * asked)
        if asked > d:
            warnings.warn(
                f"Found n_features_to_select={asked} > n_features={d}. There will be no feature selection and all features will "
                "be kept.",
                UserWarning,
                stacklevel=3,
            )
        return int(asked)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        support = model.ranking_ == 1
        return {
            "support_": support,
            "ranking_": model.ranking_,
            "n_features_": support.sum(),
            "estimator_": model.estimator_,
        }
