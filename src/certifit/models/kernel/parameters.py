"""The parameters that models on a kernel share."""

from __future__ import annotations

from certifit.evaluation.losses import LOSSES, Loss
from certifit.parameters import ALPHA as STRENGTH
from certifit.parameters import RANDOM_STATE as SEED
from certifit.parameters import Integer, Named, OneOf, Parameter, Real
from certifit.representation.kernels.approximation import Similarity

__all__ = ["ALPHA", "APPROXIMATION", "KERNEL", "LOSS", "N_COMPONENTS", "RANDOM_STATE", "Similarity"]

ALPHA = STRENGTH.but(1e-3, "Strength of the penalty ½βᵀKβ beside the mean loss.", Real(0, open_low=True))
KERNEL = Parameter(
    "rbf",
    Similarity(),
    "A name from ``certifit.kernels.KERNELS``, a kernel object (whose parameters a grid search reaches as ``kernel__gamma``), or "
    "a function of two matrices.",
)
LOSS = Parameter(
    "squared",
    Named("certifit.losses.Loss", Loss, LOSSES),
    "A name from ``certifit.losses.LOSSES`` or a loss object of one score, also one of your own.",
)
APPROXIMATION = OneOf(
    ("auto", "none", "nystrom"),
    '"none" sums over all rows; "nystrom" over `n_components` landmarks drawn among them, and the certificate is about sums over '
    'those; "auto" is "none" up to 8,000 different rows, whose similarities are kept in memory.',
)
N_COMPONENTS = Parameter(300, Integer(1), "Landmarks of the approximation.")
RANDOM_STATE = SEED.but(text="Draws the landmarks of the approximation; without one nothing is drawn.")
