"""Several targets that share the columns they use: the norm of each column's coefficients over all targets."""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.evaluation.penalties.elastic import ElasticNet

__all__ = ["RowNorms"]


class RowNorms(ElasticNet):
    """Ω(W) = Σ_j weights_j·(l1_ratio·‖w_j‖₂ + (1 − l1_ratio)·½‖w_j‖²), w_j being column j's coefficients for all targets.

    A column is used by every target or by none. W has shape (n_targets, n_features); of one target it is the elastic net.

    Parameters
    ----------
    l1_ratio : float in [0, 1], default=1.0
        Share of the norm; 1 is the multi-task lasso.
    weights : array of shape (n_features,) or None
        Strength of each column.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.penalties import RowNorms
    >>> RowNorms().value(np.array([[3.0, 0.0], [-4.0, 0.0]]))
    5.0
    """

    name = "rows"
    couples = True

    def __init__(self, l1_ratio: float = 1.0, weights: object = None) -> None:
        super().__init__(l1_ratio, weights)

    def each(self, w: Array) -> Array:
        """Of every column."""
        return super().each(_sizes(w))

    def prox(self, z: Array, step: float | Array) -> Array:
        """argmin over W of ½‖W − Z‖² + step·Ω(W): every w_j is drawn towards zero along itself."""
        size = _sizes(z)
        with np.errstate(divide="ignore", invalid="ignore"):
            return z * np.where(size > 0, super().prox(size, step) / size, 0.0)

    def argmax(self, v: Array) -> Array:
        """argmax over W of ⟨V, W⟩ − Ω(W); ±inf where the conjugate is infinite."""
        size = _sizes(v)
        with np.errstate(divide="ignore", invalid="ignore"):
            along = v * (super().argmax(size) / size)
        return np.where((size > 0) & (v != 0.0), along, 0.0)

    def conjugate(self, v: Array) -> Array:
        """Ω_j*(v_j), of every column."""
        return super().conjugate(_sizes(v))

    def subdifferential_distance(self, w: Array, g: Array) -> Array:
        """Distance of −g_j from the subdifferential at w_j: zero at an optimum, of every column."""
        l1, l2 = self.elastic(w.shape[-1])
        size = _sizes(w)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = _sizes(g + w * (l1 / size + l2))
        return np.where(size > 0, inside, np.maximum(_sizes(g) - l1, 0.0))


def _sizes(w: Array) -> Array:
    """‖w_j‖ of every column j; of one target |w_j|."""
    if w.ndim == 1:
        return np.abs(w)
    unit = np.abs(w).max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(unit > 0, unit * np.sqrt(((w / unit) ** 2).sum(axis=0)), 0.0)
