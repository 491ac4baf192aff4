"""Columns and target in units of their own: mean zero, mean square one.

In these units the Gram matrix is the matrix of correlations, its entries are of order one whatever the data was measured in, and
the residual sum of squares is the unexplained share of the variance of y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit._types import Array
from certifit.representation.basis.summaries import mean_and_deviation

__all__ = ["LEAST_PIVOT", "InUnits", "concealed", "rounding_of"]

LEAST_PIVOT = (
    1e-11  # a column of which other columns leave a smaller share of the variance counts as a combination of them
)


def rounding_of(X: Array, mean: Array, scale: Array) -> float:
    """Rounding of the entries of X in units of their columns, the largest of all columns."""
    offset = np.divide(np.abs(mean), scale, out=np.zeros(mean.shape), where=scale > 0).max(initial=0.0)
    return float(np.finfo(np.result_type(X, np.float32)).eps * (1.0 + offset))


def concealed(columns: Array, rounding: float) -> Array | None:
    """An orthonormal basis of the columns, where the matrix of their products conceals a part of it; None where it does not.

    Products know a direction down to the root of their own rounding, columns down to theirs: between the two a direction is
    there, and may explain anything, but is a combination of others for all that is computed from the products.

    Parameters
    ----------
    columns : array of shape (n, d)
        Centered, of size one.
    rounding : float
        Of their entries (`rounding_of`).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.models.selection.units import concealed
    >>> column, other = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / 2
    >>> concealed(np.c_[column, column + other], 1e-16), concealed(np.c_[column, column], 1e-16)
    (None, None)
    >>> concealed(np.c_[column, column + 1e-8 * other], 1e-16).shape
    (3, 2)
    """
    if not columns.size or np.linalg.eigvalsh(columns.T @ columns)[0] > LEAST_PIVOT:
        return None
    basis, size, _ = np.linalg.svd(columns, full_matrices=False)
    there = size > max(columns.shape) * rounding * size[0]
    return np.asarray(basis[:, there]) if (size[there] ** 2 <= LEAST_PIVOT).any() else None


@dataclass(frozen=True)
class InUnits:
    """Rows of (y, X) in units, each multiplied by the root of its share of the weight."""

    rows: Array
    """Shape (n, 1 + d), y first; constant columns are zero."""
    mean: Array
    scale: Array
    """Of y and the columns, shape (1 + d,); 1 for what is constant."""
    rounding: float
    """Of the entries of the columns."""

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
        return InUnits(rows, mean, scale, rounding_of(X, mean[1:], scale[1:]))

    def gram(self) -> Array:
        """Correlations of (y, X)."""
        return np.asarray(self.rows.T @ self.rows)

    def concealed_share(self) -> float:
        """Unexplained share of the variance by all columns, where correlations do not tell it; ∞ where they do."""
        basis = concealed(self.rows[:, 1:], self.rounding)
        if basis is None:
            return np.inf
        left = self.rows[:, 0]
        for _ in range(2):  # what the first projection leaves is rounded at the size of y
            left = left - basis @ (basis.T @ left)
        return float(left @ left)

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
