"""Spans in tags such as B-PER, I-PER, O.

A span begins with B-x (or S-x), or with I-x (E-x) where no span of x is open; it goes on with I-x and E-x. So the tags
of BIO, BIOES and plain IO files are all read as people mean them, and as CoNLL's own scorer does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["has_spans", "spans"]

BEGIN, INSIDE = {"B", "S"}, {"I", "E", "M"}


def spans(labels: Sequence[Any]) -> list[tuple[str, int, int]]:
    """The spans of a sequence: kind, first position, position after the last.

    Parameters
    ----------
    labels : sequence of str
        Tags such as B-PER, I-PER and O.

    Returns
    -------
    list of tuples (kind, begin, end)

    Examples
    --------
    >>> from certifit.evaluation.sequences.spans import spans
    >>> spans(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
    [('PER', 0, 2), ('LOC', 3, 4), ('LOC', 4, 5)]
    """
    found: list[tuple[str, int, int]] = []
    kind, begin, closed = "", 0, True
    for t, label in enumerate([*labels, "O"]):
        mark, _, name = str(label).partition("-")
        goes_on = mark in INSIDE and not closed and name == kind
        if not goes_on:
            if not closed:
                found.append((kind, begin, t))
            kind, begin, closed = name, t, mark not in BEGIN | INSIDE
        if mark in {"E", "S"} and not closed:
            found.append((kind, begin, t + 1))
            closed = True
    return found


def has_spans(labels: Sequence[Any]) -> bool:
    """Whether labels look like tags of spans: O, and marks with kinds.

    Examples
    --------
    >>> from certifit.evaluation.sequences.spans import has_spans
    >>> has_spans(["O", "B-PER", "I-PER"]), has_spans(["NOUN", "O"])
    (True, False)
    """
    names = {str(label) for label in labels} - {"O"}
    return bool(names) and all(name.partition("-")[0] in BEGIN | INSIDE and name.partition("-")[2] for name in names)
