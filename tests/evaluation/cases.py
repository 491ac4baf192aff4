"""The losses, penalties and constraints under test: every registered class, in several settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.losses import LOSSES, Loss
from certifit.penalties import CONSTRAINTS, PENALTIES, Constraint, Penalty

# Settings beyond the defaults; a class that is not listed is tested as its constructor leaves it.
LOSS_SETTINGS: dict[str, list[dict[str, Any]]] = {
    "huber": [{}, {"delta": 0.3}, {"delta": 2.5, "curvature": 3.0}],
    "quantile": [{}, {"quantile": 0.05}, {"quantile": 0.9}],
    "epsilon_insensitive": [{}, {"epsilon": 0.0}, {"epsilon": 1.5}],
}
D = 4
WEIGHTS = np.array([1.0, 0.0, 2.5, 0.4])
PENALTY_SETTINGS: dict[str, list[dict[str, Any]]] = {
    "none": [{}],
    "elasticnet": [
        {"l1_ratio": 0.5},
        {"l1_ratio": 0.0},
        {"l1_ratio": 1.0},
        {"l1_ratio": 0.2, "weights": WEIGHTS},
    ],
    "lq": [{"q": 1.5}, {"q": 1.05}, {"q": 2.0}, {"q": 1.3, "weights": WEIGHTS}],
}
CONSTRAINT_SETTINGS: dict[str, list[dict[str, Any]]] = {
    "box": [
        {},
        {"lower": -0.5, "upper": 1.0},
        {"lower": 0.5, "upper": 2.0},
        {"lower": [-1.0, -np.inf, 0.0, 0.25], "upper": [0.0, 0.3, np.inf, 0.25]},
    ],
    "l1_ball": [{"radius": 1.0}, {"radius": 0.0}, {"radius": 7.0}],
    "l2_ball": [{"radius": 1.0}, {"radius": 0.0}, {"radius": 7.0}],
}


def losses() -> list[Loss]:
    """Every registered loss, in every setting."""
    return [cls(**kw) for name, cls in LOSSES.items() for kw in LOSS_SETTINGS.get(name, [{}])]


def penalties() -> list[Penalty]:
    """Every registered penalty for `D` coefficients, with and without weights."""
    with_weights: list[dict[str, Any]] = [{}, {"weights": WEIGHTS}]
    return [cls(**kw) for name, cls in PENALTIES.items() for kw in PENALTY_SETTINGS.get(name, with_weights)]


def constraints() -> list[Constraint]:
    """Every registered constraint for `D` coefficients."""
    return [cls(**kw) for name, cls in CONSTRAINTS.items() for kw in CONSTRAINT_SETTINGS.get(name, [{}])]


def label(case: Any) -> str:
    """The name of a test case: its short representation."""
    return repr(case).replace("\n", "").replace("array", "")


def allowed(loss: Loss, y: Array) -> Array:
    """The targets among y that lie in the domain of the loss."""

    def fits(value: float) -> bool:
        try:
            loss.check_target(np.array([value]))
        except ValueError:
            return False
        return True

    return y[[fits(value) for value in y]]


def targets(loss: Loss) -> Array:
    """A spread of targets in the domain of the loss."""
    return allowed(loss, np.array([-30.0, -2.5, -1.0, -0.3, 0.0, 0.2, 1.0, 3.0, 40.0]))


def pairs(a: Array, b: Array) -> tuple[Array, Array]:
    """All pairs of an entry of a and an entry of b, as two flat arrays."""
    first, second = np.meshgrid(a, b, indexing="ij")
    return first.ravel(), second.ravel()
