"""Damage to bytes, written as the lines that do it to `data`, so that a case can be read and shortened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["chosen", "mutations"]

PIECES = [
    b"\x00",
    b"\xff",
    b"\n",
    b"\r",
    b'"',
    b"'",
    b",",
    b";",
    b"\t",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\x1b[2J",
    b"1e999",
]
PIECES += [
    b"nan",
    b"-",
    b"=1+1",
    b"\xc3",
    "é".encode(),
    "\u202e".encode(),
    b"\x00" * 64,
    b"9" * 400,
    b"{",
    b"]",
    b"PAR1",
]


def chosen(rng: np.random.Generator, items: Sequence[Any]) -> Any:
    """One of them."""
    return items[int(rng.integers(len(items)))]


def mutations(rng: np.random.Generator, size: int) -> list[str]:
    """Lines that flip, cut, double, insert and replace a few bytes of `data`, which has `size` of them."""
    lines = []
    for _ in range(int(chosen(rng, [1, 1, 2, 5]))):
        at, length = int(rng.integers(max(size, 1))), int(rng.integers(1, 40))
        lines.append(
            chosen(
                rng,
                [
                    f"data[{at} % len(data)] ^= {int(rng.integers(1, 256))}",
                    f"del data[{at}:{at + length}]",
                    f"data[{at}:{at}] = data[{at}:{at + length}]",
                    f"data[{at}:{at}] = {chosen(rng, PIECES)!r}",
                    f"data[{at}:{at + 4}] = {chosen(rng, PIECES)!r}",
                    f"data[{at}:{at + 4}] = {int(rng.integers(2**32)).to_bytes(4, 'little')!r}",
                    f"del data[{at}:]",
                ],
            )
        )
    return lines
