"""Poisson, Gamma, Huber and quantile regression under scikit-learn's names.

The scales of Poisson, Gamma and quantile regression agree. Where nothing is penalized and columns of X depend on each other,
Poisson and Gamma regression have many optima, all with the scores Xw + b: the one of least ‖w‖ is that of least squares on
these scores. Scikit-learn's Huber minimizes over w, b and sigma

    Σ s_i (sigma + H((y_i − x_i·w − b)/sigma)·sigma) + alpha·‖w‖²,    H(z) = z² up to epsilon, 2·epsilon·|z| − epsilon² beyond,

and at each sigma that is (2Σs_i/sigma) times ours: mean huber + (alpha·sigma/Σs_i)·½‖w‖², with delta = epsilon·sigma.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.linear_model as theirs
from sklearn.metrics import d2_tweedie_score
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, is_sparse
from certifit.data.gate import check_sample_weight, check_x
from certifit.models.linear import regression, robust
from certifit.models.linear.generalized import log_link
from certifit.sklearn.linear_model.rows import ANY_SOLVER, MAX_ITER, TOL, VERBOSE, WARM_START, linear
from certifit.sklearn.translation import By, Data, DropIn, Free, Same, Table, fresh, same

__all__ = ["GammaRegressor", "HuberRegressor", "PoissonRegressor", "QuantileRegressor"]

NEAR_ZERO = 1e-12
SAME_VERTEX = 1e-12  # relative: rounding of a solver
SHORTER = 1e-6  # share of the norm: less than this is rounding, of columns that do not depend on each other
SAME_SCORES = 1e-9  # relative: scores that differ by less have the same deviance in twice as many digits


LOG_LINK: Table = {
    **same("alpha", "fit_intercept"),
    "solver": ANY_SOLVER,
    "max_iter": MAX_ITER,
    "tol": TOL,
    "warm_start": WARM_START,
    "verbose": VERBOSE,
}


class _LogLink(DropIn):
    """What Poisson and Gamma regression share."""

    _power: ClassVar[int]
    alpha: float
    fit_intercept: bool
    coef_: Array
    intercept_: Any

    def _learn(self, data: Data) -> Any:
        try:
            model = super()._learn(data)
        except ValueError as error:
            if not str(error).startswith("y must be"):
                raise
            raise ValueError(f"Some value(s) of y are out of the valid range of the loss: {error}") from error
        return model if self.alpha > 0 else self._shortest(model, data)

    def _shortest(self, model: Any, data: Data) -> Any:
        """The model with the coefficients of least norm among those of the same scores, and so of the same objective."""
        X = check_x(model, data.X, reset=False, dtype=np.float64)
        X = X[check_sample_weight(data.sample_weight, data.rows) > 0]
        coef = np.asarray(model.coef_, dtype=np.float64)
        scores = np.asarray(X @ coef) + float(model.intercept_)
        # The scores can be met, and so weights would change nothing.
        squares = fresh(regression.LinearRegression, fit_intercept=self.fit_intercept).fit(X, scores)
        change = np.abs(squares.predict(X) - scores).max()
        shorter = np.linalg.norm(squares.coef_) < (1.0 - SHORTER) * np.linalg.norm(coef)
        if shorter and change <= SAME_SCORES * (1.0 + np.abs(scores).max()):
            model.coef_ = squares.coef_.astype(model.coef_.dtype)
            model.intercept_ = type(model.intercept_)(squares.intercept_)
        return model

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {**linear(model), "n_iter_": max(1, int(model.n_iter_))}

    def predict(self, X: Any) -> Array:
        """The mean exp(x·w + b) of each row."""
        check_is_fitted(self)
        X = check_x(self, X, reset=False)
        return np.exp(np.asarray(X @ self.coef_) + self.intercept_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D², the share of the deviance of the best constant that the model explains.

        Parameters
        ----------
        X, y, sample_weight : arrays
            Features, target and weights.
        """
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=self._power))


