"""Robust regression: Huber, least absolute deviations, quantiles, and the Chebyshev criterion."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from certifit._types import Array, Matrix
from certifit.base import ConvergenceWarning
from certifit.certificate import Certificate
from certifit.data.equal_rows import merge_rows
from certifit.data.gate import check_xy
from certifit.data.medians import weighted_median
from certifit.evaluation.losses import Absolute, Huber, Loss, Quantile
from certifit.evaluation.penalties import Constraint, Penalty, resolve_penalty
from certifit.models.linear.inference.inference import InferenceMixin
from certifit.models.linear.model import BaseLinear
from certifit.models.linear.parameters import OF_A_MAXIMUM, PENALTY, SOLVER
from certifit.optimization.interior_point.chebyshev import chebyshev
from certifit.optimization.interior_point.solve import InteriorPointResult
from certifit.optimization.objective.problem import Point
from certifit.optimization.objective.units import check_range
from certifit.optimization.programs.highs import chebyshev_lp
from certifit.parameters import (
    ALPHA,
    FIT_INTERCEPT,
    MAX_ITER,
    TOL,
    VERBOSE,
    Choice,
    Declared,
    Either,
    OneOf,
    Parameter,
    Real,
    Stopped,
    check_parameters,
)
from certifit.progress import progress

__all__ = ["ChebyshevRegressor", "HuberRegressor", "LADRegressor", "QuantileRegressor"]

MAD = 1.4826  # median absolute deviation of a normal distribution to its standard deviation
ROUNDS = 30
SETTLED = 1e-4  # relative change of the scale
TOGETHER = 1e-10  # the same, of a scale that is fitted with the coefficients
LEAST_SCALE = 1e-3  # of the spread of the target: an exact fit of most rows has no residuals to measure


class _PenalizedRobust(InferenceMixin, BaseLinear):
    """A fixed loss with alpha times a penalty by name."""

    def _loss_object(self) -> Loss:
        raise TypeError(f"{type(self).__name__} must name its loss.")

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        return self._loss_object(), resolve_penalty(self.penalty), float(self.alpha), None


class HuberRegressor(Stopped, _PenalizedRobust):
    """Minimize mean huber((y − Xw − b) / s) · s² + alpha·penalty(w): squares near zero, absolute values far away.

    The unit s is that of the residuals: 1.4826 times their median absolute value, found by fitting with the spread of y
    first and again with the spread of what is left until it stays. A target in other units gives the same fit in those units.

    With ``scale="joint"`` the unit is fitted too: minimize over w, b and s

        mean huber(y − Xw − b)/s + s/2 + alpha·penalty(w),    huber turning linear at delta·s,

    which is convex in all of them together (Huber 1981, section 7.7; half of scikit-learn's objective, its alpha divided by n:
    `certifit.sklearn.linear_model` has its scale).

    Attributes
    ----------
    outliers_ : array of shape (n_samples,), bool
        Rows (of positive weight) whose residual lies in the linear part.
    scale_ : float
        The unit s. The certificate is that of the fit with this unit.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import HuberRegressor
    >>> X, y = np.arange(6.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0, 4.0, 50.0])
    >>> model = HuberRegressor().fit(X, y)
    >>> model.outliers_, bool(model.coef_[0] < 1.2)
    (array([False, False, False, False, False,  True]), True)
    >>> thousand = HuberRegressor().fit(X, 1000 * y)
    >>> bool(np.isclose(thousand.coef_[0], 1000 * model.coef_[0]))
    True
    """

    delta: float = Parameter(
        1.35, Real(0, open_low=True), "Residual at which the loss turns linear, in units of `scale`."
    )
    scale: Any = Parameter(
        "residuals",
        Either(Choice("residuals", "joint"), Real(0, open_low=True)),
        'Unit of `delta`: "residuals" is the robust spread of the residuals, "joint" is fitted with the coefficients (and needs '
        "delta > 1), a number is in units of y.",
        kind="str or float",
    )
    alpha: float = ALPHA.but(0.0)
    penalty: Any = PENALTY
    fit_intercept: bool = FIT_INTERCEPT
    solver: Any = SOLVER

    def _loss_object(self) -> Loss:
        return Huber(delta=self.delta * getattr(self, "scale_", 1.0))

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        loss, penalty, alpha, constraint = super()._objective()
        if self.scale != "joint":
            return loss, penalty, alpha, constraint
        if not self.delta > 1:
            raise ValueError(
                f"scale='joint' needs delta > 1, got delta={self.delta:g}: for smaller ones the best scale is zero."
            )
        return loss, penalty, alpha * getattr(self, "scale_", 1.0), constraint

    def _fit_arrays(self, X: Matrix, y: Array, weight: Array) -> Any:
        self._last = None  # a fit that failed may have left one
        if self.scale == "joint":
            return self._fit_jointly(X, y, weight)
        settled = self.scale != "residuals"
        self.scale_ = start = float(self.scale) if settled else _spread(y, weight)
        tried: list[float] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of fits that only tell the scale
            for _ in range(0 if settled else ROUNDS):
                super()._fit_arrays(X, y, weight)
                found = max(MAD * weighted_median(np.abs(self._left_over), weight), LEAST_SCALE * start)
                settled = abs(found / self.scale_ - 1.0) < SETTLED
                if settled:
                    break
                tried.append(self.scale_)
                self.scale_ = found
                if any(abs(found / one - 1.0) < TOGETHER for one in tried):  # from here on the rounds would repeat
                    break
        if not settled or self.scale != "residuals" or not self.certificate_.certified:
            super()._fit_arrays(X, y, weight)
        del self._left_over, self._last
        return self

    def _fit_jointly(self, X: Matrix, y: Array, weight: Array) -> Any:
        """Minimize over the coefficients and over the scale in turn, with secant steps on log s."""
        least = LEAST_SCALE * _spread(y, weight)
        self.scale_, before = _spread(y, weight), None
        judged, self.judged_elsewhere = self.judged_elsewhere, True  # fits that only tell the scale are not judged
        for _ in range(ROUNDS):
            super()._fit_arrays(X, y, weight)
            at = float(np.log(self.scale_))
            step = float(np.log(max(_best_scale(self._left_over, weight, self.delta), least))) - at
            if abs(step) < TOGETHER:
                break
            if before is not None and step != before[1]:
                jump = -step * (at - before[0]) / (step - before[1])
                jump = jump if abs(jump) < 10 * abs(step) and jump * step > 0 else step
            else:
                jump = step
            before, self.scale_ = (at, step), float(np.exp(at + jump))
        self.judged_elsewhere = judged
        self._certify(self.certificate_)
        del self._left_over, self._last
        return self

    def _begin(self) -> Point | None:
        """Where the fit with the scale before ended: a few steps away."""
        return getattr(self, "_last", None)

    def _keep(self, problem: Any, solution: Any, weight: Array) -> None:
        super()._keep(problem, solution, weight)
        self._last = solution.coef, float(solution.intercept)
        self._left_over = np.asarray(problem.y - problem.scores(solution.coef, solution.intercept))
        self.outliers_ = np.abs(self._left_over) > self.delta * self.scale_


def _best_scale(residual: Array, weight: Array, delta: float) -> float:
    """The s of least mean huber(r)/s + s/2, huber turning linear at delta·s: Σ p_i min(r_i²/s², delta²) = 1.

    With the k smallest residuals in the quadratic part, s² = Σ_k p_i r_i² / (1 − delta²·(share of the others)).
    """
    order = np.argsort(np.abs(residual))
    size, share = np.abs(residual)[order], weight[order] / weight.sum()
    inside, outside = np.cumsum(share * size**2), np.maximum(1.0 - np.cumsum(share), 0.0)
    spare = 1.0 - delta**2 * outside
    scale = np.sqrt(np.where(spare > 0, inside / np.where(spare > 0, spare, 1.0), np.inf))
    scale[-1] = np.sqrt(inside[-1])
    return float(scale[np.argmax(delta * scale <= np.append(size[1:], np.inf))])


def _spread(y: Array, weight: Array) -> float:
    """Robust spread of the target: by the median distance from the median, else by the mean one; 1 where there is none."""
    distance = np.abs(y - weighted_median(y, weight))
    unit = float(distance.max()) or 1.0
    return MAD * weighted_median(distance, weight) or unit * float(weight @ (distance / unit) / weight.sum()) or 1.0


class LADRegressor(Stopped, _PenalizedRobust):
    """Least absolute deviations: minimize mean |y − Xw − b| + alpha·penalty(w), by a structured interior point.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LADRegressor
    >>> X, y = np.arange(6.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0, 4.0, 50.0])
    >>> LADRegressor().fit(X, y).coef_.round(6)
    array([1.])
    """

    alpha: float = ALPHA.but(0.0)
    penalty: Any = PENALTY.but("l1")
    fit_intercept: bool = FIT_INTERCEPT
    solver: Any = SOLVER
    max_iter: int = MAX_ITER.but(200)

    def _loss_object(self) -> Loss:
        return Absolute()


class QuantileRegressor(Stopped, _PenalizedRobust):
    """Minimize mean pinball loss of y − Xw − b at a quantile + alpha·penalty(w).

    The scale of alpha is that of ``sklearn.linear_model.QuantileRegressor``.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import QuantileRegressor
    >>> X, y = np.zeros((5, 1)), np.array([1.0, 2.0, 3.0, 4.0, 100.0])
    >>> round(QuantileRegressor(quantile=0.5).fit(X, y).intercept_, 6)
    3.0
    """

    quantile: float = Parameter(0.5, Real(0, 1, open_low=True, open_high=True), "The conditional quantile to estimate.")
    alpha: float = ALPHA
    penalty: Any = PENALTY.but("l1")
    fit_intercept: bool = FIT_INTERCEPT
    solver: Any = SOLVER
    max_iter: int = MAX_ITER.but(200)

    def _loss_object(self) -> Loss:
        return Quantile(self.quantile)


class ChebyshevRegressor(Declared, BaseLinear, takes={"fit.sample_weight": OF_A_MAXIMUM}):
    """Chebyshev's criterion: minimize max |y_i − x_i·w − b| + alpha·½‖w‖² over the rows of positive weight.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import ChebyshevRegressor
    >>> X, y = np.arange(3.0)[:, None], np.array([0.0, 1.0, 0.0])
    >>> model = ChebyshevRegressor().fit(X, y)
    >>> round(model.certificate_.objective, 6)
    0.5
    """

    alpha: float = ALPHA.but(0.0, "Strength of the L2 penalty.")
    fit_intercept: bool = FIT_INTERCEPT
    solver: str = OneOf(
        ("auto", "interior_point", "lp"),
        '"lp" solves the linear program by HiGHS and needs alpha = 0.',
    )
    tol: float = TOL
    max_iter: int = MAX_ITER.but(200, "Most iterations of the interior point.")
    verbose: int = VERBOSE

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ChebyshevRegressor:
        """Fit the model; weights matter only by being positive."""
        check_parameters(self)
        alpha = float(self.alpha)
        solver, tol, max_iter = self._solver_options()
        if solver == "lp" and alpha > 0:
            raise ValueError(f"solver='lp' needs alpha=0, got alpha={alpha:g}: use solver='interior_point'.")
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight)
        X, y, _ = merge_rows(X, y, weight)
        constant = 0.5 * (y.max() + y.min()) if self.fit_intercept else 0.0
        scale = max(float(np.abs(y - constant).max()), 1e-15 * float(np.abs(y).max()))
        with progress(self.verbose, "ChebyshevRegressor") as clock:
            if not np.ptp(y) > 0 and (self.fit_intercept or not y.any()):  # a constant is perfect
                result = InteriorPointResult(
                    np.zeros(X.shape[1]), constant, np.zeros_like(y), 0.0, 0.0, 0.0, 1, "optimal", ""
                )
            elif solver == "lp":
                result = chebyshev_lp(X, y, fit_intercept=self.fit_intercept)
            else:
                result = chebyshev(X, y, l2=alpha, fit_intercept=self.fit_intercept, tol=tol * scale, max_iter=max_iter)
        check_range(result.coef, result.intercept)
        self._loss = Absolute()
        self.coef_ = result.coef.astype(X.dtype)
        self.intercept_ = float(result.intercept)
        self.n_iter_ = result.iterations
        self.solver_ = "lp" if solver == "lp" else "interior_point"
        residual = y - np.asarray(X @ self.coef_.astype(np.float64)) - self.intercept_
        size = float(np.sum(self.coef_.astype(np.float64) ** 2)) if alpha > 0 else 0.0
        objective = float(np.abs(residual).max()) + 0.5 * alpha * size
        kind = "linear program" if alpha == 0 else "duality gap"
        note = "" if result.status == "optimal" else result.message
        self._certify(
            Certificate.of(result, objective, scale=scale, tol=tol, seconds=clock.seconds, kind=kind, note=note)
        )
        return self
