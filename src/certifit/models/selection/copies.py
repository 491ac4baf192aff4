"""How far copies of columns may be from the columns, and the correlations of copies drawn at random.

A copy x̃_j has the correlations of x_j with all other columns, and Σ_jj − s_j with x_j itself. The larger s, the easier a
column is told from its copy; possible is every s with 0 ≤ s ≤ diag Σ and diag(s) ⪯ 2Σ: equal ones, or the largest in sum,

    maximize Σ s_j    subject to    0 ≤ s ≤ 1,    diag(s) ⪯ 2Σ        (Σ a matrix of correlations),

by ascent in one s_j after the other under the barrier μ·ln det(2Σ − diag(s)), whose maximum is at the Schur complement of j
less μ (Askari, Rebjock, d'Aspremont, El Ghaoui 2021). With M = (2Σ − diag(s))⁻¹ the matrix μM is feasible in the dual, and
bounds Σ s_j by 2μ·tr(ΣM) + Σ max(0, 1 − μM_jj).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certifit._types import Array

__all__ = ["Copies", "equal_distances", "fixed_copies", "largest_distances", "model_copies"]

CLOSE = 0.999  # of the largest s: the correlations of columns and copies stay regular
NEAR = 5e-3  # of the number of columns: the gap of Σ s at which the ascent ends
SWEEPS = 150
LEAST = 0.01  # of the equal s: the least of any column


class Copies(NamedTuple):
    """Mean products of copies with y, with the columns, and among themselves."""

    with_y: Array
    with_columns: Array
    among: Array


def equal_distances(correlations: Array) -> Array:
    """The largest s that is the same for all columns."""
    least = float(np.linalg.eigvalsh(correlations)[0])
    return np.full(correlations.shape[0], CLOSE * min(1.0, 2.0 * least))


def largest_distances(correlations: Array) -> tuple[Array, float]:
    """The s of largest sum, and what no sum exceeds.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.models.selection.copies import equal_distances, largest_distances
    >>> R = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> equal_distances(R).round(2)  # two columns that are alike hold all others back
    array([0.2, 0.2, 0.2])
    >>> s, bound = largest_distances(R)
    >>> round(float(s.sum()), 1), round(float(s[2]), 1), round(bound, 1)
    (1.4, 1.0, 1.4)
    """
    d = correlations.shape[0]
    equal = equal_distances(correlations)
    s, least = 0.5 * equal, LEAST * equal[0]  # at zero a copy is its column, and both are one to the lasso
    barrier, bound = 1.0, float(d)
    for _ in range(SWEEPS):
        inverse = np.linalg.inv(2.0 * correlations - np.diag(s))
        for j in range(d):
            moved = float(np.clip(s[j] + 1.0 / inverse[j, j] - barrier, least, 1.0)) - s[j]
            column = inverse[:, j].copy()
            inverse += (moved / (1.0 - moved * column[j])) * np.outer(column, column)
            s[j] += moved
        dual = barrier * inverse
        reached = 2.0 * float(np.einsum("ij,ij->", correlations, dual)) + float(
            np.maximum(0.0, 1.0 - np.diag(dual)).sum()
        )
        bound = min(bound, reached)
        if bound - s.sum() <= NEAR * d:
            break
        if reached - s.sum() <= 2.0 * barrier * d:  # as near as this barrier allows, or nearly
            barrier *= 0.3
    return CLOSE * s, bound


def fixed_copies(correlations: Array, with_y: Array, rows: float, s: Array, rng: Any) -> Copies:
    """Copies with exactly the correlations of the columns, drawn from all that fit: X̃ = X(I − Σ⁻¹S) + UC."""
    d = correlations.shape[0]
    inverse = np.linalg.inv(correlations)
    root = np.linalg.cholesky(2.0 * np.diag(s) - s[:, None] * inverse * s).T
    unexplained = max(0.0, 1.0 - float(with_y @ inverse @ with_y))
    seen = rng.standard_normal(d)
    hidden = float(rng.chisquare(rows - 1 - 2 * d)) if rows - 1 > 2 * d else 0.0
    residual = np.sqrt(unexplained) * seen / np.sqrt(seen @ seen + hidden)
    of_copies = with_y - s * (inverse @ with_y) + root.T @ residual
    return Copies(of_copies, correlations - np.diag(s), correlations)


def model_copies(correlations: Array, with_y: Array, rows: float, s: Array, rng: Any) -> Copies:
    """Copies whose rows are drawn from their Gaussian law given the row: X̃ = X(I − Σ⁻¹S) + E, E's rows from N(0, 2S − SΣ⁻¹S).

    Of the n × d numbers E only the products with (y, X) and among themselves are seen. The part of E in the d + 1 directions of
    (y, X) is Gaussian, and what is left of EᵀE a Wishart matrix, drawn by its factor (Bartlett 1933).
    """
    d = correlations.shape[0]
    keep = np.eye(d) - np.linalg.solve(correlations, np.diag(s))
    spread = np.linalg.cholesky(2.0 * np.diag(s) - s[:, None] * np.linalg.inv(correlations) * s)
    whole = np.block([[np.ones((1, 1)), with_y[None, :]], [with_y[:, None], correlations]])
    values, vectors = np.linalg.eigh(whole)
    root = vectors * np.sqrt(np.maximum(values, 0.0))  # (y, X) seen from its own directions
    inside = spread @ rng.standard_normal((d, d + 1)) / np.sqrt(rows)
    free = rows - 1 - (d + 1)
    factor = np.tril(rng.standard_normal((d, d)), -1)
    factor[np.diag_indices(d)] = np.sqrt(rng.chisquare(np.maximum(free - np.arange(d), 1e-12)))
    outside = spread @ factor / np.sqrt(rows)
    products = inside @ root.T
    cross = products[:, 1:]
    among = keep.T @ correlations @ keep + keep.T @ cross.T + cross @ keep + inside @ inside.T + outside @ outside.T
    return Copies(keep.T @ with_y + products[:, 0], keep.T @ correlations + cross, 0.5 * (among + among.T))
