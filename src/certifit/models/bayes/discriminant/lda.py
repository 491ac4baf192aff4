"""Linear discriminants: classes that share one covariance, and the directions that tell them apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.data.gate import check_x, like_input
from certifit.models.bayes.discriminant.model import COVARIANCE, Discriminant
from certifit.models.bayes.gaussian import ledoit_wolf, shrunk
from certifit.models.bayes.shares import PRIORS
from certifit.parameters import Choice, Either, Fitted, Integer, Nothing, Parameter, Real
from certifit.representation.design.moments import Moments

__all__ = ["LDA"]


class LDA(TransformerMixin, Discriminant):
    """Linear discriminant: Gaussians with one covariance for all classes.

    Minimizes −mean ln [π_y N(x; m_y, Σ)] in closed form. The boundaries are planes; `transform` projects onto the directions
    in which the class means differ most beside the spread within the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LDA
    >>> X = np.array([[0.0, 0.0], [1.0, 0.5], [0.5, 1.0], [4.0, 4.0], [5.0, 4.5], [4.5, 5.0]])
    >>> y = np.array(["low", "low", "low", "high", "high", "high"])
    >>> model = LDA().fit(X, y)
    >>> model.predict([[0.4, 0.4], [4.2, 4.1]]).tolist()
    ['low', 'high']
    >>> model.certificate_.kind
    'closed form'
    """

    covariance: str = COVARIANCE
    shrinkage: Any = Parameter(
        None,
        Either(Nothing(), Choice("ledoit-wolf"), Real(0, 1)),
        'Share of the identity in the covariance, None being 0; "ledoit-wolf" estimates the best share for columns that are '
        "brought to one variance within the classes.",
    )
    priors: Any = PRIORS
    n_components: int | None = Parameter(
        None, Either(Nothing(), Integer(1)), "Directions of `transform`; None takes min(K − 1, n_features)."
    )

    coef_: Array = Fitted("array", "Weights of the linear scores; for two classes, of the second against the first.")
    intercept_: Array = Fitted("array", "Their constants.")
    scalings_: Array = Fitted(
        "array of shape (n_features, components)", "Directions of `transform`, most telling first."
    )
    explained_variance_ratio_: Array = Fitted(
        "array of shape (components,)", "Share of the variance between classes along each of them."
    )
    shrinkage_: float = Fitted("float", "The shrinkage used.")

    def _covariances(self, moments: Moments, X: Array | None, group: Array | None, weight: Array | None) -> list[Array]:
        within = moments.pooled().covariance()[0]
        if self.covariance == "isotropic":
            within = np.full(within.shape[0], within.mean())
        self.shrinkage_ = 0.0
        if self.shrinkage == "ledoit-wolf":
            if within.ndim == 2:
                assert X is not None
                assert group is not None
                assert weight is not None
                unit = np.sqrt(np.where(np.diag(within) > 0, np.diag(within), 1.0))
                scaled = within / np.outer(unit, unit)
                self.shrinkage_ = ledoit_wolf(X / unit, weight, group, moments.mean / unit, scaled)
                within = shrunk(scaled, self.shrinkage_) * np.outer(unit, unit)
        elif self.shrinkage is not None:
            self.shrinkage_ = float(self.shrinkage)
            within = shrunk(within, self.shrinkage_)
        return [within]

    def _settle(
        self, moments: Moments, X: Array | None, group: Array | None, weight: Array | None, started: float
    ) -> None:
        super()._settle(moments, X, group, weight, started)
        K, d = self.means_.shape
        if self.n_components is not None and self.n_components > min(K - 1, d):
            raise ValueError(
                f"n_components must be at most min(classes − 1, n_features) = {min(K - 1, d)}; got {self.n_components}."
            )
        form = self._forms[0]
        center = self.priors_ @ self.means_
        between = np.sqrt(self.priors_)[:, None] * ((self.means_ - center) @ form.whitening.T)
        _, strength, directions = np.linalg.svd(between, full_matrices=False)
        k = min(K - 1, d) if self.n_components is None else int(self.n_components)
        energy = strength**2
        self.xbar_ = center
        self.scalings_ = form.whitening.T @ directions[:k].T
        self.explained_variance_ratio_ = energy[:k] / energy.sum() if energy.sum() > 0 else energy[:k]
        precision = form.whitening.T @ form.whitening
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            linear = self.means_ @ precision
            squares = np.einsum("kj,kj->k", linear, self.means_)
            constant = np.log(self.priors_) - 0.5 * squares
            self.coef_ = (linear[[1]] - linear[[0]] if K == 2 else linear).astype(self._dtype)
        if not (np.isfinite(self.coef_).all() and np.isfinite(squares).all()):
            raise ValueError(
                "The linear scores are beyond the range of their precision: classes vary too little beside their means, or "
                "columns of X are too small. Scale X."
            )
        self.intercept_ = (constant[[1]] - constant[[0]] if K == 2 else constant).astype(self._dtype)

    def transform(self, X: Any) -> Array:
        """Coordinates along the discriminant directions, in which every class has unit variance.

        Returns
        -------
        array of shape (n_samples, components)
        """
        check_is_fitted(self, "scalings_")
        rows = check_x(self, X, reset=False, accept_sparse=False)
        return like_input(rows, (rows.astype(np.float64, copy=False) - self.xbar_) @ self.scalings_)

    @property
    def _n_features_out(self) -> int:
        return int(self.scalings_.shape[1])

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the directions: lda0, lda1, …"""
        check_is_fitted(self, "scalings_")
        return np.array([f"lda{j}" for j in range(self._n_features_out)], dtype=object)
