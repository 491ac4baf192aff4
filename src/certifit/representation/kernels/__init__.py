"""Kernels: similarities that are inner products, and the calculus that makes new ones.

`KERNELS` maps the name used in ``kernel="…"`` to the class.
"""

from __future__ import annotations

from typing import Any

from certifit.representation.kernels.base import Kernel
from certifit.representation.kernels.basic import (
    RBF,
    Custom,
    Laplacian,
    Linear,
    Mahalanobis,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from certifit.representation.kernels.discrete import Sets, Spectrum
from certifit.representation.kernels.mercer import Mercer, is_mercer

KERNELS: dict[str, type[Kernel]] = {
    "linear": Linear,
    "poly": Polynomial,
    "rbf": RBF,
    "laplacian": Laplacian,
    "sigmoid": Sigmoid,
    "mahalanobis": Mahalanobis,
    "precomputed": Precomputed,
    "spectrum": Spectrum,
    "sets": Sets,
}

__all__ = [
    "KERNELS",
    "RBF",
    "Custom",
    "Kernel",
    "Laplacian",
    "Linear",
    "Mahalanobis",
    "Mercer",
    "Polynomial",
    "Precomputed",
    "Sets",
    "Sigmoid",
    "Spectrum",
    "is_mercer",
    "resolve_kernel",
]


def resolve_kernel(kernel: Any) -> Kernel:
    """A kernel object from a registered name, a kernel object, or a function of two matrices."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in KERNELS:
        return KERNELS[kernel]()
    if callable(kernel) and not isinstance(kernel, type):
        return Custom(kernel)
    names = ", ".join(repr(name) for name in KERNELS)
    raise ValueError(
        f"kernel must be one of {names}, a certifit.kernels.Kernel, or a function of two matrices; got {kernel!r}."
    )
