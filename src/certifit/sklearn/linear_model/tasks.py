"""The multi-task lasso and elastic net under scikit-learn's names; the scale of alpha is the same here and there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.linear_model as theirs

from certifit.certificate import Certificate
from certifit.models.linear import tasks as ours
from certifit.sklearn.linear_model import choice
from certifit.sklearn.linear_model.rows import COPY_X, MAX_ITER, NO_DRAWS, SELECTION, TOL, WARM_START, linear
from certifit.sklearn.linear_model.squares import ADVICE, enet_path, lasso_path
from certifit.sklearn.translation import Data, DropIn, Table, fresh, same

__all__ = ["MultiTaskElasticNet", "MultiTaskElasticNetCV", "MultiTaskLasso", "MultiTaskLassoCV"]


def _no_level(estimator: Any) -> dict[str, Any]:
    """Without intercepts scikit-learn tells one number for all targets."""
    return {} if estimator.fit_intercept else {"intercept_": 0.0}


class MultiTaskElasticNet(DropIn, theirs.MultiTaskElasticNet):
    """Minimize mean ½‖y − Wx − b‖² + alpha·Σ_j (l1_ratio·‖w_j‖₂ + (1 − l1_ratio)·½‖w_j‖²)."""

    _ours = ours.MultiTaskElasticNet
    _table: ClassVar[Table] = {
        **same("alpha", "l1_ratio", "fit_intercept"),
        "copy_X": COPY_X,
        "max_iter": MAX_ITER,
        "tol": TOL,
        "warm_start": WARM_START,
        "random_state": NO_DRAWS,
        "selection": SELECTION,
    }

    def _learn(self, data: Data) -> Any:
        if np.ndim(data.y) == 1 and not np.iscomplexobj(data.X):  # of those the gate of the model will speak
            raise ValueError(f"For mono-task outputs, use {type(self).__name__.removeprefix('MultiTask')}")
        return super()._learn(data)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        gap, steps = model.certificate_.gap, max(1, int(model.n_iter_))
        return {**linear(model), **_no_level(self), "dual_gap_": gap, "eps_": self.tol, "n_iter_": steps}

    def _complaint(self, certificate: Certificate) -> str:
        """In words that users of scikit-learn's filter by."""
        return f"{ADVICE} {super()._complaint(certificate)}"

    path = staticmethod(enet_path)


class MultiTaskLasso(MultiTaskElasticNet, theirs.MultiTaskLasso):
    """Minimize mean ½‖y − Wx − b‖² + alpha·Σ_j ‖w_j‖₂."""

    _ours = ours.MultiTaskLasso
    _table: ClassVar[Table] = {name: row for name, row in MultiTaskElasticNet._table.items() if name != "l1_ratio"}
    path = staticmethod(lasso_path)


class _TasksCV(choice.PathCV):
    """The folds are dealt by scikit-learn's rule, rows in their order."""

    def _check_targets(self, X: Any, y: Any) -> None:
        if np.ndim(y) == 1 and not np.iscomplexobj(X):
            raise ValueError(f"For mono-task outputs, use {type(self).__name__.removeprefix('MultiTask')}")

    def _refitted(self, settings: dict[str, Any], data: Data) -> Any:
        options = {name: settings[name] for name in ("fit_intercept", "tol", "max_iter", "n_jobs")}
        model = fresh(ours.MultiTaskElasticNet, alpha=float(self.alpha_), l1_ratio=float(self.l1_ratio_), **options)
        return model.fit(data.X, data.y, data.sample_weight)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {**super()._fitted(model, data), **_no_level(self)}


class MultiTaskElasticNetCV(_TasksCV, theirs.MultiTaskElasticNetCV):
    """The multi-task elastic net with alpha and l1_ratio of the least cross-validated squared error."""

    _ours = ours.MultiTaskElasticNetCV
    _table: ClassVar[Table] = {
        name: row for name, row in choice.ElasticNetCV._table.items() if name not in ("precompute", "positive")
    }
    path = staticmethod(enet_path)


class MultiTaskLassoCV(_TasksCV, theirs.MultiTaskLassoCV):
    """The multi-task lasso with the alpha of the least cross-validated squared error."""

    _ours = ours.MultiTaskLassoCV
    _table: ClassVar[Table] = {name: row for name, row in MultiTaskElasticNetCV._table.items() if name != "l1_ratio"}
    path = staticmethod(lasso_path)
