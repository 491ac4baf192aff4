"""Optimal values from an independent solver: the problem in cvxpy, solved by Clarabel.

    minimize over w, b    (1/Σs_i) Σ s_i·loss(y_i, x_i·w + b)  +  alpha·penalty(w)
    subject to            w in the constraint

Losses, penalties and constraints are recognized by their registered names and parameters; the formulas
here are written from the definitions, not from the package.
"""

from __future__ import annotations

import inspect
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

Array = NDArray[Any]

# name -> (y, f, parameters) -> convex expression of the loss of each row
LOSSES: dict[str, Callable[[Array, Any, dict[str, Any]], Any]] = {
    "squared": lambda y, f, p: 0.5 * cp.square(f - y),
    "absolute": lambda y, f, p: cp.abs(f - y),
    "huber": lambda y, f, p: 0.5 * p["curvature"] * cp.huber(f - y, p["delta"]),
    "quantile": lambda y, f, p: p["quantile"] * cp.pos(y - f) + (1 - p["quantile"]) * cp.pos(f - y),
    "epsilon_insensitive": lambda y, f, p: cp.pos(cp.abs(f - y) - p["epsilon"]),
    "squared_epsilon_insensitive": lambda y, f, p: 0.5 * cp.square(cp.pos(cp.abs(f - y) - p["epsilon"])),
    "relative": lambda y, f, p: cp.multiply(1 / np.abs(y), cp.abs(f - y)),
    "poisson": lambda y, f, p: cp.exp(f) - cp.multiply(y, f) - y + xlogy(y, y),
    "gamma": lambda y, f, p: cp.multiply(y, cp.exp(-f)) + f - 1 - np.log(y),
    # y is the probability of the positive class, 0 or 1; the margin is (2y − 1)·f
    "logistic": lambda y, f, p: cp.logistic(f) - cp.multiply(y, f) + xlogy(y, y) + xlogy(1 - y, 1 - y),
    "hinge": lambda y, f, p: cp.pos(1 - cp.multiply(2 * y - 1, f)),
    "squared_hinge": lambda y, f, p: 0.5 * cp.square(cp.pos(1 - cp.multiply(2 * y - 1, f))),
    "modified_huber": lambda y, f, p: 0.5 * cp.huber(cp.pos(1 - cp.multiply(2 * y - 1, f)), 2),
    "exponential": lambda y, f, p: cp.exp(-cp.multiply(2 * y - 1, f)),
    "perceptron": lambda y, f, p: cp.pos(-cp.multiply(2 * y - 1, f)),
}

# Powers by cones of powers; before they could be chosen, cvxpy took cones of order two, exact where q is a simple fraction.
EXACT: dict[str, Any] = {"approx": False} if "approx" in inspect.signature(cp.power).parameters else {}
# name -> (w, strengths, parameters) -> convex expression of the penalty of each coefficient
PENALTIES: dict[str, Callable[[Any, Array, dict[str, Any]], Any]] = {
    "none": lambda w, c, p: cp.multiply(np.zeros(c.shape), w),
    "l2": lambda w, c, p: 0.5 * cp.multiply(c, cp.square(w)),
    "l1": lambda w, c, p: cp.multiply(c, cp.abs(w)),
    "elasticnet": lambda w, c, p: cp.multiply(c, p["l1_ratio"] * cp.abs(w) + 0.5 * (1 - p["l1_ratio"]) * cp.square(w)),
    "lq": lambda w, c, p: cp.multiply(c / p["q"], cp.power(cp.abs(w), p["q"], **EXACT)),
}

# name -> (w, parameters) -> list of cvxpy constraints
CONSTRAINTS: dict[str, Callable[[Any, dict[str, Any]], list[Any]]] = {
    "non_negative": lambda w, p: [w >= 0],
    "box": lambda w, p: box(w, p["lower"], p["upper"]),
    "l1_ball": lambda w, p: [cp.norm1(w) <= p["radius"]],
    "l2_ball": lambda w, p: [cp.norm2(w) <= p["radius"]],
}


def box(w: Any, lower: Any, upper: Any) -> list[Any]:
    """lower ≤ w ≤ upper, without the infinite sides."""
    sides = []
    for bound, sign in ((lower, 1.0), (upper, -1.0)):
        full = np.broadcast_to(bound, w.shape)
        finite = np.isfinite(full)
        if finite.any():
            sides.append(sign * w[np.flatnonzero(finite)] >= sign * full[finite])
    return sides


