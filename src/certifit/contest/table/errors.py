"""The error of a table that cannot be used."""

from __future__ import annotations

from certifit.printable import printable

__all__ = ["TableError"]


class TableError(ValueError):
    """A table that cannot be used: the message names the source, what was found and the cure, in one line."""

    def __init__(self, message: object) -> None:
        super().__init__(printable(message))  # it may cite the table
