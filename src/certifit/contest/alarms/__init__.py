"""What looks wrong in a table or a contest, said before anyone trusts a score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certifit.contest.table.table import Table
    from certifit.evaluation.splits.sealed import SealedSplit

__all__ = ["alarms"]


def alarms(table: Table, split: SealedSplit, seconds: float = 60.0) -> list[dict[str, Any]]:
    """Warnings about a table and its split.

    Parameters
    ----------
    table : Table
        The table.
    split : SealedSplit
        Its sealed part; only the training part is looked at, except to compare the two.
    seconds : float, default=60
        How long leaks may be looked for; where that is not enough for all columns, it is said.

    Returns
    -------
    list of dict
        ``{"kind", "code", "column", "text"}``; the codes are those of `certifit.contest.alarms.registry.ALARMS`.

    Examples
    --------
    >>> import numpy as np, polars as pl
    >>> from certifit.contest.table.table import Table
    >>> from certifit.evaluation.splits.sealed import sealed_split
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> frame = pl.DataFrame({"x": rng.normal(size=500), "refund": 100.0 * y, "y": y})
    >>> table = Table.from_source(frame, "y")
    >>> for warning in alarms(table, sealed_split(table.y, task="binary")):
    ...     print(warning["code"], warning["column"])
    leak refund
    """
    from certifit.contest.alarms import columns, leaks, sealing

    return [
        *leaks.leaks(table, split, seconds),
        *sealing.sides(table, split),
        *sealing.copies(table, split),
        *leaks.order(table, split),
        *columns.missing(table, split),
        *columns.pooled(table, split),
        *columns.imbalance(table, split),
        *columns.size(table, split),
        *columns.left_out(table),
        *sealing.drift(table, split),
    ]
