"""A Gram matrix between the roots of weights, decomposed for every ridge.

With B = √S (K about its weighted center) √S and R = ρ(B + ρ)⁻¹, the residuals of the fit with ridge ρ are

    √S r = R √S(y − mean),     and row i weighs  1 − R_ii + s_i/Σs  in its own fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from certifit._types import Array
from certifit.optimization.closed_form.shifts.resolvent import Resolvent

__all__ = ["GramForm"]

COLUMNS = 64  # of residuals that are computed at a time


@dataclass(frozen=True)
class GramForm:
    """√S K √S about the center, ready for every ridge, √s, and the direction that the intercept takes.

    In that direction the matrix about the center is zero, and ρ(0 + ρ)⁻¹ = 1 would hide what little a small ridge leaves
    elsewhere. So it gets the eigenvalue `lifted` there: targets about their mean do not see it, and the diagonals are rid of it.
    """

    resolvent: Resolvent
    root: Array
    constant: Array
    lifted: float

    @staticmethod
    def of(gram: Array, weight: Array, fit_intercept: bool, ridges: Array) -> GramForm:
        """Decompose."""
        root = np.sqrt(weight)
        B = gram * root[:, None]
        B *= root
        constant = root / np.linalg.norm(root) if fit_intercept else np.zeros_like(root)
        lifted = float(np.trace(B)) / root.shape[0] or 1.0
        if fit_intercept:
            image = B @ constant
            image -= 0.5 * (float(constant @ image) + lifted) * constant
            B -= np.multiply.outer(constant, image)
            B -= np.multiply.outer(image, constant)
        return GramForm(Resolvent.of(B, ridges), root, constant, lifted)

    def residuals(self, y: Array, ridges: Array) -> Iterator[Array]:
        """y − f − b of each row and target, for one ridge after the other."""
        scaled = self.root[:, None] * y
        z = self.resolvent.turned(scaled - np.multiply.outer(self.constant, self.constant @ scaled))
        step = max(1, COLUMNS // y.shape[1])
        for start in range(0, ridges.shape[0], step):
            damped = [self.resolvent.damped(z, float(ridge)) for ridge in ridges[start : start + step]]
            back = self.resolvent.rotation @ np.hstack(damped) / self.root[:, None]
            yield from np.split(back, len(damped), axis=1)

    def spare(self, ridges: Array) -> Array:
        """One less what all copies of a row weigh in its own fit, one column for each ridge."""
        own = np.multiply.outer(self.constant**2, ridges / (self.lifted + ridges))
        return np.maximum(self.resolvent.diagonals(ridges) - own, 0.0)
