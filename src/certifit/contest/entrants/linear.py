"""Linear entrants: penalized regressions along warm-started paths of alpha, generalized linear models, products of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from certifit._types import Array, Matrix
from certifit.contest.entrants.base import CLASSIFICATION, Conditions, Encoded, Entrant, NotApplicable, Path, Predict
from certifit.models.linear.generalized.log_link import GammaRegressor, PoissonRegressor
from certifit.models.linear.regression import ElasticNet, Ridge
from certifit.models.linear.robust import HuberRegressor
from certifit.models.logistic.model import LogisticRegression
from certifit.representation.basis.monomials import PolynomialFeatures
from certifit.representation.basis.scaling import StandardScaler

__all__ = ["ENTRANTS"]

TOL = 1e-5  # relative gap of the fits of a search: far below what folds can tell apart
RIDGE_ALPHAS = np.geomspace(10.0, 1e-6, 15)  # for standardized columns and mean loss
L1_ALPHAS = np.geomspace(0.3, 1e-5, 15)  # times the standard deviation of the target
MOST_MONOMIALS = 1500
MOST_EXPANDED = 4e8  # bytes of the expanded matrix


def linear_path(
    coefs: Callable[[Sequence[Mapping[str, Any]], Encoded], tuple[Array, Array]],
    link: Callable[[Array], Array],
) -> Callable[[Sequence[Mapping[str, Any]], Encoded], Iterator[Predict]]:
    """Predictors of all solutions along a path."""

    def predictors(settings: Sequence[Mapping[str, Any]], data: Encoded) -> Iterator[Predict]:
        def predict(w: Array, b: Array, X: Matrix) -> Array:
            return link(np.asarray(X @ w.T) + b)

        for w, b in zip(*coefs(settings, data), strict=True):
            yield partial(predict, w, b)

    return predictors


def probabilities(scores: Array) -> Array:
    """Class probabilities of logistic scores: two columns for one score a row."""
    if scores.ndim == 1:
        p = expit(scores)
        return np.column_stack((1.0 - p, p))
    return np.asarray(softmax(scores, axis=1))


def all_classes(conditions: Conditions, data: Encoded) -> bool:
    """Whether every class has a row, so that coefficients line up with the classes."""
    return int(np.unique(data.y).shape[0]) == len(conditions.classes)


def logistic_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """L2 first, then a mix with L1."""

    def path_of(penalty: str, l1_ratio: float, alphas: Array) -> Path:
        def options(s: Mapping[str, Any]) -> dict[str, Any]:
            return {"penalty": s["penalty"], "l1_ratio": s.get("l1_ratio", 0.5), "n_jobs": conditions.jobs}

        def build(s: Mapping[str, Any], fold: Encoded) -> Any:
            return LogisticRegression(alpha=s["alpha"], **options(s))

        def coefs(settings: Sequence[Mapping[str, Any]], fold: Encoded) -> tuple[Array, Array]:
            grid = [s["alpha"] for s in settings]
            found = LogisticRegression.path(fold.X, fold.y, alphas=grid, tol=TOL, **options(settings[0]))
            return found.coefs, found.intercepts

        settings = tuple(
            {"penalty": penalty, "alpha": float(a), **({"l1_ratio": l1_ratio} if penalty == "elasticnet" else {})}
            for a in alphas
        )
        predictors = linear_path(coefs, probabilities)

        def each(settings: Sequence[Mapping[str, Any]], fold: Encoded) -> Iterator[Predict]:
            # A fold without a rare class has fewer columns of probabilities: the estimators keep track of the classes.
            if all_classes(conditions, fold):
                yield from predictors(settings, fold)
            else:
                yield from Path(tuple(settings), build).fitted(fold, len(conditions.classes))

        return Path(settings, build, each)

    return [path_of("l2", 0.0, RIDGE_ALPHAS), path_of("elasticnet", 0.9, L1_ALPHAS * 0.5)]


def ridge_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """Every alpha from one decomposition, or one factorization each when the table is wide."""
    settings = tuple({"alpha": float(a)} for a in RIDGE_ALPHAS)

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        return Ridge(alpha=s["alpha"])

    def coefs(settings: Sequence[Mapping[str, Any]], fold: Encoded) -> tuple[Array, Array]:
        found = Ridge.path(fold.X, fold.y, alphas=[s["alpha"] for s in settings])
        return found.coefs, found.intercepts

    few_columns = data.n_columns <= 2000
    return [Path(settings, build, linear_path(coefs, lambda f: f) if few_columns else None)]


def elastic_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """Lasso and elastic net."""
    scale = float(np.std(data.y)) or 1.0

    def path_of(l1_ratio: float) -> Path:
        def build(s: Mapping[str, Any], fold: Encoded) -> Any:
            return ElasticNet(alpha=s["alpha"], l1_ratio=s["l1_ratio"], n_jobs=conditions.jobs)

        def coefs(settings: Sequence[Mapping[str, Any]], fold: Encoded) -> tuple[Array, Array]:
            grid = [s["alpha"] for s in settings]
            found = ElasticNet.path(fold.X, fold.y, l1_ratio=l1_ratio, alphas=grid, tol=TOL, n_jobs=conditions.jobs)
            return found.coefs, found.intercepts

        settings = tuple({"l1_ratio": l1_ratio, "alpha": float(a) * scale} for a in L1_ALPHAS)
        return Path(settings, build, linear_path(coefs, lambda f: f))

    return [path_of(1.0), path_of(0.5)]


def huber_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """Squared loss near, absolute loss far from the fit."""

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        return HuberRegressor(**s)

    return [Path(tuple({"delta": k, "alpha": a} for a in (1e-4, 1e-2)), build) for k in (1.35, 0.5)]


def glm_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """Poisson for counts, Gamma for positive amounts: the logarithm of the mean is linear."""
    if float(data.y.min()) < 0.0 or float(data.y.max()) <= 0.0:
        raise NotApplicable("the target has negative values, and a log-linear mean is positive")
    whole = bool(np.all(data.y == np.round(data.y)))
    if not whole and float(data.y.min()) <= 0.0:
        raise NotApplicable("the target has zeros and is not a count")
    model = PoissonRegressor if whole else GammaRegressor
    unit = float(data.y.mean()) if whole else 1.0  # Poisson's deviance grows with the counts, Gamma's does not

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        return model(alpha=s["alpha"])

    return [Path(tuple({"alpha": a * unit} for a in (1e-1, 1e-2, 1e-3, 1e-4)), build)]


def monomials(conditions: Conditions, data: Encoded) -> list[Any]:
    """All products of two columns, standardized again."""
    count = data.n_columns * (data.n_columns + 3) // 2
    if count > MOST_MONOMIALS or count * data.n_rows * 8.0 > MOST_EXPANDED:
        raise NotApplicable(f"{count:,} products of two columns are too many for {data.n_rows:,} rows here")
    return [PolynomialFeatures(degree=2), StandardScaler()]


def polynomial_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """Ridge, or logistic with L2, on the products."""
    if not conditions.classifies:
        return ridge_paths(conditions, data)
    return logistic_paths(conditions, data)[:1]


ENTRANTS = (
    Entrant(
        "logistic",
        "Logistic regression",
        "A weighted sum of the columns, turned into probabilities; the weights are kept small.",
        logistic_paths,
        tasks=CLASSIFICATION,
        weight=1.5,
        readable=True,
    ),
    Entrant(
        "ridge",
        "Ridge regression",
        "A weighted sum of the columns; the squares of the weights are kept small.",
        ridge_paths,
        tasks=frozenset({"regression"}),
        readable=True,
    ),
    Entrant(
        "elastic_net",
        "Lasso and elastic net",
        "A weighted sum of few columns: weights that do not help are exactly zero.",
        elastic_paths,
        tasks=frozenset({"regression"}),
        readable=True,
    ),
    Entrant(
        "huber",
        "Huber regression",
        "A weighted sum of the columns that large errors cannot drag along.",
        huber_paths,
        tasks=frozenset({"regression"}),
        readable=True,
    ),
    Entrant(
        "glm",
        "Generalized linear model",
        "The logarithm of the expected value is a weighted sum of the columns: Poisson for counts, Gamma for amounts.",
        glm_paths,
        tasks=frozenset({"regression"}),
        readable=True,
    ),
    Entrant(
        "polynomial",
        "Second-degree polynomial",
        "A weighted sum of the columns, their squares and the products of every two.",
        polynomial_paths,
        weight=1.5,
        expand=monomials,
        richness=2,
    ),
)
