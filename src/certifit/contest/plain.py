"""Plain JSON data: what a record is made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["plain"]


def plain(value: Any, text: Callable[[str], str] = str) -> Any:
    """
    A value made of dictionaries, lists, strings, finite numbers, truth values and None only.

    Parameters
    ----------
    value : object
        NumPy's arrays and numbers become lists and numbers, NaN and infinities None, anything unknown its text.
    text : callable
        What is done to every string.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"a": (np.float64(1.5), float("nan")), 3: np.arange(2)})
    {'a': [1.5, None], '3': [0, 1]}
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(part, text) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [plain(part, text) for part in value]
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy
        return plain(value.tolist(), text)
    return text(str(value))
