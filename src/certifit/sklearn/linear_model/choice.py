"""Models that choose their own alpha, under scikit-learn's names: folds and grids are scikit-learn's, the fits are ours."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
import sklearn.linear_model as theirs
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, check_cv
from sklearn.utils import check_scalar

from certifit._types import Array, is_sparse
from certifit.data.gate import check_xy
from certifit.models.linear.path import lasso_cv as ours
from certifit.models.linear.path.ridge_cv import left_out
from certifit.models.linear.regression import ElasticNet as OurElasticNet
from certifit.models.linear.regression import Ridge as OurRidge
from certifit.sklearn.linear_model.rows import (
    COPY_X,
    MAX_ITER,
    N_JOBS,
    NO_DRAWS,
    PRECOMPUTE,
    SELECTION,
    TOL,
    VERBOSE,
    linear,
    one_row,
)
from certifit.sklearn.linear_model.squares import Ridge, enet_path, lasso_path
from certifit.sklearn.translation import By, Data, DropIn, Here, Of, Same, Table, fresh, same
from certifit.sklearn.translation.routing import routed

__all__ = ["ElasticNetCV", "LassoCV", "PathCV", "RidgeCV"]

DEFAULT_ALPHAS = 100
ONE = np.ones(1)


def _grid(alphas: Any, data: Data) -> dict[str, Any]:
    """The number of alphas, or the alphas themselves."""
    if isinstance(alphas, str) or alphas is None:
        return {}
    return {"n_alphas": int(alphas)} if np.ndim(alphas) == 0 else {"alphas": alphas}


def check_alphas(alphas: Any, *, zero: bool = True) -> None:
    """Every alpha a number that is not negative, in scikit-learn's words."""
    single = len(alphas) == 1
    for place, alpha in enumerate(alphas):
        name = "alphas" if single else f"alphas[{place}]"
        check_scalar(alpha, name, numbers.Real, min_val=0.0, include_boundaries="left" if zero else "neither")