def parameters(part: Any, defaults: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The registered name and the attributes of a part; a name alone means its defaults."""
    if part is None:
        return "none", {}
    if isinstance(part, str):
        return part, defaults
    return str(part.name), {**defaults, **vars(part)}


DEFAULTS = {"delta": 1.0, "curvature": 1.0, "quantile": 0.5, "epsilon": 0.1, "l1_ratio": 0.5, "q": 1.5}


def shares(n: int, weight: Array | None) -> Array:
    """Weights that sum to one."""
    return np.full(n, 1 / n) if weight is None else np.asarray(weight, dtype=float) / np.sum(weight)


def loss_terms(loss: Any, y: Array, f: Any) -> Any:
    """The loss of each row as a cvxpy expression of the scores f."""
    name, p = parameters(loss, DEFAULTS)
    return LOSSES[name](y, f, p)


def penalty_terms(penalty: Any, w: Any) -> Any:
    """The penalty of each coefficient as a cvxpy expression of w."""
    name, p = parameters(penalty, DEFAULTS)
    weights = p.get("weights")
    strengths = np.ones(w.shape) if weights is None else np.asarray(weights, dtype=float)
    return PENALTIES[name](w, strengths, p)


def constraint_terms(constraint: Any, w: Any) -> list[Any]:
    """The constraint as a list of cvxpy constraints on w."""
    if constraint is None:
        return []
    name, p = parameters(constraint, {})
    return CONSTRAINTS[name](w, p)


def solve(problem: cp.Problem) -> float:
    """The optimal value, at the tightest tolerance that Clarabel reaches."""
    inaccurate = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # cvxpy's word on an inaccurate answer
        for tolerance in (1e-12, 1e-11, 1e-10, 1e-9, 1e-8):
            try:
                problem.solve(
                    solver=cp.CLARABEL,
                    tol_gap_abs=tolerance,
                    tol_gap_rel=tolerance,
                    tol_feas=tolerance,
                    max_iter=500,
                )
            except cp.SolverError:
                continue
            if problem.status in (cp.OPTIMAL, cp.UNBOUNDED, cp.INFEASIBLE):
                return float(problem.value)
            if problem.status == cp.OPTIMAL_INACCURATE:
                inaccurate = float(problem.value)
    if inaccurate is None:
        raise RuntimeError(f"the oracle could not solve the problem: {problem.status}")
    return inaccurate


Answer = tuple[float, Array, float]
_known: dict[bytes, Answer] = {}


def optimum(
    X: Array,
    y: Array,
    weight: Array | None,
    loss: Any,
    penalty: Any = None,
    alpha: float = 0.0,
    constraint: Any = None,
    fit_intercept: bool = True,
    maximum: bool = False,
) -> Answer:
    """Optimal value, coefficients and intercept; `maximum`: of the largest loss, not of the mean.

    What one test has asked the next one gets without a solver: it takes longer than most fits.
    """
    parts = [parameters(part, DEFAULTS) for part in (loss, penalty, constraint)]
    key = pickle.dumps((X, y, weight, parts, alpha, fit_intercept, maximum))
    if key not in _known:
        _known[key] = _solved(X, y, weight, loss, penalty, alpha, constraint, fit_intercept, maximum)
        _known[key][1].flags.writeable = False
    return _known[key]


def _solved(
    X: Array,
    y: Array,
    weight: Array | None,
    loss: Any,
    penalty: Any,
    alpha: float,
    constraint: Any,
    fit_intercept: bool,
    maximum: bool,
) -> Answer:
    n, d = X.shape
    share = shares(n, weight)
    w, b = cp.Variable(d), cp.Variable()
    terms = loss_terms(loss, np.asarray(y, dtype=float), X @ w + b)
    objective = cp.max(terms[np.flatnonzero(share)]) if maximum else share @ terms
    if alpha > 0:
        objective = objective + alpha * cp.sum(penalty_terms(penalty, w))
    conditions = constraint_terms(constraint, w) + ([] if fit_intercept else [b == 0])
    value = solve(cp.Problem(cp.Minimize(objective), conditions))
    return value, np.array(w.value), float(b.value)


def objective(
    X: Array,
    y: Array,
    weight: Array | None,
    loss: Any,
    penalty: Any,
    alpha: float,
    coef: Array,
    intercept: float,
    maximum: bool = False,
) -> float:
    """The objective at given coefficients, from the same formulas as `optimum`."""
    share = shares(len(y), weight)
    scores = cp.Constant(np.asarray(X, dtype=float) @ coef + intercept)
    each = loss_terms(loss, np.asarray(y, dtype=float), scores).value
    total = float(each[share > 0].max() if maximum else share @ each)
    if alpha > 0:
        total += alpha * float(np.sum(penalty_terms(penalty, cp.Constant(np.asarray(coef, dtype=float))).value))
    return total


def of_constants(constants: Array, y: Array, weight: Array | None, loss: Any, maximum: bool = False) -> Array:
    """The loss of each of many constant models, all by one expression: cvxpy takes as long for one number as for thousands."""
    n, m = len(y), len(constants)
    share = shares(n, weight)
    scores = cp.Constant(np.repeat(np.asarray(constants, dtype=float), n))
    each = loss_terms(loss, np.tile(np.asarray(y, dtype=float), m), scores).value.reshape(m, n)
    return each[:, share > 0].max(axis=1) if maximum else each @ share
