"""Generalized linear models with the log link: Poisson and Gamma."""

from __future__ import annotations

from typing import Any

from certifit.evaluation.losses import Gamma, Loss, Poisson
from certifit.evaluation.penalties import Constraint, Penalty, resolve_penalty
from certifit.models.linear.inference.inference import InferenceMixin
from certifit.models.linear.model import BaseLinear
from certifit.models.linear.parameters import PENALTY, SOLVER
from certifit.parameters import ALPHA, FIT_INTERCEPT, L1_RATIO, Stopped

__all__ = ["GammaRegressor", "PoissonRegressor"]


class _LogLinkRegressor(Stopped, InferenceMixin, BaseLinear):
    """Mean half deviance of exp(Xw + b) plus alpha times a penalty; a subclass names the family."""

    alpha: float = ALPHA.but(
        text="Strength of the penalty, on the scale of ``sklearn.linear_model``'s class of the same name; 0 gives the maximum "
        "likelihood fit, for which `summary()` has standard errors."
    )
    penalty: Any = PENALTY
    l1_ratio: float = L1_RATIO
    fit_intercept: bool = FIT_INTERCEPT
    solver: Any = SOLVER

    def _family(self) -> Loss:
        raise TypeError(f"{type(self).__name__} must name its family.")

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        options = {"l1_ratio": self.l1_ratio} if self.penalty == "elasticnet" else {}
        return self._family(), resolve_penalty(self.penalty, **options), float(self.alpha), None


class PoissonRegressor(_LogLinkRegressor):
    """Counts and rates: minimize the mean Poisson half deviance of exp(Xw + b) + alpha·penalty(w).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import PoissonRegressor
    >>> X, counts, years = np.arange(4.0)[:, None], np.array([3.0, 2.0, 8.0, 16.0]), np.array([3.0, 1.0, 2.0, 2.0])
    >>> model = PoissonRegressor(alpha=0.0).fit(X, counts / years, sample_weight=years)
    >>> model.predict(X).round(3)  # events a year
    array([1., 2., 4., 8.])
    """

    def _family(self) -> Loss:
        return Poisson()


class GammaRegressor(_LogLinkRegressor):
    """Positive amounts: minimize the mean Gamma half deviance of exp(Xw + b) + alpha·penalty(w).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import GammaRegressor
    >>> x = np.arange(4.0)
    >>> GammaRegressor(alpha=0.0).fit(x[:, None], 2.0**x).predict([[4.0]]).round(3)
    array([16.])
    """

    def _family(self) -> Loss:
        return Gamma()
