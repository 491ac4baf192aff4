"""Whether a matrix of similarities is a Gram matrix: Mercer's condition on the points at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_real
from certifit.representation.kernels.base import Kernel

__all__ = ["Mercer", "by_construction", "is_mercer"]


@dataclass(frozen=True)
class Mercer:
    """The answer of `is_mercer`, usable as a truth value.

    Parameters
    ----------
    positive : bool
        Whether the matrix is symmetric and has no eigenvalue below −tol times the largest.
    smallest : float
        The smallest eigenvalue.
    witness : array of shape (n,)
        Its eigenvector c: cᵀKc = `smallest`, which no set of points in any feature space can have below zero.
    asymmetry : float
        Largest |K_ij − K_ji|.
    """

    positive: bool
    smallest: float
    witness: Array
    asymmetry: float

    def __str__(self) -> str:
        if self.positive:
            return f"A Gram matrix: its smallest eigenvalue is {self.smallest:.3g}."
        if self.asymmetry > 0:  # reason enough, and the eigenvalue is that of the symmetric part
            return f"Not a Gram matrix: it is not symmetric (entries differ by up to {self.asymmetry:.3g})."
        return f"Not a Gram matrix: cᵀKc = {self.smallest:.3g} < 0 for the vector c in `witness`."

    def __bool__(self) -> bool:
        return self.positive


def is_mercer(K: Any, tol: float = 1e-10) -> Mercer:
    """Whether K is symmetric and positive semidefinite, with the vector that shows it is not.

    Parameters
    ----------
    K : array of shape (n, n)
        Similarities of all pairs.
    tol : float, default=1e-10
        Negative eigenvalues up to this share of the largest count as rounding.

    Returns
    -------
    Mercer
        True or false in an `if`, with the eigenvalue and its vector.

    Examples
    --------
    >>> from certifit import is_mercer
    >>> bool(is_mercer([[2.0, 1.0], [1.0, 2.0]])), bool(is_mercer([[1.0, 2.0], [2.0, 1.0]]))
    (True, False)
    >>> print(is_mercer([[1.0, 2.0], [2.0, 1.0]]))
    Not a Gram matrix: cᵀKc = -1 < 0 for the vector c in `witness`.
    """
    check_real("tol", tol, low=0)
    try:
        matrix = np.asarray(K, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"K must be a matrix of numbers; got {type(K).__name__}.") from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"K must be a square matrix of similarities; got shape {matrix.shape}.")
    if not np.isfinite(matrix).all():
        raise ValueError("K contains NaN or infinity.")
    asymmetry = float(np.abs(matrix - matrix.T).max())
    size = float(np.abs(matrix).max()) or 1.0
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T) / size)
    largest = float(np.abs(values).max()) or 1.0
    symmetric = asymmetry <= max(tol, 1e-12) * size
    positive = bool(symmetric and values[0] >= -tol * largest)
    return Mercer(positive, float(values[0] * size), vectors[:, 0], 0.0 if symmetric else asymmetry)


def by_construction(kernel: Kernel) -> bool:
    """Whether a kernel is positive semidefinite on all rows: one of the package, with no part of the user's own."""
    own = not kernel.positive or not type(kernel).__module__.startswith("certifit.")
    parts = (part for part in kernel.get_params(deep=False).values() if isinstance(part, Kernel))
    return not own and all(by_construction(part) for part in parts)
