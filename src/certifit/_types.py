"""Type names shared by all modules."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""A NumPy array of floating point numbers (or of what the context says)."""

Matrix: TypeAlias = Any
"""A feature matrix: a two-dimensional NumPy array or a SciPy sparse matrix."""

Float: TypeAlias = float | np.floating[Any]
