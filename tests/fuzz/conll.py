"""Annotated text: CoNLL-U and plain columns with strange cells, and their bytes damaged."""

from __future__ import annotations

import numpy as np
from tests.fuzz.mutation import chosen, mutations

__all__ = ["code"]

CELLS = "_ word NOUN 1 0 -1 1-2 1.1 # =1+1 B-PER".split()
CELLS += ["", " ", "999999999999999999999999999999", "²", "٣", "\x1b[2J", "\u202e", "日本", "x" * 500]


def code(rng: np.random.Generator) -> str:
    """A case: a few sentences and the question whether they are read or refused."""
    suffix, width = chosen(rng, [(".conllu", 10), (".conll", 3), (".txt", 2)])
    lines = []
    for _ in range(int(rng.integers(0, 4))):
        lines += ["# text = x"] if rng.random() < 0.3 else []
        for word in range(int(rng.integers(0, 5))):
            row = [f"w{word}"] * width if rng.random() < 0.5 else [chosen(rng, CELLS) for _ in range(width)]
            if width == 10:
                row[0] = str(word + 1) if rng.random() < 0.95 else chosen(rng, CELLS)
                row[6] = str(int(rng.integers(0, 4))) if rng.random() < 0.9 else chosen(rng, CELLS)
            lines.append("\t".join(row if rng.random() < 0.97 else row[:-1]))
        lines.append("")
    data = chosen(rng, ["\n", "\r\n"]).join(lines).encode(errors="replace")
    case = ["import gzip", "from tests.fuzz.judge import check_text", f"data = bytearray({data!r})"]
    case += mutations(rng, len(data)) if data and rng.random() < 0.4 else []
    if rng.random() < 0.15:
        suffix += ".gz"
        case += ["data = bytearray(gzip.compress(data))", *(mutations(rng, 60) if rng.random() < 0.7 else [])]
    return "\n".join([*case, f"check_text(data, {suffix!r})"]) + "\n"
