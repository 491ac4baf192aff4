"""Missing values: what stands for one."""

from __future__ import annotations

from typing import Any

__all__ = ["is_absent"]


def is_absent(value: Any) -> bool:
    """Whether a value stands for a missing one: None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT differ from themselves
    except TypeError:  # NA refuses to say
        return True
