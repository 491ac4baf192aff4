"""A tighter bound on the cost of every clustering of few rows, from a semidefinite program.

Rows x_i of weight s_i, G = ZZᵀ with Z = diag(√s)(X − mean), q = √s of length one. A clustering into k groups is the matrix
B_ij = √(s_i s_j)/(weight of the group) for two rows of a group, 0 for others, and costs tr G − ⟨G, B⟩. Every such B has

    B ⪰ 0,  B ≥ 0,  Bq = q,  tr B = k,        hence B = qqᵀ + C with 0 ⪯ C ⪯ I, Cq = 0, tr C = k − 1

(no eigenvalue of a matrix without negative entries is beyond that of its positive eigenvector). Over all matrices with these
properties (Peng and Wei 2007), for any N ≥ 0,

    ⟨G, B⟩ ≤ ⟨G + N, B⟩ ≤ qᵀNq + the k − 1 largest eigenvalues of P(G + N)P,    P = I − qqᵀ,

so every N ≥ 0 is a proof, whatever it came from, and N = 0 is the spectral bound. A good N is the multiplier of B ≥ 0 in the
alternating direction method for the program: one eigendecomposition of n × n a step.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import eigh, eigvalsh

from certifit._types import Array, Matrix
from certifit.optimization.closed_form.magnitudes import power_of_two
from certifit.representation.design.scatter import outer
from certifit.threads import one_blas_thread

__all__ = ["check_few", "semidefinite_bound"]

MOST_ROWS = 500  # a step takes about n³ · 4e-10 s
STEPS = 500
CHECK = 10  # steps between two bounds, each half a step
CLOSE = 1e-7  # of the cost: a gap that is closed
STILL = 1e-9  # residuals that leave nothing to gain
RELAX = 1.6


def check_few(n: int) -> None:
    """An error where there are more rows than can be compared with each other."""
    if n > MOST_ROWS:
        raise ValueError(
            f"bound='sdp' compares all pairs of at most {MOST_ROWS} distinct rows; X has {n}. Give bound='auto', or fewer rows."
        )


def semidefinite_bound(
    X: Matrix, weight: Array, k: int, labels: Array, *, cost: float, tol: float = 0.0, max_iter: int = STEPS
) -> float:
    """A lower bound of Σ s_i ‖x_i − center‖² over all clusterings into k groups.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Distinct rows.
    weight : array of shape (n,)
        Positive.
    k : int
        Number of clusters, from 2 to n.
    labels : array of shape (n,)
        A clustering to begin with: the better, the sooner it ends.
    cost : float
        What that clustering costs; a bound that reaches it ends the search.
    tol : float
        The gap to end at, as a share of the cost of one cluster.
    max_iter : int
        Most steps.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.models.cluster.semidefinite import semidefinite_bound
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0], [20.0], [21.0]])  # the best three groups cost 1.5
    >>> round(semidefinite_bound(X, np.ones(6), 3, np.array([0, 0, 1, 1, 2, 2]), cost=1.5), 5)
    1.5
    """
    size = power_of_two(float(abs(X).max()))  # so that the scaled rows are the rows
    unit = size * size * float(weight.sum())
    with one_blas_thread():  # hundreds of small decompositions
        G, _ = outer(X / size, weight / weight.sum())
        total = float(np.trace(G))
        if total <= 0.0:
            return 0.0
        q = np.sqrt(weight / weight.sum())
        groups = np.equal.outer(labels, np.unique(labels)) * q[:, None]
        groups /= np.linalg.norm(groups, axis=0)
        wanted = cost / unit - max(tol * total, CLOSE * cost / unit)
        return float(max(0.0, _search(G, q, k - 1, groups, total, wanted, max_iter)) * unit)


def _search(G: Array, q: Array, more: int, groups: Array, total: float, wanted: float, max_iter: int) -> float:
    """minimize −⟨G, A⟩ over A = B with A = qqᵀ + C as above and B ≥ 0; N is the multiplier of A = B."""
    mean, B, N = np.outer(q, q), groups @ groups.T, np.zeros_like(G)
    size, length = float(np.linalg.norm(G)), float(np.linalg.norm(B))
    weight = size / length  # of ‖A − B‖²: steps in G and in B become alike
    best = -math.inf
    for step in range(1, max_iter + 1):
        values, vectors = eigh(_less_mean(B + (G + N) / weight, q), overwrite_a=True)
        shares = _capped(values, more)
        kept = vectors[:, shares > 0]
        A = (kept * shares[shares > 0]) @ kept.T + mean
        mixed, before = RELAX * A + (1.0 - RELAX) * B, B
        B, N = np.maximum(0.0, mixed - N / weight), np.maximum(0.0, N - weight * mixed)
        if step % CHECK == 0 or step == max_iter:
            best = max(best, _proven(G, N, q, more, total))
            apart = float(np.linalg.norm(A - B)) / length
            moved = weight * float(np.linalg.norm(B - before)) / size
            if best >= wanted or max(apart, moved) <= STILL:
                break
            weight *= 1.5 if apart > 3.0 * moved else 1.0 / 1.5 if moved > 3.0 * apart else 1.0
    return best


def _proven(G: Array, N: Array, q: Array, more: int, total: float) -> float:
    """What N ≥ 0 proves, less what rounding may have added."""
    n = q.shape[0]
    largest = eigvalsh(_less_mean(G + N, q), subset_by_index=(n - more, n - 1)).sum()
    rounding = 8.0 * n * max(more, 1) * np.finfo(np.float64).eps * (total + float(np.linalg.norm(N)))
    return total - float(q @ N @ q) - float(largest) - rounding


def _less_mean(M: Array, q: Array) -> Array:
    """PMP, P = I − qqᵀ."""
    across = M @ q
    across -= 0.5 * (q @ across) * q
    cross = np.outer(q, across)
    return np.asarray(M - cross - cross.T)


def _capped(values: Array, sum_: int) -> Array:
    """The nearest point of {0 ≤ x ≤ 1, Σx = sum_}: the values less a constant, clipped."""
    low, high = float(values.min()) - 1.0, float(values.max())
    while (middle := 0.5 * (low + high)) not in (low, high):
        if np.clip(values - middle, 0.0, 1.0).sum() > sum_:
            low = middle
        else:
            high = middle
    return np.clip(values - high, 0.0, 1.0)
