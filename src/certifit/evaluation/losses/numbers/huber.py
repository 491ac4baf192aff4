"""Huber loss: quadratic near zero, linear far away."""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_real
from certifit.data.medians import weighted_median
from certifit.evaluation.losses.base import Loss


class Huber(Loss):
    """With r = y − f: curvature·½r² where |r| ≤ delta, curvature·delta·(|r| − delta/2) beyond.

    Parameters
    ----------
    delta : float, default=1.0
        Residual at which the loss turns linear, in units of y.
    curvature : float, default=1.0
        Second derivative of the quadratic part.

    See Also
    --------
    Huber.from_lambda_mu : the form μz² for |z| < λ/2μ, λ(|z| − λ/4μ) beyond.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Huber
    >>> Huber(delta=1.0).value(np.zeros(2), np.array([0.5, 3.0]))
    array([0.125, 2.5  ])
    >>> Huber.from_lambda_mu(lam=1.0, mu=0.5) == Huber(delta=1.0)
    True
    """

    name = "huber"
    kernel = ("huber", "delta", "curvature")
    convex = True

    def __init__(self, delta: float = 1.0, curvature: float = 1.0) -> None:
        self.delta = float(check_real("delta", delta, low=0, open_low=True, high=np.inf, open_high=True))
        self.curvature = float(check_real("curvature", curvature, low=0, open_low=True, high=np.inf, open_high=True))

    @classmethod
    def from_lambda_mu(cls, lam: float, mu: float) -> Huber:
        """The parametrization by the outer slope λ and the inner coefficient μ of z²."""
        return cls(delta=lam / (2 * mu), curvature=2 * mu)

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        """Lipschitz constant of the derivative."""
        return self.curvature

    def value(self, y: Array, f: Array) -> Array:
        r = np.abs(f - y)
        inner = np.minimum(r, self.delta)
        return self.curvature * inner * (r - 0.5 * inner)

    def derivative(self, y: Array, f: Array) -> Array:
        return self.curvature * np.clip(f - y, -self.delta, self.delta)

    def second_derivative(self, y: Array, f: Array) -> Array:
        return np.where(np.abs(f - y) <= self.delta, self.curvature, 0.0).astype(f.dtype, copy=False)

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        edge = self.curvature * self.delta
        return np.where(np.abs(u) <= edge, u * (0.5 * u / self.curvature + y), np.inf)

    def dual_domain(self, y: Array) -> tuple[Array, Array]:
        edge = self.curvature * self.delta
        return np.full_like(y, -edge), np.full_like(y, edge)

    def eased(self, y: Array, f: Array, weight: Array) -> list[Loss]:
        """Quadratic out to the residuals of the middle rows at first, then in steps down to delta.

        A constant may meet the middle rows and leave others far off, from where a step goes no further than the quadratic part.
        """
        far = np.abs(f - y)
        middle = max(weighted_median(far, weight), float(weight @ far) / float(weight.sum()))
        steps = int(np.log10(max(middle / self.delta, 1.0)))
        return [Huber(self.delta * 10.0**k, self.curvature) for k in range(steps, 0, -1)]

    def rescaled(self, unit: float) -> tuple[Loss, float]:
        return Huber(self.delta / unit, self.curvature), unit * unit
