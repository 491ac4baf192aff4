"""Blocks of rows that fit the cache."""

from __future__ import annotations

__all__ = ["BLOCK", "row_blocks"]

BLOCK = 1 << 18  # entries: two megabytes in double precision, about a core's cache
FEWEST = 64  # rows: fewer would leave a product little to do


def row_blocks(rows: int | slice, width: int, entries: int = BLOCK) -> list[slice]:
    """So many rows, or those of a slice, in blocks of about `entries` entries where each row has `width` of them.

    Examples
    --------
    >>> from certifit.representation.design.blocks import row_blocks
    >>> row_blocks(150, 1000, 64_000)
    [slice(0, 64, None), slice(64, 128, None), slice(128, 150, None)]
    """
    start, stop = (rows.start, rows.stop) if isinstance(rows, slice) else (0, rows)
    size = max(FEWEST, entries // max(width, 1))
    return [slice(i, min(i + size, stop)) for i in range(start, stop, size)]
