"""Neural networks as entrants: settings that work on tables without tuning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from certifit._types import is_sparse
from certifit.contest.entrants.base import Conditions, Encoded, Entrant, NotApplicable, Path
from certifit.models.forest.bagging import BaggingClassifier, BaggingRegressor
from certifit.models.neural.model import MLPClassifier, MLPRegressor
from certifit.representation.basis.quantiles import QuantileScaler

__all__ = ["ENTRANTS"]

MOST_COLUMNS = 3000  # every column has weights of its own, and each step moves them all
NETWORKS = 4  # of an ensemble
FEWEST_ROWS = 40  # a part of them is set aside to say when to stop


def network_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """Wide and narrow, with more or less dropout and decay, then the mean of several; every one stops by rows set aside.

    Several networks cost as much as all single ones together, so that they come last, where time is left.
    """
    if data.n_columns > MOST_COLUMNS:
        raise NotApplicable(f"{data.n_columns:,} columns are too many for a network here")
    if data.n_rows < FEWEST_ROWS:
        raise NotApplicable(f"{data.n_rows} rows are too few to set some aside")

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        given: dict[str, Any] = {
            "hidden": tuple(s["hidden"]),
            "dropout": s["dropout"],
            "alpha": s["alpha"],
            "optimizer": "adamw",
            "learning_rate": 2e-3,
            "batch_size": 32 if fold.n_rows < 3000 else 128,
            "max_iter": 200 if fold.n_rows < 20_000 else 60,
            "early_stopping": True,
            "validation_fraction": 0.15,
            "random_state": conditions.seed,
            "n_jobs": conditions.jobs,
        }
        network = MLPClassifier(**given) if conditions.classifies else MLPRegressor(**given)
        if s["networks"] == 1:
            return network
        bag = BaggingClassifier if conditions.classifies else BaggingRegressor
        # All see all rows, and differ by what they draw; the threads are theirs, one network after the other.
        return bag(network, s["networks"], bootstrap=False, random_state=conditions.seed, n_jobs=1)

    settings: list[dict[str, Any]] = [
        {"hidden": (128, 64), "dropout": 0.1, "alpha": 0.01, "networks": 1},
        {"hidden": (64,), "dropout": 0.0, "alpha": 0.1, "networks": 1},
        {"hidden": (256, 128), "dropout": 0.3, "alpha": 0.01, "networks": 1},
        {"hidden": (64, 64, 64), "dropout": 0.1, "alpha": 0.1, "networks": 1},
        {"hidden": (128, 64), "dropout": 0.1, "alpha": 0.01, "networks": NETWORKS},
        {"hidden": (64,), "dropout": 0.0, "alpha": 0.1, "networks": NETWORKS},
    ]
    return [Path((setting,), build) for setting in settings]


def ranks(conditions: Conditions, data: Encoded) -> list[Any]:
    """Columns on the scale of their own quantiles, which a heavy tail does not stretch."""
    if is_sparse(data.X):
        raise NotApplicable("columns of text are sparse, and their quantiles are all zero")
    return [QuantileScaler()]


ENTRANTS = (
    Entrant(
        "network",
        "Neural network",
        "Layers of units, each a weighted sum of those before it, bent; learned by small steps until new rows no longer gain.",
        network_paths,
        weight=2.0,
        richness=4,
    ),
    Entrant(
        "network_quantiles",
        "Neural network on quantiles",
        "A neural network that sees where each number lies among all numbers of its column, not how large it is.",
        network_paths,
        expand=ranks,
        richness=4,
    ),
)
