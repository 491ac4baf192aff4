"""Margin entrants: linear support vector machines for classes and for numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from certifit.contest.entrants.base import CLASSIFICATION, Conditions, Encoded, Entrant, Path
from certifit.contest.search.calibrated import calibrated
from certifit.models.margin.svm import LinearSVC, LinearSVR

__all__ = ["ENTRANTS"]


def svm_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """The margin's scores become probabilities through a logistic fit on scores of rows left out."""

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        svm = LinearSVC(alpha=s["alpha"], random_state=conditions.seed, n_jobs=conditions.jobs)
        return calibrated(svm)

    return [Path(({"alpha": a},), build) for a in (1e-3, 1e-2, 1e-4)]


def svr_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """Errors below epsilon are free.

    In units of the spread s of the target: mean (|r| − ε·s)₊ + (alpha/s)·½‖w‖² is s times the same objective of y/s.
    """
    scale = float(np.std(data.y)) or 1.0

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        return LinearSVR(**s, n_jobs=conditions.jobs)

    grid = ((0.1, 1e-3), (0.3, 1e-3), (0.1, 1e-2))
    return [Path(({"epsilon": e * scale, "alpha": a / scale},), build) for e, a in grid]


ENTRANTS = (
    Entrant(
        "svm",
        "Linear support vector machine",
        "The plane that separates the classes with the widest margin; its scores are calibrated to probabilities.",
        svm_paths,
        tasks=CLASSIFICATION,
    ),
    Entrant(
        "svr",
        "Linear support vector regression",
        "A weighted sum of the columns; errors below a threshold are free, larger ones cost in proportion.",
        svr_paths,
        tasks=frozenset({"regression"}),
    ),
)
