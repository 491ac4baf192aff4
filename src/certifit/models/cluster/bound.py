"""What no clustering into k groups can beat.

For rows x_i of weight s_i let H (n × k) be the indicator of a clustering, its columns of unit length. With
Z = diag(√s)(X − mean) the cost is

    Σ s_i ‖x_i − center‖²  =  tr ZᵀZ − tr HᵀZZᵀH  ≥  tr ZᵀZ − (λ₁ + … + λ_{k−1}),

λ being the eigenvalues of ZᵀZ in descending order: k orthonormal directions, one of which (√s) is orthogonal to all of Z,
catch no more than the k − 1 largest (Zha, He, Ding, Gu, Simon 2001; Ding and He 2004). Nothing is left of it when k − 1 reaches
the number of columns. Of few rows there is a second one: a row of a cluster, drawn by weight, is as a center twice as
expensive as the mean on average, so the best rows as centers cost at most twice the best means, and

    cost  ≥  ½ · (a lower bound on the cost of k medoids under ‖x − z‖²)          the dual bound of medoids.py

A third one, of few rows and on request, is the tightest: semidefinite.py.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

import certifit._native.medoids as _medoids
from certifit._types import Array, Matrix, is_sparse
from certifit.models.cluster.rows import ldexp, times, unit_exponent
from certifit.optimization.closed_form.magnitudes import power_of_two
from certifit.representation.design.moments import Moments
from certifit.representation.design.scatter import inner, outer, weighted_mean
from certifit.representation.kernels.basic import squared_lengths

__all__ = ["median_bound", "spectral_bound", "total_scatter"]

FEW = 500  # rows up to which all pairs are compared for a bound
STEPS = 15  # of the dual, each a pass over all pairs
CHEAP = 2e9  # multiplications that are not felt


def total_scatter(X: Matrix, weight: Array) -> float:
    """Σ s_i ‖x_i − mean‖²: the cost of one cluster."""
    if is_sparse(X):
        exponent = unit_exponent(X)  # in a unit whose squares are numbers
        rows = times(X, -exponent) if exponent else X
        mean = weighted_mean(rows, weight)
        return ldexp(max(0.0, weight @ squared_lengths(rows) - weight.sum() * (mean @ mean)), 2 * exponent)
    return float(Moments.of(X, weight, full=False).scatter.sum())


def spectral_bound(X: Matrix, weight: Array, k: int, effort: float = 0.0) -> tuple[float, float]:
    """Total scatter, and a lower bound of Σ s_i ‖x_i − center‖² over all clusterings into k groups.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    weight : array of shape (n,)
        Positive.
    k : int
        Number of clusters.
    effort : float
        Multiplications that the bound may cost; a bound that costs more is 0, which is true as well.

    Returns
    -------
    total, bound : float

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.models.cluster.bound import spectral_bound
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]])
    >>> total, bound = spectral_bound(X, np.ones(4), 2)
    >>> round(total, 6), round(bound, 6)
    (82.0, 1.0)
    """
    n, d = X.shape
    less = min(n, d)
    if k - 1 >= less or float(n) * d * less > max(CHEAP, effort):
        return total_scatter(X, weight), 0.0
    size = power_of_two(float(abs(X).max()))  # so that the scaled rows are the rows
    scatter, _ = (inner if d <= n else outer)(X / size, weight / weight.sum())
    total = float(np.trace(scatter))
    # All of them: LAPACK's search for some gives up on a matrix that is nothing but rounding.
    largest = np.linalg.eigvalsh(scatter)[less - (k - 1) :].sum()
    slack = 8.0 * less * np.finfo(np.float64).eps * total  # what rounding may have taken from the eigenvalues
    unit = size * size * float(weight.sum())
    left = float(total - largest - slack)
    return total * unit if total > 0.0 else 0.0, left * unit if left > 0.0 else 0.0  # the unit may be infinite


def median_bound(X: Matrix, weight: Array, centers: Array) -> float:
    """Half of what k rows as centers must cost: a lower bound for few dense rows, 0 for others.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    weight : array of shape (n,)
        Positive.
    centers : array of shape (k, d)
        Centers found, near which the dual begins.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.models.cluster.bound import median_bound
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])  # two clusters cost 1
    >>> 0.5 < median_bound(X, np.ones(4), np.array([[0.5], [9.5]])) <= 1.0
    True
    """
    if is_sparse(X) or X.shape[0] > FEW or centers.shape[0] > X.shape[0]:
        return 0.0
    size = float(np.abs(X).max()) or 1.0
    rows = X.astype(np.float64) / size
    D, share = cdist(rows, rows, "sqeuclidean"), np.ascontiguousarray(weight / weight.sum())
    nearest = cdist(centers / size, rows).argmin(axis=1)
    bound = _medoids.bound(D, share, nearest.astype(np.int64), STEPS, np.inf, 1)
    return 0.5 * float(bound) * size * size * float(weight.sum()) * (1.0 - 1e-9)
