"""What each certified model claims to minimize, written down from its documentation, not from its code."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from tests.oracles import convex
from tests.oracles.convex import shares

from certifit.losses import Absolute, Gamma, Huber, Poisson, Quantile, Squared
from certifit.models.linear.model import BaseLinear
from certifit.penalties import L1, L2, ElasticNet, NonNegative
from certifit.representation.design.design import Design

Array = NDArray[Any]


class Claim(Protocol):
    """An objective of coefficients and intercepts."""

    constraint: Any

    def at(self, coef: Array, intercept: Any, X: Array, y: Array, weight: Array | None) -> float:
        """The objective at given coefficients."""

    def optimum(self, X: Array, y: Array, weight: Array | None, fit_intercept: bool) -> float:
        """The optimal value, from the independent solver."""

    def of_best_constant(self, y: Array, weight: Array | None, fit_intercept: bool) -> float:
        """The objective of the best constant model: the unit of relative gaps."""


@dataclass(frozen=True)
class Objective:
    """Mean loss plus alpha times a penalty, under a constraint; `maximum`: the largest loss, not the mean."""

    loss: Any
    penalty: Any = None
    alpha: float = 0.0
    constraint: Any = None
    maximum: bool = False

    def at(self, coef: Array, intercept: Any, X: Array, y: Array, weight: Array | None) -> float:
        coef, intercept = np.ravel(coef), float(np.ravel(intercept)[0])  # classifiers of two classes have one row
        return convex.objective(X, y, weight, self.loss, self.penalty, self.alpha, coef, intercept, self.maximum)

    def optimum(self, X: Array, y: Array, weight: Array | None, fit_intercept: bool) -> float:
        parts = (self.loss, self.penalty, self.alpha, self.constraint)
        return convex.optimum(X, y, weight, *parts, fit_intercept, self.maximum)[0]

    def of_best_constant(self, y: Array, weight: Array | None, fit_intercept: bool) -> float:
        weight = np.ones(len(y)) if weight is None else weight
        y, weight = y[weight > 0], weight[weight > 0]

        def values(constants: Array) -> Array:
            return convex.of_constants(constants, y, weight, self.loss, self.maximum)

        if not fit_intercept:
            return float(values(np.zeros(1))[0])
        grid = np.concatenate([np.linspace(-5, 5, 101), y, [0.5 * (y.min() + y.max())]])
        lowest = np.inf
        for radius in 0.2 / 20.0 ** np.arange(10):  # convex: ever finer around the best so far
            found = values(grid)
            lowest, best = min(lowest, float(found.min())), grid[int(np.argmin(found))]
            grid = best + np.linspace(-radius, radius, 41)
        return lowest


@dataclass(frozen=True)
class SumOverClasses:
    """The sum of the objectives of each class against the rest."""

    part: Objective
    constraint: Any = None

    def at(self, coef: Array, intercept: Any, X: Array, y: Array, weight: Array | None) -> float:
        rows = zip(coef, intercept, strict=True)
        return sum(self.part.at(w, b, X, against_rest(y, k), weight) for k, (w, b) in enumerate(rows))

    def optimum(self, X: Array, y: Array, weight: Array | None, fit_intercept: bool) -> float:
        return sum(self.part.optimum(X, against_rest(y, k), weight, fit_intercept) for k in np.unique(y))

    def of_best_constant(self, y: Array, weight: Array | None, fit_intercept: bool) -> float:
        return sum(self.part.of_best_constant(against_rest(y, k), weight, fit_intercept) for k in np.unique(y))


def against_rest(y: Array, k: int) -> Array:
    """1 for class k, 0 for the others."""
    return (y == k).astype(float)


class OverScores:
    """Losses of K scores: a subclass says what the scores of a row cost, as a cvxpy expression."""

    penalty: Any
    alpha: float
    constraint: Any = None

    def losses(self, F: Any, y: Array) -> Any:
        """The loss of each row of scores."""
        raise NotImplementedError

    def at(self, coef: Array, intercept: Any, X: Array, y: Array, weight: Array | None) -> float:
        coef = np.asarray(coef, dtype=float)
        total = self._total(cp.Constant(coef), cp.Constant(X @ coef.T + intercept), y, weight)
        return float(total.value)

    def optimum(self, X: Array, y: Array, weight: Array | None, fit_intercept: bool) -> float:
        K = int(y.max()) + 1
        W, b = cp.Variable((K, X.shape[1])), cp.Variable((1, K))
        scores = X @ W.T + np.ones((len(y), 1)) @ b
        # One common constant of all intercepts is free: without it the solver has a unique answer to find.
        conditions = [cp.sum(b) == 0] if fit_intercept else [b == 0]
        return convex.solve(cp.Problem(cp.Minimize(self._total(W, scores, y, weight)), conditions))

    def of_best_constant(self, y: Array, weight: Array | None, fit_intercept: bool) -> float:
        return self.optimum(np.zeros((len(y), 1)), y, weight, fit_intercept)

    def _total(self, W: Any, scores: Any, y: Array, weight: Array | None) -> Any:
        flat = cp.vec(W, order="C")
        return shares(len(y), weight) @ self.losses(scores, y) + self.alpha * cp.sum(
            convex.penalty_terms(self.penalty, flat)
        )


def of_own_class(F: Any, y: Array) -> Any:
    """The score of each row's own class."""
    return cp.sum(cp.multiply(np.eye(F.shape[1])[y], F), axis=1)


