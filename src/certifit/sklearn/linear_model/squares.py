"""Least squares, ridge, lasso and elastic net under scikit-learn's names.

Theirs: Σ s_i (y_i − x_i·w − b)² + alpha·‖w‖² is ours, divided by 2Σs_i, with alpha / Σs_i. The lasso and the elastic net
have the same scale here and there: both divide by Σs_i.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.linear_model as theirs

from certifit._types import Array, is_sparse
from certifit.certificate import Certificate
from certifit.models.linear import regression as ours
from certifit.models.linear.path.path import ElasticPath
from certifit.models.linear.tasks import RowsPath
from certifit.sklearn.linear_model.rows import (
    COPY_X,
    MAX_ITER,
    N_JOBS,
    NARROWEST,
    NO_DRAWS,
    SELECTION,
    TOL,
    WARM_START,
    linear,
    narrow,
    one_row,
)
from certifit.sklearn.translation import By, Data, DropIn, Free, Here, Same, Several, Table, learns, same

__all__ = ["ElasticNet", "Lasso", "LinearRegression", "Ridge", "enet_path", "lasso_path"]

FREE = {
    "precompute",
    "Xy",
    "copy_X",
    "coef_init",
    "verbose",
    "check_input",
    "selection",
    "random_state",
    "do_screening",
}
"""Options of a path that cannot change its answer."""
ADVICE = "Objective did not converge. You might want to increase the number of iterations."


class LinearRegression(DropIn, theirs.LinearRegression):
    """Least squares; of several solutions the one of least norm."""

    _ours = ours.LinearRegression
    _table: ClassVar[Table] = {
        "fit_intercept": Same(),
        "copy_X": COPY_X,
        "tol": Free("the factorization is exact"),
        "n_jobs": N_JOBS,
        "positive": Same(),
    }
    _always: ClassVar[Mapping[str, Any]] = {"tol": 1e-10}

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return linear(model)

    @property
    def rank_(self) -> int:
        """Rank of the rows, centered where there is an intercept; of a fit of one target."""
        return int(self._known("rank_").rank) - int(self.fit_intercept)

    @property
    def singular_(self) -> Array:
        """Singular values of the same rows, by the covariance of the coefficients that is kept of a fit of full rank."""
        known = self._known("singular_")
        block = known.covariance[int(self.fit_intercept) :, int(self.fit_intercept) :]
        if self.rank_ < block.shape[0] or not known.dispersion > 0:
            raise AttributeError(
                "LinearRegression has no singular_ of this fit: no decomposition of X is made, and what the fit keeps tells it "
                "only where the coefficients have standard errors."
            )
        with np.errstate(divide="ignore"):
            return np.sqrt(1.0 / np.linalg.eigvalsh(block / known.dispersion)).astype(self.coef_.dtype)

    def _known(self, name: str) -> Any:
        """What the fit has kept of its rows."""
        found = getattr(vars(self).get("model_"), "_inference", None)
        if found is None or self.positive:
            raise AttributeError(
                f"LinearRegression has no {name} before it is fitted, of several targets, or with bounds."
            )
        return found

    fit_intercept: bool
    positive: bool
    coef_: Array


class Ridge(DropIn, theirs.Ridge):
    """Least squares with an L2 penalty: minimize Σ s_i (y_i − x_i·w − b)² + alpha·‖w‖²."""

    _ours = ours.Ridge
    _table: ClassVar[Table] = {
        "alpha": By(
            lambda alpha, data: float(alpha if isinstance(alpha, float) else np.ravel(alpha)[0]) / data.total,
            "divided by the sum of the weights",
        ),
        "fit_intercept": Same(),
        "copy_X": COPY_X,
        "max_iter": MAX_ITER,
        "tol": TOL,
        "solver": Here(
            "ours chooses its own (`model_.solver_`): the optimum does not depend on it. `solver_` is the name given"
        ),
        "positive": Same(),
        "random_state": NO_DRAWS,
    }

    def _learn(self, data: Data) -> Any:
        if isinstance(self.alpha, float):
            return super()._learn(data)
        alphas = np.ravel(self.alpha)
        if alphas.size == 1:
            return super()._learn(data)
        targets = np.asarray(data.y).reshape(data.rows, -1)
        if targets.shape[1] != alphas.size:
            raise ValueError(
                f"Number of targets and number of penalties do not correspond: {alphas.size} != {targets.shape[1]}"
            )
        settings = self.get_params(deep=False)
        return Several([
            Ridge(**{**settings, "alpha": float(alpha)})._learn(Data(self, data.X, target, data.sample_weight))
            for alpha, target in zip(alphas, targets.T, strict=True)
        ])  # fmt: skip

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        found = one_row(linear(model))
        direct = model.solver_ == "closed_form"
        steps = None if direct else np.full(np.size(model.intercept_), model.n_iter_, dtype=np.int32)
        return {**found, "n_iter_": steps, "solver_": model.solver_ if self.solver == "auto" else self.solver}


class ElasticNet(DropIn, theirs.ElasticNet):
    """Minimize mean ½(y − Xw − b)² + alpha·(l1_ratio·‖w‖₁ + (1 − l1_ratio)·½‖w‖²)."""

    _ours = ours.ElasticNet
    _table: ClassVar[Table] = {
        **same("alpha", "l1_ratio", "fit_intercept"),
        "precompute": Here(
            "what is worth computing beforehand is decided by the shape of X; of a matrix that is given one entry is compared, "
            "as by scikit-learn"
        ),
        "max_iter": MAX_ITER,
        "copy_X": COPY_X,
        "tol": TOL,
        "warm_start": WARM_START,
        "positive": Same(),
        "random_state": NO_DRAWS,
        "selection": SELECTION,
    }

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        """As `DropIn.fit`; `check_input` is scikit-learn's, and the input is checked in any case."""
        return super().fit(X, y, sample_weight)

    def _learn(self, data: Data) -> Any:
        if self.alpha == 0:
            warnings.warn(
                "With alpha=0, this algorithm does not converge well. You are advised to use the LinearRegression estimator: so "
                "says scikit-learn of its own; here the fit is that of LinearRegression.",
                UserWarning,
                stacklevel=5,
            )
        given = not isinstance(self.precompute, bool) and np.ndim(self.precompute) == 2
        if given and not is_sparse(data.X) and data.sample_weight is None:
            _check_gram(np.asarray(self.precompute), data, bool(self.fit_intercept))
        return super()._learn(data)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        found = one_row(linear(model))
        targets = found["coef_"].shape[0] if found["coef_"].ndim == 2 else None
        gap, steps = model.certificate_.gap, max(1, int(model.n_iter_))
        return {
            **found,
            "dual_gap_": gap if targets is None else np.full(targets, gap),
            "n_iter_": steps if targets is None else [steps] * targets,
        }

    def _complaint(self, certificate: Certificate) -> str:
        """In words that users of scikit-learn's filter by."""
        return f"{ADVICE} {super()._complaint(certificate)}"

    @staticmethod
    def path(X: Any, y: Any, *, l1_ratio: float = 0.5, **options: Any) -> Any:
        """See `enet_path`."""
        return enet_path(X, y, l1_ratio=l1_ratio, **options)


