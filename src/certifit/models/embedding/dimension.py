"""How many directions a sample speaks for: the evidence of each number of principal components.

Rows are Gaussian; along k directions their variances are free, along the others they share one, v. The evidence of k integrates
over all such Gaussians, by Laplace's approximation about the likeliest (Minka 2000).
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from certifit._types import Array

__all__ = ["likeliest_dimension", "log_evidence"]

LEAST = 1e-15  # of the largest variance: less is rounding


def log_evidence(variances: Array, n: float) -> Array:
    """Logarithm of the evidence of k = 1 … d − 1 directions, up to a constant; −inf of directions without variance.

    Parameters
    ----------
    variances : array of shape (d,)
        Along all principal directions, in falling order.
    n : float
        Number of rows.
    """
    d = variances.shape[0]
    unit = float(variances[0]) or 1.0
    size = np.maximum(variances / unit, LEAST)
    k = np.arange(1, d)
    held = np.cumsum(np.log(size))[:-1]
    rest = (size.sum() - np.cumsum(size)[:-1]) / (d - k)  # the variance that all other directions share
    rest = np.maximum(rest, LEAST)
    # The volume of the orthonormal k-frames, from which directions are drawn.
    dimensions = d - k + 1
    frames = np.cumsum(gammaln(dimensions / 2) - np.log(np.pi) * dimensions / 2 - np.log(2.0))
    # Curvatures of the likelihood where directions i < j are rotated into each other: (λi − λj)(1/λ̂j − 1/λ̂i)·n, λ̂j being
    # λj among the first k and v beyond.
    apart = np.log(np.maximum(size[:, None] - size[None, :], LEAST * size[:, None]))
    among = np.cumsum(np.triu(2 * apart - np.log(size)[:, None] - np.log(size)[None, :], 1).sum(axis=0))[:-1]
    across = np.array([apart[:m, m:].sum() for m in k])
    back = np.array(
        [(d - m) * np.log(np.maximum(1 / v - 1 / size[:m], LEAST)).sum() for m, v in zip(k, rest, strict=True)]
    )
    rotations = d * k - k * (k + 1) / 2
    curvature = among + across + back + rotations * np.log(n)
    found = (
        frames
        - 0.5 * n * (held + (d - k) * np.log(rest))
        + 0.5 * (rotations + k) * np.log(2 * np.pi)
        - 0.5 * curvature
        - 0.5 * k * np.log(n)
    )
    return np.where(variances[:-1] < LEAST * unit, -np.inf, found)


def likeliest_dimension(variances: Array, n: float) -> int:
    """The number of directions with the greatest evidence, from 1 to d − 1.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.models.embedding.dimension import likeliest_dimension
    >>> likeliest_dimension(np.array([9.0, 4.0, 1.02, 1.0, 0.98]), 200)
    2
    """
    if variances.shape[0] < 2 or not variances[0] > 0:
        return 1
    return int(np.argmax(log_evidence(variances, n))) + 1
