"""Rows as CSV that a spreadsheet may open: it runs a cell that begins like a formula, whoever wrote it."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["csv_text", "guarded"]

FORMULA = ("=", "+", "-", "@", "\t", "\r")


def guarded(value: Any) -> Any:
    r"""A text that a spreadsheet would take for a formula, behind an apostrophe; numbers and other values as they are.

    Examples
    --------
    >>> from certifit.contest.record.spreadsheet import guarded
    >>> guarded('=HYPERLINK("http://evil")'), guarded("-1"), guarded(-1.5), guarded("no")
    ('\'=HYPERLINK("http://evil")', '-1', -1.5, 'no')
    """
    if not isinstance(value, str) or not value.startswith(FORMULA) or _is_number(value):
        return value
    return f"'{value}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return not text.startswith(("\t", "\r"))


def csv_text(rows: Sequence[Mapping[str, Any]], names: Sequence[str], raw: bool = False) -> tuple[str, int]:
    """The rows under their names, and how many different texts were guarded; none with ``raw=True``."""
    text, changed = io.StringIO(), set()

    def shown(value: Any) -> Any:
        found = value if raw else guarded(value)
        if found is not value:
            changed.add(value)
        return found

    table = csv.writer(text, lineterminator="\n")
    table.writerow([shown(name) for name in names])
    table.writerows([shown(row[name]) for name in names] for row in rows)
    return text.getvalue(), len(changed)
