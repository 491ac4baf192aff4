"""The parameters of networks, and what of them can be judged before any data is read."""

from __future__ import annotations

from typing import Any

from certifit.evaluation.losses import LOSSES, MULTICLASS, Loss
from certifit.models.tree.parameters import CATEGORICAL_FEATURES
from certifit.parameters import Either, Flag, Given, Integer, Named, Nothing, OneOf, Parameter, Real
from certifit.parameters.methods import weights

__all__ = [
    "ANY_LOSS",
    "BATCH_SIZE",
    "BETA",
    "CATEGORIES",
    "CLIP",
    "EARLY_STOPPING",
    "HIDDEN",
    "PATIENCE",
    "SCORING",
    "SHARE",
    "VISITS_OF_AN_EPOCH",
    "check_hidden",
]

ANY_LOSS = Parameter(
    "squared",
    Named("certifit.losses.Loss", Loss, {**LOSSES, **MULTICLASS}),
    "A name from ``certifit.losses.LOSSES`` or ``certifit.losses.MULTICLASS``, or a loss object. Those with a native kernel "
    "train in C++; any other through its `derivative` on the scores of each batch.",
)
HIDDEN = Parameter(
    (128, 64),
    Given("sequence of int", wrong=([0], [8, -1], [2.5])),
    "Units of each hidden layer; an empty tuple is a linear model.",
    kind="tuple of int ≥ 1",
)
VISITS_OF_AN_EPOCH = weights(
    "Visits of each row in an epoch: a weight of 2 counts a row twice, a weight of 0 drops it."
)
BATCH_SIZE = Parameter(128, Integer(1), "Rows of a step; all rows where there are fewer.")
BETA = Parameter(0.9, Real(0, 1, open_high=True), "Memory of Adam's mean of the gradients.")
SHARE = Parameter(0.0, Real(0, 1, open_high=True), "Share of the hidden units that a step leaves out.")
CATEGORIES = CATEGORICAL_FEATURES.but(
    text="Columns whose values are categories, text or numbers: each category has a learned vector (`embeddings_`), and one that "
    'is missing or was not seen in training the zero vector. "auto": text and categorical columns of a frame.'
)
CLIP = Parameter(
    None, Either(Real(0, open_low=True), Nothing()), "Greatest norm of a gradient: longer ones are shortened to it."
)
EARLY_STOPPING = Parameter(
    False, Flag(), "Set rows aside, stop when their loss no longer falls, and go back to the weights of the best epoch."
)
PATIENCE = Parameter(10, Integer(1), "Epochs without improvement by `tol` after which to stop.")

SCORING = OneOf(
    ("loss", "r2"),
    "What `early_stopping` watches of the rows set aside: their loss, or R², of which `tol` is the improvement that counts.",
)


def check_hidden(hidden: Any) -> tuple[int, ...]:
    """The units of the hidden layers as whole numbers."""
    sizes = list(hidden)
    if any(Integer(1).refuses(size) is not None for size in sizes):
        raise ValueError(f"hidden must hold whole numbers >= 1, the units of each hidden layer; got {hidden!r}.")
    return tuple(int(size) for size in sizes)