class PoissonRegressor(_LogLink, theirs.PoissonRegressor):
    """Counts and rates: the mean Poisson half deviance of exp(Xw + b) plus alpha·½‖w‖²; of several optima that of least ‖w‖."""

    _ours = log_link.PoissonRegressor
    _table: ClassVar[Table] = LOG_LINK
    _power: ClassVar[int] = 1


class GammaRegressor(_LogLink, theirs.GammaRegressor):
    """Positive amounts: the mean Gamma half deviance of exp(Xw + b) plus alpha·½‖w‖²; of several optima that of least ‖w‖."""

    _ours = log_link.GammaRegressor
    _table: ClassVar[Table] = LOG_LINK
    _power: ClassVar[int] = 2


class QuantileRegressor(DropIn, theirs.QuantileRegressor):
    """The mean pinball loss plus alpha·‖w‖₁; of several solutions one in the middle."""

    _ours = robust.QuantileRegressor
    _table: ClassVar[Table] = {
        **same("quantile", "alpha", "fit_intercept"),
        "solver": ANY_SOLVER,
        "solver_options": Free("options of solvers that are not used"),
    }
    _always: ClassVar[Mapping[str, Any]] = {"tol": 1e-9}

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        found = linear(model)
        # An interior point comes this close to zero and no closer; a vertex of the linear program, which theirs is, has zeros.
        near = np.abs(found["coef_"]) <= NEAR_ZERO * np.abs(found["coef_"]).max(initial=0.0)
        found["coef_"] = np.where(near, 0.0, found["coef_"])
        return {**found, **self._vertex(model, data, **found), "n_iter_": max(1, int(model.n_iter_))}

    def _vertex(self, model: Any, data: Data, coef_: Array, intercept_: Any) -> dict[str, Any]:
        """The same vertex from the rows that it meets, as they were given: the solver knows them in units of its own, and by one
        bit in the last place an end of an interval of solutions is outside of it.
        """
        X = check_x(model, data.X, reset=False, dtype=np.float64)
        used = np.flatnonzero(coef_)
        size = used.shape[0] + int(self.fit_intercept)
        if is_sparse(X) or coef_.dtype != np.float64 or size == 0:
            return {}
        y = np.asarray(data.y, dtype=np.float64).ravel()
        met = np.flatnonzero(np.abs(X @ coef_ + intercept_ - y) <= SAME_VERTEX * np.abs(y).max())
        if met.shape[0] != size:
            return {}
        rows, before = X[np.ix_(met, used)], coef_[used]
        if self.fit_intercept:
            rows, before = np.column_stack((rows, np.ones(size))), np.append(before, intercept_)
        try:
            solved = np.linalg.solve(rows, y[met])
        except np.linalg.LinAlgError:
            return {}
        if not (np.abs(solved - before) <= SAME_VERTEX * np.abs(before).max()).all():
            return {}
        coef = coef_.copy()
        coef[used] = solved[: used.shape[0]]
        return {"coef_": coef, "intercept_": solved[-1] if self.fit_intercept else intercept_}

    fit_intercept: bool


class HuberRegressor(DropIn, theirs.HuberRegressor):
    """Squares near zero, absolute values beyond epsilon times a scale that is fitted too."""

    _ours = robust.HuberRegressor
    _table: ClassVar[Table] = {
        "epsilon": Same("delta"),
        "max_iter": MAX_ITER,
        "alpha": By(lambda alpha, data: alpha / data.total, "divided by the sum of the weights, times the scale"),
        "warm_start": WARM_START,
        "fit_intercept": Same(),
        "tol": TOL,
    }
    _always: ClassVar[Mapping[str, Any]] = {"scale": "joint"}

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        outliers = model.outliers_
        if data.sample_weight is not None:  # our model leaves out rows of weight zero
            outliers = np.zeros(data.rows, dtype=bool)
            outliers[np.asarray(data.sample_weight) > 0] = model.outliers_
        return {
            **linear(model),
            "scale_": model.scale_,
            "outliers_": outliers,
            "n_iter_": max(1, int(model.n_iter_)),
        }
