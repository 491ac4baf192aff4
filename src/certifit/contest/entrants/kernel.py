"""Kernel entrants: support vector machines on the Gaussian kernel, for classes and for numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from certifit.contest.entrants.base import CLASSIFICATION, Conditions, Encoded, Entrant, Path
from certifit.contest.search.calibrated import calibrated
from certifit.models.kernel.svc import SVC
from certifit.models.kernel.svr import SVR

__all__ = ["ENTRANTS"]

ROWS = 4000  # what a machine is fitted on: its cost grows with the square of the rows
SAID = f"On at most {ROWS:,} rows, drawn by their content: its cost grows with the square of the rows."


def svm_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """Widths about 1/(d·variance), and some C; scores become probabilities by a fit on rows left out."""

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        return calibrated(
            SVC(C=s["C"], gamma=s["gamma"] / fold.n_columns, max_rows=ROWS, tol=1e-3, n_jobs=conditions.jobs)
        )

    grid = ((1.0, 1.0), (10.0, 0.3), (1.0, 0.3), (10.0, 1.0))
    return [Path(({"C": C, "gamma": gamma},), build) for C, gamma in grid]


def svr_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """In units of the spread s of the target: C·s and ε·s give s times the fit of y/s."""
    scale = float(np.std(data.y)) or 1.0

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        setting = {"C": s["C"], "epsilon": s["epsilon"], "gamma": s["gamma"] / fold.n_columns}
        return SVR(**setting, max_rows=ROWS, tol=1e-3, n_jobs=conditions.jobs)

    grid = ((1.0, 1.0), (10.0, 0.3), (10.0, 1.0))
    return [Path(({"C": C * scale, "epsilon": 0.05 * scale, "gamma": gamma},), build) for C, gamma in grid]


ENTRANTS = (
    Entrant(
        "kernel_svm",
        "Kernel support vector machine",
        f"Close rows get close answers: the widest margin among bumps around rows, calibrated to probabilities. {SAID}",
        svm_paths,
        tasks=CLASSIFICATION,
        richness=2,
    ),
    Entrant(
        "kernel_svr",
        "Kernel support vector regression",
        f"A sum of bumps around rows; errors below a threshold are free, larger ones cost in proportion. {SAID}",
        svr_paths,
        tasks=frozenset({"regression"}),
        richness=2,
    ),
)
