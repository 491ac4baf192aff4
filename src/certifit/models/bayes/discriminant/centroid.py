"""The centroid method: discriminants with one variance for all columns and classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.models.bayes.discriminant.model import Discriminant
from certifit.models.bayes.shares import PRIORS
from certifit.parameters import Fitted
from certifit.representation.design.moments import Moments

__all__ = ["NearestCentroid"]


class NearestCentroid(Discriminant):
    """The class with the nearest mean: Gaussians with one variance for all columns and classes, and equal shares.

    Examples
    --------
    >>> from certifit import NearestCentroid
    >>> model = NearestCentroid().fit([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1])
    >>> model.predict([[2.0], [4.0]])
    array([0, 1])
    """

    priors: Any = PRIORS.but(text="Probabilities of the classes; None takes them as equally probable.")

    centroids_: Array = Fitted("array of shape (K, n_features)", "The means.")

    def _covariances(self, moments: Moments, X: Array | None, group: Array | None, weight: Array | None) -> list[Array]:
        if self.priors is None:
            self.priors_ = np.full(self.classes_.shape[0], 1.0 / self.classes_.shape[0])
        self.centroids_ = moments.mean
        within = moments.pooled().covariance()[0]
        mean = float(within.mean())
        return [np.full(within.shape[0], mean if mean > 0.0 else 1.0)]

    @property
    def _full(self) -> bool:
        return False