def _check_gram(gram: Array, data: Data, fit_intercept: bool) -> None:
    """Compare one entry of a Gram matrix with that of X, in scikit-learn's words; one of columns off their means is of no use."""
    X = np.asarray(data.X, dtype=np.float64)
    d = X.shape[1]
    if gram.shape != (d, d):
        raise ValueError(f"precompute must have shape (n_features, n_features) = {(d, d)}; got {gram.shape}.")
    if fit_intercept and not np.allclose(X.mean(axis=0), 0.0):
        words = "Gram matrix was provided but X was centered to fit intercept: recomputing Gram matrix."
        warnings.warn(words, UserWarning, stacklevel=6)
        return
    one, other = d // 2, min(d // 2 + 1, d - 1)
    wanted, given = float(X[:, one] @ X[:, other]), float(gram[one, other])
    if not np.isclose(wanted, given, rtol=1e-4 if gram.dtype == np.float32 else 1e-7, atol=1e-5):
        raise ValueError(
            "Gram matrix passed in via 'precompute' parameter did not pass validation when a single element was checked: for "
            f"element ({one},{other}) X gives {wanted}, but the value given is {given}."
        )


class Lasso(ElasticNet, theirs.Lasso):
    """Minimize mean ½(y − Xw − b)² + alpha·‖w‖₁."""

    _ours = ours.Lasso
    _table: ClassVar[Table] = {name: row for name, row in ElasticNet._table.items() if name != "l1_ratio"}

    @staticmethod
    def path(X: Any, y: Any, **options: Any) -> Any:
        """See `lasso_path`."""
        return lasso_path(X, y, **options)


