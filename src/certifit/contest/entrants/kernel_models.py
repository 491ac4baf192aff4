"""Entrants of any loss on a kernel: logistic regression and ridge on the Gaussian kernel, over landmarks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from certifit.contest.entrants.base import CLASSIFICATION, Conditions, Encoded, Entrant, Path
from certifit.models.kernel.logistic import KernelLogisticRegression
from certifit.models.kernel.ridge.model import KernelRidge
from certifit.representation.kernels import RBF

__all__ = ["ENTRANTS"]

LANDMARKS = 200  # all rows are fitted, at the cost of that many columns
TOL = 1e-4  # relative gap of a fit: far below what folds can tell apart
SAID = f"the bumps stand at {LANDMARKS} rows drawn at random, or at all rows of a smaller table"


def kernel_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """Widths about 1/(d·variance), each with some strengths."""
    model: Any = KernelLogisticRegression if conditions.classifies else KernelRidge

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        return model(
            kernel=RBF(gamma=s["gamma"] / max(fold.n_columns, 1)),
            alpha=s["alpha"],
            approximation="nystrom",
            n_components=LANDMARKS,
            tol=TOL,
            random_state=conditions.seed,
        )

    grid = ((0.3, 1e-3), (1.0, 1e-3), (0.3, 1e-4), (0.3, 1e-2))
    return [Path(({"gamma": gamma, "alpha": alpha},), build) for gamma, alpha in grid]


ENTRANTS = (
    Entrant(
        "kernel_logistic",
        "Kernel logistic regression",
        f"A weighted sum of bumps around rows, turned into probabilities; {SAID}.",
        kernel_paths,
        tasks=CLASSIFICATION,
        richness=2,
    ),
    Entrant(
        "kernel_ridge",
        "Kernel ridge regression",
        f"A weighted sum of bumps around rows; {SAID}.",
        kernel_paths,
        tasks=frozenset({"regression"}),
        richness=2,
    ),
)
