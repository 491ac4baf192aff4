"""What each certified model claims to minimize, written down from its documentation, not from its code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from tests.oracles import convex

from certifit.losses import Absolute, EpsilonInsensitive, Gamma, Huber, Poisson, Quantile, Squared
from certifit.penalties import L1, L2, ElasticNet, NonNegative

Array = NDArray[Any]


@dataclass(frozen=True)
class Objective:
    """Mean loss plus alpha times a penalty, under a constraint; `maximum`: the largest loss, not the mean."""

    loss: Any
    penalty: Any = None
    alpha: float = 0.0
    constraint: Any = None
    maximum: bool = False

    def at(self, model: Any, X: Array, y: Array, weight: Array | None) -> float:
        """The objective at the fitted coefficients."""
        coef = np.asarray(model.coef_, dtype=float)
        if self.maximum:
            kept = np.ones(len(y), dtype=bool) if weight is None else weight > 0
            residual = (y - X @ coef - model.intercept_)[kept]
            return float(np.abs(residual).max() + 0.5 * self.alpha * coef @ coef)
        return convex.objective(X, y, weight, self.loss, self.penalty, self.alpha, coef, float(model.intercept_))

    def optimum(self, X: Array, y: Array, weight: Array | None, fit_intercept: bool) -> float:
        """The optimal value, from the independent solver."""
        if self.maximum:
            kept = np.ones(len(y), dtype=bool) if weight is None else weight > 0
            return convex.chebyshev(X[kept], y[kept], self.alpha, fit_intercept)
        value, _, _ = convex.optimum(X, y, weight, self.loss, self.penalty, self.alpha, self.constraint, fit_intercept)
        return value

    def of_best_constant(self, y: Array, weight: Array | None, fit_intercept: bool) -> float:
        """The objective of the best constant model: the unit of relative gaps."""
        weight = np.ones(len(y)) if weight is None else weight
        y, weight = y[weight > 0], weight[weight > 0]

        def value(constant: float) -> float:
            if self.maximum:
                return float(np.abs(y - constant).max())
            empty = np.zeros((len(y), 1))
            return convex.objective(empty, y, weight, self.loss, None, 0.0, np.zeros(1), constant)

        if not fit_intercept:
            return value(0.0)
        grid = np.concatenate([np.linspace(-5, 5, 101), y, [0.5 * (y.min() + y.max())]])
        values = [value(c) for c in grid]
        best = grid[int(np.argmin(values))]
        found = minimize_scalar(value, bounds=(best - 0.2, best + 0.2), method="bounded", options={"xatol": 1e-12})
        return float(min(found.fun, *values))


def squared(model: Any, penalty: Any, alpha: float) -> Objective:
    """Squared loss; `positive` constrains the coefficients."""
    return Objective(Squared(), penalty, alpha, NonNegative() if model.positive else None)


def by_name(model: Any, loss: Any) -> Objective:
    """A loss with a penalty given by name or object."""
    penalty = model.penalty
    if penalty == "elasticnet":
        penalty = ElasticNet(getattr(model, "l1_ratio", 0.5))
    return Objective(loss, penalty, model.alpha, getattr(model, "constraint", None))


def alpha_of(model: Any) -> float:
    """The strength that cross-validation chose."""
    return float(model.alpha_)


OBJECTIVES: dict[str, Callable[[Any], Objective]] = {
    "LinearModel": lambda m: by_name(m, m.loss),
    "LinearRegression": lambda m: squared(m, None, 0.0),
    "Ridge": lambda m: squared(m, L2(), m.alpha),
    "Lasso": lambda m: squared(m, L1(), m.alpha),
    "ElasticNet": lambda m: squared(m, ElasticNet(m.l1_ratio), m.alpha),
    "RidgeCV": lambda m: Objective(Squared(), L2(), alpha_of(m)),
    "LassoCV": lambda m: squared(m, L1(), alpha_of(m)),
    "ElasticNetCV": lambda m: squared(m, ElasticNet(m.l1_ratio_), alpha_of(m)),
    "LinearSVR": lambda m: Objective(EpsilonInsensitive(m.epsilon), L2(), m.alpha),
    "HuberRegressor": lambda m: by_name(m, Huber(m.delta)),
    "LADRegressor": lambda m: by_name(m, Absolute()),
    "QuantileRegressor": lambda m: by_name(m, Quantile(m.quantile)),
    "PoissonRegressor": lambda m: by_name(m, Poisson()),
    "GammaRegressor": lambda m: by_name(m, Gamma()),
    "PolynomialRegression": lambda m: Objective(Squared(), L2(), m.alpha),
    "ChebyshevRegressor": lambda m: Objective(Absolute(), L2(), m.alpha, maximum=True),
}


def design(model: Any, X: Array, weight: Array | None = None) -> Array:
    """The matrix that the coefficients multiply: X, or the monomials of standardized X."""
    if not hasattr(model, "monomials_"):
        return X
    mean = np.average(X, axis=0, weights=weight)
    z = (X - mean) / np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    columns = []
    for name in model.monomials_:
        factors = (factor.split("^") for factor in name.split(" "))
        columns.append(np.prod([z[:, int(f[0][1:])] ** int(f[1] if f[1:] else 1) for f in factors], axis=0))
    return np.column_stack(columns)
