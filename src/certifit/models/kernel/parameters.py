"""The parameters that models on a kernel share."""

from __future__ import annotations

from typing import Any

from certifit.evaluation.losses import LOSSES, Loss
from certifit.parameters import ALPHA as STRENGTH
from certifit.parameters import RANDOM_STATE as SEED
from certifit.parameters import Choice, Domain, Integer, Named, Parameter, Real
from certifit.representation.kernels import KERNELS, Kernel

__all__ = ["ALPHA", "APPROXIMATION", "KERNEL", "LOSS", "N_COMPONENTS", "RANDOM_STATE", "Similarity"]


class Similarity(Domain):
    """A kernel by its name, a kernel object, or a function of two matrices."""

    def refuses(self, value: Any) -> str | None:
        """Unknown names, and what is no function."""
        if isinstance(value, Kernel) or (callable(value) and not isinstance(value, type)):
            return None
        names = ", ".join(repr(name) for name in KERNELS)
        named = isinstance(value, str) and value in KERNELS
        return None if named else f"one of {names}, a certifit.kernels.Kernel, or a function of two matrices"

    def describe(self) -> str:
        """``str, Kernel or callable``."""
        return "str, Kernel or callable"

    def nonsense(self) -> list[Any]:
        """Names and objects that are no kernels."""
        return ["no such name", 3, None]


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
APPROXIMATION = Parameter(
    "auto",
    Choice("auto", "none", "nystrom"),
    '"none" sums over all rows; "nystrom" over `n_components` landmarks drawn among them, and the certificate is about sums over '
    'those; "auto" is "none" up to 8,000 different rows, whose similarities are kept in memory.',
)
N_COMPONENTS = Parameter(300, Integer(1), "Landmarks of the approximation.")
RANDOM_STATE = SEED.but(text="Draws the landmarks of the approximation; without one nothing is drawn.")
