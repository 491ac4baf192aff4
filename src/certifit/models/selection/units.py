"""Columns and target in units of their own: mean zero, mean square one.

In these units the Gram matrix is the matrix of correlations, its entries are of order one whatever the data was measured in, and
the residual sum of squares is the unexplained share of the variance of y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit._types import Array
from certifit.representation.basis.summaries import mean_and_deviation

__all__ = ["LEAST_PIVOT", "InUnits"]

LEAST_PIVOT = (
    1e-11  # a column of which other columns leave a smaller share of the variance counts as a combination of them
)


@dataclass(frozen=True)
class InUnits:
    """Rows of (y, X) in units, each multiplied by the root of its share of the weight."""

    rows: Array
    """Shape (n, 1 + d), y first; constant columns are zero."""
    mean: Array
    scale: Array
    """Of y and the columns, shape (1 + d,); 1 for what is constant."""

    @staticmethod
    def of(X: Array, y: Array, weight: Array) -> InUnits:
        """In units of the weighted rows.

        Examples
        --------
        >>> import numpy as np
        >>> from certifit.models.selection.units import InUnits
        >>> data = InUnits.of(np.array([[0.0], [2.0]]), np.array([5.0, 5.0]), np.ones(2))
        >>> data.gram().round(12), data.mean
        (array([[0., 0.],
               [0., 1.]]), array([5., 1.]))
        """
        share = weight / weight.sum()
        rows = np.empty((X.shape[0], 1 + X.shape[1]))
        rows[:, 0], rows[:, 1:] = y, X
        mean, scale = mean_and_deviation(rows, share)
        scale = np.where(scale > 0, scale, 1.0)
        rows -= mean
        rows /= scale
        rows *= np.sqrt(share)[:, None]
        return InUnits(rows, mean, scale)

    def gram(self) -> Array:
        """Correlations of (y, X)."""
        return np.asarray(self.rows.T @ self.rows)

    def least_squares(self, support: Array) -> tuple[Array, float, float]:
        """Coefficients of all columns in the units of the data, intercept, and the unexplained share of the variance."""
        coef = np.zeros(support.shape[0])
        target, chosen = self.rows[:, 0], self.rows[:, 1:][:, support]
        found = np.linalg.lstsq(chosen, target, rcond=None)[0]
        left = target - chosen @ found
        with np.errstate(over="ignore", invalid="ignore"):  # what is beyond the range is refused
            coef[support] = found * (self.scale[0] / self.scale[1:][support])
            intercept = float(self.mean[0] - self.mean[1:] @ coef)
        return coef, intercept, float(left @ left)
