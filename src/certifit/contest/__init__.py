"""The contest: reads a table, seals a part of it, lets the methods compete and judges them once.

``certifit.contest.ENTRANTS`` holds the entrants by name.
"""

from typing import Any

__all__ = ["ENTRANTS"]


def __getattr__(name: str) -> Any:
    """The entrants, loaded with their models when somebody asks for them."""
    if name != "ENTRANTS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}.")
    from certifit.contest.entrants import ENTRANTS

    return ENTRANTS