@dataclass(frozen=True)
class SoftmaxObjective(OverScores):
    """Mean of ln Σ_k exp(f_k) − f_y, plus alpha times the penalty of all coefficients."""

    penalty: Any
    alpha: float

    def losses(self, F: Any, y: Array) -> Any:
        return cp.log_sum_exp(F, axis=1) - of_own_class(F, y)


@dataclass(frozen=True)
class CrammerSinger(OverScores):
    """Mean of max_k (Δ(y, k) + f_k − f_y), plus alpha·½‖W‖²; without a table Δ is 1 for every error."""

    alpha: float
    delta: Any = None
    penalty: Any = "l2"

    def losses(self, F: Any, y: Array) -> Any:
        K = F.shape[1]
        delta = 1.0 - np.eye(K) if self.delta is None else np.asarray(self.delta, dtype=float)
        return cp.max(F + delta[y], axis=1) - of_own_class(F, y)


@dataclass(frozen=True)
class Mistakes:
    """The share of rows on the wrong side: a witness, planes without a mistake, proves that it can be zero.

    Several classes: each plane has its class on one side and the rest on the other, or, with `prototypes`, every row has
    its highest score with its own class.
    """

    prototypes: bool = False
    constraint: Any = None

    def at(self, coef: Array, intercept: Any, X: Array, y: Array, weight: Array | None) -> float:
        scores = X @ np.atleast_2d(coef).T + intercept
        own = y[:, None] == (np.ones(1) if scores.shape[1] == 1 else np.arange(scores.shape[1]))
        if self.prototypes and scores.shape[1] > 1:
            wrong = np.where(own, scores, np.inf).min(axis=1) <= np.where(own, -np.inf, scores).max(axis=1)
        else:
            wrong = (np.where(own, scores, -scores) <= 0).mean(axis=1)
        return float(shares(len(y), weight) @ wrong)

    def optimum(self, X: Array, y: Array, weight: Array | None, fit_intercept: bool) -> float:
        return 0.0  # a plane that makes no mistake is its own proof

    def of_best_constant(self, y: Array, weight: Array | None, fit_intercept: bool) -> float:
        return 1.0 - float(np.bincount(y, weights=shares(len(y), weight)).max())


def squared(model: Any, penalty: Any, alpha: float) -> Objective:
    """Squared loss; `positive` constrains the coefficients."""
    return Objective(Squared(), penalty, alpha, NonNegative() if model.positive else None)


def penalty_of(model: Any) -> Any:
    """The penalty of a model that takes it by name or as an object."""
    return ElasticNet(getattr(model, "l1_ratio", 0.5)) if model.penalty == "elasticnet" else model.penalty


def by_name(model: Any, loss: Any) -> Objective:
    """A loss with a penalty given by name or object."""
    return Objective(loss, penalty_of(model), model.alpha, getattr(model, "constraint", None))


def alpha_of(model: Any) -> float:
    """The strength that cross-validation chose."""
    return float(model.alpha_)


def logistic(model: Any, alpha: float) -> Claim:
    """Log loss of two classes, softmax of more."""
    if len(model.classes_) > 2:
        return SoftmaxObjective(penalty_of(model), alpha)
    return Objective("logistic", penalty_of(model), alpha)


def stochastic(model: Any) -> Claim:
    """Two classes, the sum over classes against the rest, or the softmax."""
    part = by_name(model, model.loss)
    if len(model.classes_) == 2:
        return part
    return SoftmaxObjective(part.penalty, part.alpha) if model.multi_class == "softmax" else SumOverClasses(part)


@dataclass(frozen=True)
class BestColumns:
    """A mean loss over all subsets of as many columns."""

    part: Any
    size: int = 0
    constraint: Any = None

    def at(self, coef: Array, intercept: Any, X: Array, y: Array, weight: Array | None) -> float:
        return float(self.part.at(coef, intercept, X, y, weight))

    def optimum(self, X: Array, y: Array, weight: Array | None, fit_intercept: bool) -> float:
        if not self.size:
            return self.of_best_constant(y, weight, fit_intercept)
        subsets = itertools.combinations(range(X.shape[1]), self.size)
        return min(self.part.optimum(X[:, list(chosen)], y, weight, fit_intercept) for chosen in subsets)

    def of_best_constant(self, y: Array, weight: Array | None, fit_intercept: bool) -> float:
        return float(self.part.of_best_constant(y, weight, fit_intercept))


def log_loss(model: Any) -> Claim:
    """Log loss without a penalty, of two classes or more."""
    return SoftmaxObjective("none", 0.0) if len(model.classes_) > 2 else Objective("logistic")