def enet_path(
    X: Any,
    y: Any,
    *,
    l1_ratio: float = 0.5,
    eps: float = 1e-3,
    n_alphas: Any = "deprecated",
    alphas: Any = 100,
    positive: bool = False,
    return_n_iter: bool = False,
    tol: float = 1e-4,
    max_iter: int = 1000,
    **free: Any,
) -> Any:
    """``sklearn.linear_model.enet_path``: the elastic net without intercept for a sequence of alphas.

    Parameters
    ----------
    X, y : arrays
        The data, centered where an intercept is wanted; columns of X are shared by several columns of y.
    l1_ratio, eps, alphas, n_alphas, positive, tol, max_iter
        Scikit-learn's; `alphas` is their number or the alphas themselves.
    return_n_iter : bool
        Whether the iterations of each alpha are returned too.
    **free
        Options that cannot change the answer: `precompute`, `Xy`, `copy_X`, `coef_init`, `verbose`, `check_input`, …

    Returns
    -------
    alphas, coefs, dual_gaps : arrays
        Coefficients have the alphas last, those of several targets these first.

    Examples
    --------
    >>> from certifit.sklearn.linear_model import lasso_path
    >>> alphas, coefs, gaps = lasso_path([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]], [1.0, 2.0, 3.0], alphas=[0.5, 0.1])
    >>> coefs.round(2)
    array([[0.89, 0.98],
           [0.  , 0.  ]])
    """
    learns(enet_path)
    unknown = sorted(set(free) - FREE)
    if unknown:
        raise ValueError(f"Unexpected parameters in params: {unknown}")
    if alphas is None:
        warnings.warn(
            "'alphas=None' is deprecated and will be removed in 1.11 of scikit-learn.", FutureWarning, stacklevel=2
        )
    if not isinstance(n_alphas, str):
        warnings.warn(
            "'n_alphas' was deprecated in 1.9 and will be removed in 1.11 of scikit-learn: use 'alphas'.",
            FutureWarning,
            stacklevel=2,
        )
        alphas = n_alphas if isinstance(alphas, (str, int)) or alphas is None else alphas
    count = alphas if isinstance(alphas, (int, np.integer)) else 100
    grid = None if isinstance(alphas, (str, int, np.integer)) else alphas
    columns = np.asarray(y).reshape(Data(None, X).rows, -1).T
    if len(columns) > 1 and positive:
        raise ValueError("positive=True is not allowed for multi-output (y.ndim != 1): give one column of y.")
    gap = narrow(tol)
    options: dict[str, Any] = {
        "l1_ratio": l1_ratio, "n_alphas": int(count), "eps": eps, "alphas": grid, "fit_intercept": False, "max_iter": max_iter,
        "tol": gap if gap > NARROWEST else 0.0,  # nobody judges a path: on to rounding
    }  # fmt: skip
    if np.ndim(y) > 1:  # columns are shared by all targets, also by one
        found = RowsPath(**options).solve(X, y)
    else:
        found = ElasticPath(positive=positive, **options).solve(X, columns[0])
    if grid is None and l1_ratio > 0:
        found.coefs[0] = 0.0  # the first alpha is the least without a coefficient: rounding must not leave one
    scale = 0.5 * float(np.mean(np.asarray(columns, dtype=np.float64) ** 2)) * len(columns)
    answer = (found.alphas, np.ascontiguousarray(np.moveaxis(found.coefs, 0, -1)), found.gaps * scale)
    return (*answer, [1] * found.alphas.shape[0]) if return_n_iter else answer


def lasso_path(X: Any, y: Any, **options: Any) -> Any:
    """``sklearn.linear_model.lasso_path``: `enet_path` with the absolute value alone."""
    learns(lasso_path)
    return enet_path(X, y, l1_ratio=1.0, **options)
