"""What hypothesis draws for the bases: small matrices, and how often each of their rows counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays


def matrices(largest: float) -> st.SearchStrategy[Any]:
    """Up to 12 rows and 4 columns."""
    entries = st.floats(-largest, largest, allow_subnormal=False)
    return arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=entries)


@st.composite
def weighted_matrices(draw: Any, largest: float) -> tuple[Any, Any]:
    """A matrix and whole weights of its rows, not all zero."""
    X = draw(matrices(largest))
    weight = draw(arrays(np.int64, X.shape[0], elements=st.integers(0, 3)))
    if not weight.any():
        weight[0] = 1
    return X, weight
