"""Type names shared by all modules."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""A NumPy array of floating point numbers (or of what the context says)."""

Matrix: TypeAlias = Any
"""A feature matrix: a two-dimensional NumPy array or a SciPy sparse matrix."""


def is_sparse(X: Any) -> bool:
    """Whether X is a SciPy sparse matrix; unlike SciPy's own test it does not narrow the type to a bare base class."""
    return type(X) is not np.ndarray and bool(sp.issparse(X))  # arrays are asked most often, and SciPy takes its time


Float: TypeAlias = float | np.floating[Any]
