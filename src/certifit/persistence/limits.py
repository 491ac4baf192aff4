"""What the objects of a file may cost, known before any of them is built.

An object that is shared is stored once, so a table of n entries can stand for 2ⁿ values: pairs of the same pair of the same
pair. Nothing in building it takes long, but whoever hashes, compares or prints it walks them all. The weight of an
object is the number of values met on such a walk,

    weight(object) = own values + Σ weight(objects it refers to),

and both the writer and the reader refuse tables in which it is out of proportion to what is written down.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["MOST_BITS", "MOST_DIMENSIONS", "MOST_KEY", "MOST_KEY_INT", "check_seed", "circular", "weights"]

MOST_BITS = 2**16
"""Of an integer."""
MOST_SEED = 2**17
"""Bits of the entropy of a seed: what NumPy does with them takes their square."""
MOST_KEY = 1000
"""Weight of a key of a dictionary or a member of a set: each is hashed."""
MOST_KEY_INT = 2**63
"""Greatest integer that is a key."""
MOST_DIMENSIONS = 32
"""Of an array."""
FREE, SHARING = 10**6, 100
"""The weight of a table may be this much, and this many times its number of values."""
_ENDLESS = 10**18


def weights(entries: list[Any], root: Any) -> dict[int, int]:
    """The weight of each object that the root leads to; what holds itself counts once.

    Raises
    ------
    ValueError
        If objects are shared so often that walking them would not end.

    Examples
    --------
    >>> from certifit.persistence.limits import weights
    >>> weights([{"items": [{"ref": 1}, {"ref": 1}]}, {"items": [1, 2]}], {"ref": 0})
    {1: 3, 0: 7}
    """
    found: dict[int, int] = {}
    parts: dict[int, tuple[int, list[int]]] = {}
    values = 1
    stack = [(number, False) for number in _parts(root)[1]]
    while stack:
        number, finished = stack.pop()
        if finished:
            own, children = parts[number]
            found[number] = min(_ENDLESS, own + sum(found.get(child, 0) for child in children))
        elif number not in parts and 0 <= number < len(entries):
            own, children = parts[number] = _parts(entries[number])
            values += own + len(children)
            stack.append((number, True))
            stack.extend((child, False) for child in children if child not in parts)
    heaviest = max(found.values(), default=0)
    if heaviest > FREE + SHARING * values:
        raise ValueError(
            f"its {values} values stand for {'more than ' if heaviest == _ENDLESS else ''}{heaviest} of them, so often is one "
            "a part of others"
        )
    return found


def circular(entries: list[Any]) -> set[int]:
    """The objects that lie on a way around, or between two such ways.

    Examples
    --------
    >>> from certifit.persistence.limits import circular
    >>> circular([{"items": [{"ref": 1}]}, {"items": [{"ref": 2}]}, {"items": [{"ref": 1}]}])
    {1, 2}
    """
    to = [[k for k in _parts(entry)[1] if 0 <= k < len(entries)] for entry in entries]
    back: list[list[int]] = [[] for _ in entries]
    for number, children in enumerate(to):
        for child in children:
            back[child].append(number)
    left = set(range(len(entries)))
    for there, here in ((to, back), (back, to)):  # what leads to nothing that is left, then what nothing left leads to
        count = {number: sum(k in left for k in there[number]) for number in left}
        ends = [number for number in left if not count[number]]
        while ends:
            number = ends.pop()
            left.discard(number)
            for k in here[number]:
                if k in left:
                    count[k] -= 1
                    if not count[k]:
                        ends.append(k)
    return left


def _parts(entry: Any) -> tuple[int, list[int]]:
    """How many values an entry has itself, and the numbers of the objects it refers to."""
    own, numbers, stack = 1, [], [entry]
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            stack.extend(value)
        elif isinstance(value, dict):
            if len(value) == 1 and type(value.get("ref")) is int:
                numbers.append(value["ref"])
            else:
                stack.extend(value.values())
        else:
            own += 1
    return own, numbers


def check_seed(*parts: Any) -> None:
    """The parts of a seed are numbers, or flat lists of them, and not longer than any seed needs to be."""
    if sum(map(_bits, parts)) > MOST_SEED:
        raise ValueError(f"a seed has more than {MOST_SEED} bits")


def _bits(part: Any) -> int:
    if part is None:
        return 0
    if isinstance(part, (int, np.integer)):
        return max(32, int(part).bit_length())
    if isinstance(part, str):
        return 4 * len(part)
    if isinstance(part, np.ndarray) and part.dtype.kind in "iu":
        return 32 * part.size if part.itemsize <= 4 else 64 * part.size
    if isinstance(part, (list, tuple)) and all(isinstance(item, (int, np.integer)) for item in part):
        return sum(map(_bits, part))
    raise ValueError(f"a seed cannot be made of {type(part).__name__}")