def _blocks(cv: Any, rows: int) -> list[tuple[Array, Array]]:
    """The folds of so many parts, which are blocks of rows in their order: scikit-learn takes longer to say so than many a
    fit. None are made of what is no number of folds for so many rows.
    """
    if type(cv) is not int or not 2 <= cv <= rows:
        return []
    numbers = np.arange(rows)
    ends = list(accumulate(rows // cv + (k < rows % cv) for k in range(cv)))
    starts = [0, *ends[:-1]]
    return [
        (np.concatenate((numbers[:start], numbers[end:])), numbers[start:end])
        for start, end in zip(starts, ends, strict=True)
    ]


def shared_out(estimator: Any, params: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What is for the splitter and what for the scorer, if metadata routing is switched on."""
    found = routed(estimator, "fit", params)
    return {
        "splitter": dict(found.get("splitter", {}).get("split", {})),
        "scorer": dict(found.get("scorer", {}).get("score", {})),
    }


class PathCV(DropIn):
    """The folds are dealt by scikit-learn's rule, rows in their order."""

    alphas: Any
    cv: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """As `DropIn.fit`; `params` go to the splitter, such as `groups`."""
        self._checked(self)
        routes = shared_out(self, params)
        data = Data(self, X, y, sample_weight)
        X, y = data.X, data.y
        self._check_targets(X, y)
        given = np.ndim(self.alphas) > 0
        if given:
            check_alphas(self.alphas)
        splits = _blocks(5 if self.cv is None else self.cv, data.rows) or list(
            check_cv(self.cv).split(X, y, **routes.get("splitter", {}))
        )
        settings = self._settings(data)
        if not given:
            if "l1_ratio" in settings and 0 in np.atleast_1d(settings["l1_ratio"]).tolist():
                raise ValueError(
                    "Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a grid by providing your "
                    "estimator with the appropriate `alphas=` argument."
                )
            values = y if isinstance(y, np.ndarray) and y.ndim else np.atleast_1d(y)
            if values.size and (values == values[0]).all():  # no alpha is too large for constants
                settings["alphas"] = np.full(settings.pop("n_alphas", DEFAULT_ALPHAS), np.finfo(np.float64).resolution)
        path = fresh(self._ours, **settings, cv=splits).fit(X, y, sample_weight)
        # Scikit-learn takes the plain mean over the folds, ours that over the rows left out.
        mean = path.mse_path_.mean(axis=-1)
        best = divmod(int(mean.argmin()), mean.shape[-1])  # among ratios, and among alphas
        self.alpha_, self.mse_path_ = path.alphas_[best[-mean.ndim :]], path.mse_path_
        self.alphas_ = path.alphas_[0] if given and path.alphas_.ndim > 1 else path.alphas_
        ratios = np.atleast_1d(settings["l1_ratio"]) if "l1_ratio" in settings else ONE
        self.l1_ratio_ = ratios[best[0]]
        same = self.alpha_ == path.alpha_ and self.l1_ratio_ == path.l1_ratio_
        self._keep(path if same else self._refitted(settings, data), data)
        if "l1_ratio" not in self._table:
            del self.l1_ratio_
        return self

    def _check_targets(self, X: Any, y: Any) -> None:
        """One target, in scikit-learn's words."""
        if np.ndim(y) > 1 and np.shape(y)[1] > 1:
            raise ValueError(f"For multi-task outputs, use MultiTask{type(self).__name__}")

    def _refitted(self, settings: dict[str, Any], data: Data) -> Any:
        """All rows with the alpha and l1_ratio that were chosen."""
        options = {name: settings[name] for name in ("fit_intercept", "positive", "tol", "max_iter", "n_jobs")}
        model = fresh(OurElasticNet, alpha=float(self.alpha_), l1_ratio=float(self.l1_ratio_), **options)
        return model.fit(data.X, np.ravel(data.y), data.sample_weight)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {**linear(model), "dual_gap_": model.certificate_.gap, "n_iter_": max(1, int(model.n_iter_))}


class ElasticNetCV(PathCV, theirs.ElasticNetCV):
    """The elastic net with alpha and l1_ratio of the least cross-validated squared error."""

    _ours = ours.ElasticNetCV
    _table: ClassVar[Table] = {
        **same("l1_ratio", "eps"),
        "alphas": By(_grid, "the same", None),
        "fit_intercept": Same(),
        "precompute": PRECOMPUTE,
        "max_iter": MAX_ITER,
        "tol": TOL,
        "cv": Here("the folds are scikit-learn's own"),
        "copy_X": COPY_X,
        "verbose": VERBOSE,
        "n_jobs": N_JOBS,
        "positive": Same(),
        "random_state": NO_DRAWS,
        "selection": SELECTION,
    }
    path = staticmethod(enet_path)


class LassoCV(PathCV, theirs.LassoCV):
    """The lasso with the alpha of the least cross-validated squared error."""

    _ours = ours.LassoCV
    _table: ClassVar[Table] = {name: row for name, row in ElasticNetCV._table.items() if name != "l1_ratio"}
    path = staticmethod(lasso_path)


def _mode(gcv_mode: Any, data: Data) -> dict[str, Any]:
    if gcv_mode == "svd" and is_sparse(data.X):
        warnings.warn(
            "The 'svd' mode is not supported for sparse X by scikit-learn, which will raise an error in 1.11; here the mode has "
            "no effect.",
            FutureWarning,
            stacklevel=5,
        )
    return {}


class RidgeCV(DropIn, theirs.RidgeCV):
    """Ridge with the alpha of the least error of rows left out one by one, or of folds.

    Leaving out a row leaves out all of its weight, and alpha is scikit-learn's also beside the rows that remain.
    """

    _ours = OurRidge
    _table: ClassVar[Table] = {
        "alphas": Of(lambda alphas, data: {}, "each divided by the sum of the weights", None),
        "fit_intercept": Same(),
        "scoring": Here("scikit-learn's scorers judge the predictions of rows left out"),
        "cv": Here("the folds are scikit-learn's own"),
        "gcv_mode": By(
            _mode, 'one decomposition serves all alphas; scikit-learn\'s warning about "svd" of sparse X is given', None
        ),
        "store_cv_results": Here("`cv_results_` is kept where asked for"),
        "alpha_per_target": Here("one alpha for each target, where asked for"),
    }
    alpha_: Any
    best_score_: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """As `DropIn.fit`; `params` go to the splitter and the scorer."""
        self._checked(self)
        data = Data(self, X, y, sample_weight)
        check_alphas(self.alphas if np.ndim(self.alphas) else [self.alphas], zero=self.cv is not None)
        alphas = np.atleast_1d(np.asarray(self.alphas, dtype=np.float64))
        if self.cv is not None:
            self._over_folds(data, alphas, params)
        else:
            self._left_out(data, alphas, params)
        self._settings(data)  # what it must say of the parameters
        ridge = Ridge(alpha=self.alpha_, fit_intercept=self.fit_intercept)
        self._keep(ridge._learn(data), data)
        return self

    def _over_folds(self, data: Data, alphas: Array, params: dict[str, Any]) -> None:
        """One ridge for each fold and alpha."""
        if self.store_cv_results:
            raise ValueError("cv!=None and store_cv_results=True are incompatible")
        if self.alpha_per_target:
            raise ValueError("cv!=None and alpha_per_target=True are incompatible")
        search = GridSearchCV(
            Ridge(fit_intercept=self.fit_intercept), {"alpha": alphas.tolist()}, cv=self.cv, scoring=self.scoring,
            refit=False,
        )  # fmt: skip
        if data.sample_weight is not None:
            params = {**params, "sample_weight": data.sample_weight}
        found = search.fit(data.X, data.y, **params)
        best = int(np.argmin(found.cv_results_["rank_test_score"]))
        self.alpha_, self.best_score_ = alphas[best], found.cv_results_["mean_test_score"][best]

    def _left_out(self, data: Data, alphas: Array, params: dict[str, Any]) -> None:
        """Every alpha from one decomposition of X."""
        X, y, weight = check_xy(
            OurRidge(), data.X, data.y, sample_weight=data.sample_weight, drop=False, multi_output=True
        )
        targets = y.reshape(y.shape[0], -1)
        misses = np.stack(
            [left_out(X, one, weight, alphas, bool(self.fit_intercept), removed=weight) for one in targets.T], axis=1
        )  # rows, targets, alphas
        errors = misses**2 * weight[:, None, None]
        if self.scoring is None:
            scores = -errors.mean(axis=0)
        else:
            scorer = check_scoring(self, scoring=self.scoring, allow_none=False)
            told, y_true = targets[:, :, None] - misses, targets
            params = shared_out(self, params).get("scorer", {})
            if data.sample_weight is not None:
                params = {"sample_weight": weight, **params}
            together = not self.alpha_per_target and targets.shape[1] > 1
            columns = [slice(None)] if together else list(range(targets.shape[1]))
            scores = np.array([
                [scorer(_Told(), told[:, k, a], y_true[:, k], **params) for a in range(alphas.size)] for k in columns
            ])  # fmt: skip
        if self.alpha_per_target and targets.shape[1] > 1:
            best = scores.argmax(axis=1)
            self.alpha_ = alphas[best]
            self.best_score_ = scores.max(axis=1)
        else:
            mean = scores.mean(axis=0)
            self.alpha_, self.best_score_ = alphas[int(mean.argmax())], mean.max()
        if self.store_cv_results:
            kept = errors if self.scoring is None else targets[:, :, None] - misses
            self.cv_results_ = kept[:, 0] if y.ndim == 1 else kept

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return one_row(linear(model))


class _Told(RegressorMixin, BaseEstimator):
    """An "estimator" whose predictions are already there, as scorers want to ask for them."""

    def predict(self, predictions: Array) -> Array:
        """What was predicted."""
        return predictions
