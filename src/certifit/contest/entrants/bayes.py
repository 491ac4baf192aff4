"""Bayesian entrants: naive Bayes with a distribution for each column, discriminants, Bayesian linear regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from certifit._types import is_sparse
from certifit.contest.entrants.base import CLASSIFICATION, Conditions, Encoded, Entrant, NotApplicable, Path
from certifit.models.bayes.discriminant.lda import LDA
from certifit.models.bayes.discriminant.qda import QDA
from certifit.models.bayes.naive.mixed import NaiveBayes
from certifit.models.bayes.regression import BayesianLinearRegression
from certifit.models.reductions.calibrated import CalibratedClassifier

__all__ = ["ENTRANTS"]

MOST_COLUMNS = 1000  # of a covariance that is decomposed on every fold


def naive_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """The distribution of numbers, as it is or tempered: columns that repeat each other make it too sure."""

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        kinds = ["categorical" if j in fold.categorical else s["numbers"] for j in range(fold.n_columns)]
        model = NaiveBayes(kinds=kinds, var_smoothing=1e-3)
        return CalibratedClassifier(model, method="temperature", cv=3) if s["tempered"] else model

    if is_sparse(data.X):
        raise NotApplicable("the table is too wide to be held densely")
    numbers = ("gaussian", "kernel") if len(data.categorical) < data.n_columns else ("gaussian",)
    return [Path(({"numbers": kind, "tempered": cool},), build) for cool in (True, False) for kind in numbers]


def discriminant_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """One covariance for all classes, or one for each, drawn towards each other and towards a sphere."""

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        return (
            LDA(shrinkage=s["shrinkage"])
            if s["covariance"] == "shared"
            else QDA(s["shape"], s["shrinkage"], s["pooling"])
        )

    _narrow(data)
    shared: list[dict[str, Any]] = [
        {"covariance": "shared", "shrinkage": shrinkage} for shrinkage in ("ledoit-wolf", 0.0, 0.3)
    ]
    own: list[dict[str, Any]] = [
        {"covariance": "own", "shape": shape, "shrinkage": shrinkage, "pooling": pooling}
        for shape, shrinkage, pooling in (("full", 0.01, 0.2), ("full", 0.1, 0.7), ("diagonal", 0.0, 0.2))
    ]
    return [Path((setting,), build) for setting in (shared[0], own[0], *own[1:], *shared[1:])]


def regression_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """One precision for all columns, or one for each, of greatest evidence."""

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        return BayesianLinearRegression(**s)

    _narrow(data)
    return [Path(({"relevance": relevance},), build) for relevance in (False, True)]


def _narrow(data: Encoded) -> None:
    if is_sparse(data.X) or data.n_columns > MOST_COLUMNS:
        raise NotApplicable(f"{data.n_columns:,} columns are too many for a covariance matrix here")


ENTRANTS = (
    Entrant(
        "naive_bayes",
        "Naive Bayes",
        "Counts for each column by itself how often the classes have its values, and multiplies; gaps are left out.",
        naive_paths,
        tasks=CLASSIFICATION,
        encoding="codes",
    ),
    Entrant(
        "discriminant",
        "Discriminant analysis",
        "A cloud with center and shape for each class; a row belongs to the cloud it lies deepest in.",
        discriminant_paths,
        tasks=CLASSIFICATION,
        richness=2,
    ),
    Entrant(
        "bayesian",
        "Bayesian linear regression",
        "A weighted sum of the columns; how much the weights are held back is what makes the data most probable.",
        regression_paths,
        tasks=frozenset({"regression"}),
    ),
)
