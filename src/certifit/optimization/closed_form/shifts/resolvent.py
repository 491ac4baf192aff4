"""ρ(A + ρI)⁻¹ of one positive semidefinite matrix for many ρ: what ridge regression leaves of its targets.

Between a rotation and its transpose lies a diagonal matrix (eigenvectors; any number of ρ for nothing) or a band
(`closed_form.shifts.band`: cheaper, and something more for each ρ).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.linalg

from certifit._types import Array
from certifit.optimization.closed_form.shifts.band import Band, BandFactor, inverse_diagonals

__all__ = ["Resolvent"]

SLICE = 256  # rows whose diagonals are computed at a time
BAND_FROM = 2400  # rows; a smaller matrix stays in the cache, where products with vectors are fast as well
BAND_RIDGES = 1 / 100  # of the rows; with more ρ than that eigenvectors are worth their price


@dataclass(frozen=True)
class Resolvent(ABC):
    """A = rotation · (diagonal or band) · rotationᵀ."""

    rotation: Array

    @staticmethod
    def of(A: Array, ridges: Array) -> Resolvent:
        """Decompose in the way that is faster for these ρ; A is used up."""
        n = A.shape[0]
        if n >= BAND_FROM and ridges.shape[0] <= n * BAND_RIDGES:
            try:
                band = Band.of(A)
                factors = {float(ridge): band.factor(float(ridge)) for ridge in ridges}
                return _ByBand(band.rotation(), band, factors)
            except np.linalg.LinAlgError:
                pass  # rounding left A + ρ an eigenvalue below zero: eigenvectors can take that for zero
        driver: Literal["ev", "evd"] = "evd" if n > 1 else "ev"  # SciPy 1.13 has too little room for one row
        values, vectors = scipy.linalg.eigh(A, driver=driver, overwrite_a=True, check_finite=False)
        return _BySpectrum(vectors, np.maximum(values, 0.0))

    def turned(self, v: Array) -> Array:
        """rotationᵀ v"""
        return np.asarray(self.rotation.T @ v)

    @abstractmethod
    def damped(self, z: Array, ridge: float) -> Array:
        """What becomes of z = `turned(v)`; rotation · damped is ρ(A + ρ)⁻¹v."""

    @abstractmethod
    def diagonals(self, ridges: Array) -> Array:
        """Of ρ(A + ρ)⁻¹, one column for each ρ of `of`."""


@dataclass(frozen=True)
class _BySpectrum(Resolvent):
    values: Array

    def damped(self, z: Array, ridge: float) -> Array:
        return np.asarray(z * (ridge / (self.values + ridge))[:, None])

    def diagonals(self, ridges: Array) -> Array:
        shares = ridges / (self.values[:, None] + ridges)
        found = np.empty((self.rotation.shape[0], ridges.shape[0]))
        for start in range(0, found.shape[0], SLICE):
            rows = slice(start, start + SLICE)
            found[rows] = self.rotation[rows] ** 2 @ shares
        return found


@dataclass(frozen=True)
class _ByBand(Resolvent):
    band: Band
    factors: dict[float, BandFactor] = field(default_factory=dict)

    def damped(self, z: Array, ridge: float) -> Array:
        factor = self.factors.get(ridge) or self._factor(ridge)
        return ridge * factor.solve(z)

    def _factor(self, ridge: float) -> BandFactor:
        """That of another ρ; where rounding leaves it an eigenvalue below zero, the nearest one that has a factor."""
        try:
            return self.band.factor(ridge)
        except np.linalg.LinAlgError:
            return self.factors[min(self.factors, key=lambda known: abs(known - ridge))]

    def diagonals(self, ridges: Array) -> Array:
        return ridges * inverse_diagonals(self.rotation, [self.factors[float(ridge)] for ridge in ridges])
