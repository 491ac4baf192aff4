"""Expectations under a distribution with known quantiles Q.

    E g(Y)  =  ∫₀^½ [g(Q(v)) + g(Q(1 − v))] dv

Panels halve towards v = 0, so that tails are smooth on each of them; panels on which g jumps are halved until the jump has no
width. Quantiles of the first panels are computed once for all g.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from certifit._types import Array

__all__ = ["Expectation"]

NODE, SHARE = np.polynomial.legendre.leggauss(12)
PANELS = 60  # the last begins at a probability of 2^−61
ROUNDS = 60  # of halving: no panel is wider than rounding then
MOST_PANELS = 4000  # open at a time: an integrand with so many jumps, or with a pole, is not integrated
TOLERANCE = 1e-13


class Expectation:
    """E g(Y) for functions g of arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from certifit.evaluation.decisions.expectation import Expectation
    >>> mean = Expectation(norm(1.0, 2.0))
    >>> round(mean(np.square), 9), round(mean(lambda y: (y > 2.0) * 1.0), 9), round(float(norm.sf(0.5)), 9)
    (5.0, 0.308537539, 0.308537539)
    """

    def __init__(self, distribution: Any) -> None:
        self.distribution = distribution
        low = 0.5 ** np.arange(2, PANELS + 2)
        self.first = np.column_stack([low, 2.0 * low])
        self.halves = _halves(self.first)
        self.y_first, self.y_halves = self._quantiles(self.first), self._quantiles(self.halves)

    def _quantiles(self, panels: Array) -> Array:
        """Both tails at the nodes, shape (2, panels, nodes)."""
        middle, half = panels.mean(axis=1), 0.5 * (panels[:, 1] - panels[:, 0])
        v = middle[:, None] + half[:, None] * NODE
        return np.stack([self.distribution.ppf(v), self.distribution.isf(v)])

    @staticmethod
    def _integral(g: Callable[[Array], Array], panels: Array, y: Array) -> Array:
        return np.asarray((np.asarray(g(y)).sum(axis=0) @ SHARE) * 0.5 * (panels[:, 1] - panels[:, 0]))

    def __call__(self, g: Callable[[Array], Array]) -> float:
        """E g(Y)."""
        coarse = self._integral(g, self.first, self.y_first)
        panels, fine = self.halves, self._integral(g, self.halves, self.y_halves)
        # The tails may cancel: what rounding leaves is measured by their size, not by their sum.
        size, total = float(self._integral(lambda y: np.abs(g(y)), self.halves, self.y_halves).sum()), 0.0
        for _ in range(ROUNDS):
            pair = fine.reshape(-1, 2)
            open_ = np.abs(pair.sum(axis=1) - coarse) > TOLERANCE * size
            total += float(pair[~open_].sum())
            if not open_.any():
                return total
            kept = np.repeat(open_, 2)
            if kept.sum() > MOST_PANELS:
                break
            coarse, panels = fine[kept], _halves(panels[kept])
            fine = self._integral(g, panels, self._quantiles(panels))
        else:
            return total + float(fine.sum())
        raise ValueError("the expectation does not settle: it is infinite, or the function jumps too often.")


def _halves(panels: Array) -> Array:
    """Each panel as two, side by side."""
    middle = panels.mean(axis=1)
    return np.column_stack([panels[:, 0], middle, middle, panels[:, 1]]).reshape(-1, 2)
