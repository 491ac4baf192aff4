"""Support vector regression on any kernel.

SVR      minimize over f, b        Σ s_i · max(|y_i − f(x_i) − b| − ε, 0) + ½‖f‖²/C
NuSVR    minimize over f, b, ε     Σ s_i · max(|y_i − f(x_i) − b| − ε, 0) + ν·ε·Σs + ½‖f‖²/C

The tube of NuSVR has a price: it is widened until at most a share ν of the rows lies outside.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.gate import check_xy, kept_rows, like_input
from certifit.models.kernel.machine import FIRST, LAST, Machine, Solved
from certifit.optimization.dual.smo import Dual, judge
from certifit.parameters import Fitted, Parameter, Real, check_parameters
from certifit.progress import progress

__all__ = ["SVR", "NuSVR"]

C = Parameter(1.0, Real(0, open_low=True), "Weight of the losses against the penalty ½‖f‖².")


class TubeMachine(RegressorMixin, Machine):
    """A function and a tube around it; a subclass states the dual, and reads its intercepts."""

    certificate_: Certificate = Fitted("Certificate", "How far the fit is from the best possible one.")

    def _dual(self, y: Array, weight: Array) -> Dual:
        raise TypeError(f"{type(self).__name__} must state its dual.")

    def _intercept(self, solved: Solved) -> float:
        raise TypeError(f"{type(self).__name__} must read its intercept.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        With ``kernel="precomputed"`` X is the square matrix of similarities; where a kernel takes no numbers, a sequence of
        what it takes.
        """
        check_parameters(self)
        gated, y, weight = check_xy(self, self._gated(X), y, sample_weight=sample_weight)
        kept = kept_rows(sample_weight, y.shape[0])
        with progress(self.verbose, type(self).__name__) as clock:
            sample = self._sample(X, gated, y, weight, kept)
            gram, dual = sample.gram, self._dual(sample.target, sample.weight)
            scale = judge(dual, dual.start, np.zeros_like(sample.target)).primal  # f = 0: the start cancels, or is zero
            (solved,) = self._solved(gram, [dual], np.array([scale]), clock)
            certificate = self._certificate(
                solved, float(weight.sum()) * float(self.C), scale, clock, self._proof(gram)
            )
        self.intercept_ = np.array([self._intercept(solved)])
        self._keep_one(sample, solved, certificate)
        return self

    def predict(self, X: Any) -> Array:
        """f(x) + b."""
        rows, scores = self._scores(X)
        return like_input(rows, scores[:, 0] + self.intercept_[0])


class SVR(TubeMachine):
    """Support vector regression on a kernel: minimizes ``mean max(|y − f − b| − epsilon, 0) + alpha·½‖f‖²``, ``alpha = 1/(C·n)``.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import SVR
    >>> x = np.linspace(0.0, 6.0, 40)
    >>> model = SVR(C=100.0, gamma=0.5, epsilon=0.05).fit(x[:, None], np.sin(x))
    >>> bool(np.abs(model.predict(x[:, None]) - np.sin(x)).max() < 0.06), bool(model.certificate_)
    (True, True)
    """

    C: float = C
    epsilon: float = Parameter(0.1, Real(0), "Half width of the tube in which residuals are free, in units of y.")

    __order__ = (*FIRST, "C", "epsilon", *LAST)

    def _dual(self, y: Array, weight: Array) -> Dual:
        limit, width = float(self.C) * weight[None], float(self.epsilon)
        return Dual(np.arange(y.shape[0]), y[None] - width, y[None] + width, -limit, limit, np.zeros((1, y.shape[0])))

    def _intercept(self, solved: Solved) -> float:
        return float(solved.evidence.intercepts[0])


class NuSVR(TubeMachine):
    """Support vector regression whose tube is as wide as the rows ask for: at most a share `nu` of them lies outside.

    Minimizes ``mean max(|y − f − b| − ε, 0) + nu·ε + alpha·½‖f‖²`` over f, b and ε, ``alpha = 1/(C·n)``.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import NuSVR
    >>> rng = np.random.default_rng(0)
    >>> x = np.linspace(0.0, 6.0, 200)
    >>> y = np.sin(x) + 0.1 * rng.normal(size=200)
    >>> model = NuSVR(nu=0.2, C=10.0).fit(x[:, None], y)
    >>> bool((np.abs(y - model.predict(x[:, None])) > model.epsilon_ + 1e-6).mean() <= 0.2)
    True
    """

    nu: float = Parameter(0.5, Real(0, 1, open_low=True), "Upper limit of the share of rows outside the tube.")
    C: float = C

    epsilon_: float = Fitted("float", "Half width of the tube.")

    __order__ = ("nu", "C", *FIRST, *LAST)

    def _dual(self, y: Array, weight: Array) -> Dual:
        limit, target = float(self.C) * weight, np.vstack([y, y])
        zero = np.zeros_like(limit)
        start = 0.5 * float(self.nu) * limit
        return Dual(
            np.arange(y.shape[0]),
            target,
            target,
            np.vstack([zero, -limit]),
            np.vstack([limit, zero]),
            np.vstack([start, -start]),
        )

    def _intercept(self, solved: Solved) -> float:
        # Rows above the tube have y − f = b + ε, rows below it b − ε.
        above, below = (float(b) for b in solved.evidence.intercepts)
        self.epsilon_ = 0.5 * (above - below)
        return 0.5 * (above + below)