OBJECTIVES: dict[str, Callable[[Any], Claim]] = {
    "LinearModel": lambda m: by_name(m, m.loss),
    "BestSubset": lambda m: BestColumns(Objective(m.loss), int(m.support_.sum())),
    "BestSubsetClassifier": lambda m: BestColumns(log_loss(m), int(m.support_.sum())),
    "LinearRegression": lambda m: squared(m, None, 0.0),
    "Ridge": lambda m: squared(m, L2(), m.alpha),
    "Lasso": lambda m: squared(m, L1(), m.alpha),
    "ElasticNet": lambda m: squared(m, ElasticNet(m.l1_ratio), m.alpha),
    "RidgeCV": lambda m: Objective(Squared(), L2(), alpha_of(m)),
    "LassoCV": lambda m: squared(m, L1(), alpha_of(m)),
    "ElasticNetCV": lambda m: squared(m, ElasticNet(m.l1_ratio_), alpha_of(m)),
    "MultiTaskLasso": lambda m: Objective(Squared(), L1(), m.alpha),
    "MultiTaskElasticNet": lambda m: Objective(Squared(), ElasticNet(m.l1_ratio), m.alpha),
    "MultiTaskLassoCV": lambda m: Objective(Squared(), L1(), alpha_of(m)),
    "MultiTaskElasticNetCV": lambda m: Objective(Squared(), ElasticNet(m.l1_ratio_), alpha_of(m)),
    "HuberRegressor": lambda m: by_name(m, Huber(m.delta * m.scale_)),
    "LADRegressor": lambda m: by_name(m, Absolute()),
    "QuantileRegressor": lambda m: by_name(m, Quantile(m.quantile)),
    "PoissonRegressor": lambda m: by_name(m, Poisson()),
    "GammaRegressor": lambda m: by_name(m, Gamma()),
    "GLM": lambda m: by_name(m, m._loss),
    "PolynomialRegression": lambda m: Objective(Squared(), L2(), m.alpha),
    "MinimaxModel": lambda m: replace(by_name(m, m.loss), maximum=True),
    "ChebyshevRegressor": lambda m: Objective(Absolute(), L2(), m.alpha, maximum=True),
    "LinearSVR": lambda m: Objective(Tube(m.loss, m.epsilon), L2(), m.alpha),
    "LinearSVC": lambda m: Objective(m.loss, L2(), m.alpha),
    "MulticlassSVC": lambda m: CrammerSinger(m.alpha, m.delta),
    "LogisticRegression": lambda m: logistic(m, m.alpha),
    "LogisticRegressionCV": lambda m: logistic(m, alpha_of(m)),
    "SGDRegressor": lambda m: by_name(m, m.loss),
    "SGDClassifier": stochastic,
    "Perceptron": lambda m: Mistakes(),
    "PocketPerceptron": lambda m: Mistakes(),
    "MulticlassPerceptron": lambda m: Mistakes(prototypes=True),
}


def stated(cls: type) -> str | None:
    """The name under which the objective of a class is written down: its own, or that of a class it is a kind of."""
    return next((parent.__name__ for parent in cls.__mro__ if parent.__name__ in OBJECTIVES), None)


@dataclass(frozen=True)
class Tube:
    """The names and the parameter that the oracle knows the two losses with a tube by."""

    name: str
    epsilon: float


@dataclass(frozen=True)
class Statement:
    """A certificate, what it is about, and the coefficients it speaks of."""

    certificate: Any
    claim: Claim
    coef: Array
    intercept: Any
    y: Array


def statements(model: Any, y: Array) -> list[Statement]:
    """Everything that the fitted model certifies: one statement, or one for each class where it gives them singly."""
    claim = OBJECTIVES[str(stated(type(model)))](model)
    coef, intercept = np.asarray(model.coef_, dtype=float), np.asarray(model.intercept_, dtype=float)
    whole = Statement(model.certificate_, claim, coef, intercept, y)
    several = getattr(model, "certificates_", [])
    if len(several) < 2:
        return [whole]
    rows = zip(several, coef, intercept, strict=True)
    return [
        replace(whole, certificate=certificate, coef=w, intercept=b, y=against_rest(y, k))
        for k, (certificate, w, b) in enumerate(rows)
    ]


def design(model: Any, X: Array, weight: Array | None = None) -> Array:
    """The matrix that the coefficients multiply: X, the monomials of standardized X, or the rows of a design of the model's."""
    if not hasattr(model, "monomials_"):
        made = model._design(X) if isinstance(model, BaseLinear) else X
        return made.dense_rows(slice(0, X.shape[0])) if isinstance(made, Design) else X
    mean = np.average(X, axis=0, weights=weight)
    z = (X - mean) / np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    columns = []
    for name in model.monomials_:
        factors = (factor.split("^") for factor in name.split(" "))
        columns.append(np.prod([z[:, int(f[0][1:])] ** int(f[1] if f[1:] else 1) for f in factors], axis=0))
    return np.column_stack(columns)
