"""Readers of annotated text: CoNLL-U, and plain columns as in the CoNLL tasks.

A broken file is refused with the number of the line.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certifit.files import most_inflated

__all__ = ["Corpus", "read_conll", "read_conllu"]

CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")


@dataclass(frozen=True)
class Corpus:
    """Sentences by column.

    Parameters
    ----------
    columns : dict of str to list of lists of str
        For each column the values of every sentence; all columns have the same shape.
    source : str
        Where it came from.
    lines : list of int
        Line on which each sentence begins.

    Examples
    --------
    >>> from certifit.data.conll import Corpus
    >>> corpus = Corpus({"form": [["a", "b"], ["c"]], "tag": [["x", "y"], ["x"]]}, "memory", [1, 4])
    >>> len(corpus), corpus["form"][1], corpus.n_tokens
    (2, ['c'], 3)
    """

    columns: dict[str, list[list[str]]]
    source: str
    lines: list[int]

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, column: str) -> list[list[str]]:
        if column not in self.columns:
            raise ValueError(f"{self.source} has no column {column!r}; it has {', '.join(self.columns)}.")
        return self.columns[column]

    @property
    def n_tokens(self) -> int:
        """How many tokens there are."""
        return sum(len(sentence) for sentence in next(iter(self.columns.values()), []))

    @property
    def tokens(self) -> list[list[str]]:
        """The words: the column ``form``, or the first one."""
        return self.columns.get("form", next(iter(self.columns.values())))

    @property
    def parents(self) -> list[list[int]]:
        """The tree of each sentence of CoNLL-U: the position of the head of each word, −1 for the root."""
        trees = []
        for at, (heads, line) in enumerate(zip(self["head"], self.lines, strict=True)):
            words = {str(word): word for word in range(len(heads) + 1)}
            for head in heads:
                if head not in words:
                    raise ValueError(
                        f"{self.source}: sentence {at} (line {line}) has the head {head!r}: it must be a word or 0."
                    )
            trees.append([words[head] - 1 for head in heads])
        return trees


def read_conllu(path: str | os.PathLike[str]) -> Corpus:
    r"""Read CoNLL-U: ten columns with tabs, an empty line after each sentence.

    Comments, words of several tokens (``3-4``) and empty nodes (``8.1``) are left out.

    Parameters
    ----------
    path : path
        The file, also compressed (``.gz``).

    Returns
    -------
    Corpus
        With the columns id, form, lemma, upos, xpos, feats, head, deprel, deps and misc.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from certifit import read_conllu
    >>> path = Path(tempfile.mkdtemp()) / "two.conllu"
    >>> row = "{}\t{}\t_\t{}\t_\t_\t0\t_\t_\t_\n"
    >>> _ = path.write_text("# text = Hi you\n" + row.format(1, "Hi", "INTJ") + row.format(2, "you", "PRON") + "\n")
    >>> corpus = read_conllu(path)
    >>> corpus["form"], corpus["upos"]
    ([['Hi', 'you']], [['INTJ', 'PRON']])
    """
    rows: list[list[str]] = []
    found: list[tuple[int, list[list[str]]]] = []
    first = 0
    for number, line in _lines(path):
        if not line.strip():
            if rows:
                found.append((first, rows))
            rows = []
            continue
        if line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != len(CONLLU):
            raise ValueError(
                f"{path}, line {number}: CoNLL-U has 10 columns with tabs between them, this line has {len(cells)}."
            )
        if not cells[0].isdecimal():
            if cells[0].replace("-", "").replace(".", "").isdecimal():
                continue
            raise ValueError(
                f"{path}, line {number}: the first column must be the number of the word; it is {cells[0]!r}."
            )
        if not rows:
            first = number
        if int(cells[0]) != len(rows) + 1:
            raise ValueError(
                f"{path}, line {number}: word {cells[0]} where word {len(rows) + 1} should come; an empty line may be missing."
            )
        if not cells[1]:
            raise ValueError(f"{path}, line {number}: the word has no form.")
        rows.append(cells)
    if rows:
        found.append((first, rows))
    return _corpus(found, CONLLU, path)


def read_conll(
    path: str | os.PathLike[str], columns: Sequence[str] | None = None, separator: str | None = None
) -> Corpus:
    r"""Read columns of tokens and tags, an empty line after each sentence, as in the CoNLL tasks.

    Parameters
    ----------
    path : path
        The file, also compressed (``.gz``).
    columns : sequence of str, optional
        Names of the columns; by default ``form`` for the first, ``tag`` for the last and c1, c2, … between them.
    separator : str, optional
        What lies between columns; by default any white space.

    Examples
    --------
    >>> from tempfile import NamedTemporaryFile
    >>> from certifit import read_conll
    >>> with NamedTemporaryFile("w") as file:
    ...     print("-DOCSTART- O\n\nAnn I-PER\nslept O\n\nOslo I-LOC", file=file, flush=True)
    ...     corpus = read_conll(file.name)
    >>> corpus["form"], corpus["tag"], corpus.lines
    ([['Ann', 'slept'], ['Oslo']], [['I-PER', 'O'], ['I-LOC']], [3, 6])
    """
    if columns is not None and (isinstance(columns, str) or not columns or len(set(columns)) < len(columns)):
        raise ValueError(f"columns must be a list of names, each for one column; got {columns!r}.")
    if separator == "":
        raise ValueError("separator must be what lies between columns, or None for any white space; got ''.")
    rows: list[list[str]] = []
    found: list[tuple[int, list[list[str]]]] = []
    first, width = 0, None if columns is None else len(columns)
    for number, line in _lines(path):
        cells = line.split(separator) if line.strip() else []
        if not cells or cells[0] == "-DOCSTART-":
            if rows:
                found.append((first, rows))
            rows = []
            continue
        if width is None:
            width = len(cells)
        if len(cells) != width:
            raise ValueError(f"{path}, line {number}: {len(cells)} columns where {width} should be: {line!r:.60}.")
        if not rows:
            first = number
        rows.append(cells)
    if rows:
        found.append((first, rows))
    if columns is None:
        count = width or 0
        columns = ["form"] if count == 1 else ["form", *(f"c{k}" for k in range(1, count - 1)), "tag"]
    return _corpus(found, columns, path)


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Numbered lines without their ends; of a compressed file as long as it grows like a text."""
    packed = str(path).endswith(".gz")
    most = most_inflated(Path(path).stat().st_size)
    with gzip.open(path, "rb") if packed else Path(path).open("rb") as file:
        number = read = 0
        try:
            while raw := file.readline(most + 1 - read if packed else -1):
                number, read = number + 1, read + len(raw)
                if packed and read > most:
                    raise ValueError(
                        f"{path} holds more than {most} bytes, far more than a text of its size: if you trust it, unpack it "
                        "with gunzip and give the file that comes out."
                    )
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}, line {number}: not UTF-8 ({error.reason}).") from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path}, line {number + 1}: the compressed file is broken ({error}).") from error


def _corpus(found: list[tuple[int, list[list[str]]]], names: Sequence[str], path: Any) -> Corpus:
    if not found:
        raise ValueError(f"{path} has no sentences.")
    columns = {name: [[cells[k] for cells in rows] for _, rows in found] for k, name in enumerate(names)}
    return Corpus(columns, str(path), [line for line, _ in found])
