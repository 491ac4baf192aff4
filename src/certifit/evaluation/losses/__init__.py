"""Losses: one file each, and one line here to enrol it everywhere.

`LOSSES` maps the name used in ``loss="…"`` to the class; contract tests, documentation tables and benchmark grids
iterate it. `MULTICLASS` holds the losses of K scores, one for each class.
"""

from __future__ import annotations

from typing import Any

from certifit.evaluation.losses.base import Loss
from certifit.evaluation.losses.examine import LossReport, check, check_loss
from certifit.evaluation.losses.families import FAMILIES, Family
from certifit.evaluation.losses.labels.margin import (
    Exponential,
    Hinge,
    Logistic,
    ModifiedHuber,
    PerceptronLoss,
    SquaredHinge,
)
from certifit.evaluation.losses.labels.multiclass import MulticlassHinge, MulticlassPerceptron
from certifit.evaluation.losses.labels.softmax import Softmax
from certifit.evaluation.losses.labels.zero_one import ZeroOne
from certifit.evaluation.losses.maps import MAPS, Map
from certifit.evaluation.losses.mean import MeanLoss
from certifit.evaluation.losses.numbers.gamma import Gamma
from certifit.evaluation.losses.numbers.huber import Huber
from certifit.evaluation.losses.numbers.poisson import Poisson
from certifit.evaluation.losses.numbers.quantile import Absolute, EpsilonInsensitive, Quantile, RelativeError
from certifit.evaluation.losses.numbers.squared import Squared

REGRESSION = (Squared, Absolute, Huber, Quantile, EpsilonInsensitive, RelativeError, Poisson, Gamma)
BINARY = (Logistic, Hinge, SquaredHinge, ModifiedHuber, Exponential, PerceptronLoss)
LOSSES: dict[str, type[Loss]] = {loss.name: loss for loss in (*REGRESSION, *BINARY)}
MULTICLASS: dict[str, type[Loss]] = {loss.name: loss for loss in (Softmax, MulticlassHinge, MulticlassPerceptron)}

ALIASES = {"squared_error": "squared", "absolute_error": "absolute", "log_loss": "logistic"}
"""Scikit-learn's names of losses, understood wherever ours are."""

__all__ = [
    "ALIASES",
    "FAMILIES",
    "LOSSES",
    "MAPS",
    "MULTICLASS",
    "Family",
    "Loss",
    "LossReport",
    "Map",
    "MeanLoss",
    "ZeroOne",
    "check",
    "check_loss",
    "resolve_loss",
    *sorted(loss.__name__ for loss in (*LOSSES.values(), *MULTICLASS.values())),
]


def resolve_loss(loss: Any) -> Loss:
    """A loss object of one score from a registered name or from a loss object."""
    if isinstance(loss, Loss) and loss.coupled:
        raise ValueError(f"loss must have one score a row; {loss!r} has one for each class: use a classifier.")
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and ALIASES.get(loss, loss) in LOSSES:
        return LOSSES[ALIASES.get(loss, loss)]()
    names = ", ".join(repr(name) for name in LOSSES)
    raise ValueError(f"loss must be one of {names}, or an instance of certifit.losses.Loss; got {loss!r}.")
