"""Quadratic discriminants: a covariance for each class."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.models.bayes.discriminant.model import COVARIANCE, Discriminant
from certifit.models.bayes.gaussian import Form, shrunk
from certifit.models.bayes.shares import PRIORS
from certifit.parameters import Either, Fitted, Nothing, Parameter, Real
from certifit.representation.design.moments import Moments

__all__ = ["QDA"]


class QDA(Discriminant):
    """Quadratic discriminant: a Gaussian with its own covariance for each class.

    Minimizes −mean ln [π_y N(x; m_y, Σ_y)] in closed form; the boundaries are quadrics. A class with too few rows for a
    covariance of its own, one that varies in fewer directions than all classes together, takes that of all (see `pooling_`).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import QDA
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(size=(50, 2)), rng.normal(scale=4.0, size=(50, 2))])
    >>> y = np.repeat([0, 1], 50)
    >>> QDA().fit(X, y).predict([[0.1, 0.1], [6.0, 6.0]])
    array([0, 1])
    """

    covariance: str = COVARIANCE
    shrinkage: Any = Parameter(
        None, Either(Nothing(), Real(0, 1)), "Share of the identity in each covariance; None is 0."
    )
    pooling: float = Parameter(0.0, Real(0, 1), "Share of the covariance of all classes in each one's own: 1 is LDA.")
    priors: Any = PRIORS

    pooling_: Array = Fitted("array of shape (K,)", "Share of the covariance of all classes in each one's.")

    def _covariances(self, moments: Moments, X: Array | None, group: Array | None, weight: Array | None) -> list[Array]:
        within = moments.pooled().covariance()[0]
        self.shrinkage_ = 0.0 if self.shrinkage is None else float(self.shrinkage)
        own = []
        for one in moments.covariance():
            mixed = (1.0 - self.pooling) * one + self.pooling * within
            if self.covariance == "isotropic":
                mixed = np.full(mixed.shape[0], mixed.mean())
            own.append(shrunk(mixed, self.shrinkage_))
        # A class of few rows varies in fewer directions than all classes together: its own density would not be one on the
        # same plane as the others', and the likelihood has no maximum. It takes the covariance of all classes, as in LDA.
        wanted = Form.of(moments.mean[0], within).rank
        lacking = [k for k, one in enumerate(own) if Form.of(moments.mean[k], one).rank < wanted]
        self.pooling_ = np.full(len(own), float(self.pooling))
        self.pooling_[lacking] = 1.0
        lent = shrunk(
            np.full(within.shape[0], within.mean()) if self.covariance == "isotropic" else within, self.shrinkage_
        )
        return [lent if k in lacking else one for k, one in enumerate(own)]

    def _note(self) -> str:
        names = [
            repr(label) for label, share in zip(self.classes_.tolist(), self.pooling_, strict=True) if share == 1.0
        ]
        if not names or self.pooling == 1.0:
            return super()._note()
        return (
            f"{super()._note()} Classes that vary in fewer directions than all classes together have the covariance of all: "
            f"{', '.join(names[:5])}{', …' if len(names) > 5 else ''}."
        )
