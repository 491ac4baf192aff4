"""Features of tokens by templates: ``"w[0]"``, ``"w[-1]|w[0]"``, ``"w[0].suffix(3)"``, ``"w[1].shape"``.

    template   term | term | …            the values of all terms together are one feature
    term       column[offset].function…   a column of the token at that distance; functions change its text

Columns: ``w`` for tokens that are text, the keys for tokens that are mappings, ``c0``, ``c1``, … for tuples.

Text is touched once for each *distinct* token: from there on a value is a number, a term is a look-up, an offset a
shift and a conjunction arithmetic. A corpus of a million tokens costs little more than its vocabulary.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain, count
from operator import itemgetter
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.names import stored
from certifit.representation.sequences.positions import SparseRows

__all__ = ["FUNCTIONS", "TAGGING", "Template", "TemplateFeatures", "Term"]

BEFORE, AFTER = "<s>", "</s>"
"""Values of terms that look beyond the ends of a sequence."""


class _Shapes(dict[int, str]):
    """The shape of each letter, found when it is first seen."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        kind = "X" if letter.isupper() else "0" if letter.isdigit() else "x" if letter.isalpha() else letter
        self[code] = kind
        return kind


_SHAPES = _Shapes()
_RUNS = re.compile(r"(.)\1+", re.DOTALL)
_DIGITS = re.compile(r"\d")


def shape(text: str) -> str:
    """Letters to x and X, digits to 0, the rest as it is.

    Examples
    --------
    >>> from certifit.representation.sequences.templates import shape
    >>> shape("McDonald-2")
    'XxXxxxxx-0'
    """
    return text.translate(_SHAPES)


def brief(text: str) -> str:
    """The shape with repetitions written once: ``XxXx-0``."""
    return _RUNS.sub(_once, text.translate(_SHAPES))


def _once(found: re.Match[str]) -> str:
    return found[1]


FUNCTIONS: dict[str, Callable[..., Callable[[str], str]]] = {
    "lower": lambda: str.lower,
    "shape": lambda: shape,
    "brief": lambda: brief,
    "prefix": lambda n: itemgetter(slice(None, n)),
    "suffix": lambda n: itemgetter(slice(-n, None)),
    "digits": lambda: lambda text: _DIGITS.sub("0", text),
    "length": lambda: lambda text: str(min(len(text), 20)),
}
"""What a term may do to the text of its token: makers of functions; prefix and suffix take a number of letters."""
_NUMBERED = {"prefix", "suffix"}
_TERM = re.compile(r"(?P<column>[A-Za-z_]\w*)\[(?P<offset>[+-]?\d+)\](?P<calls>(?:\.\w+(?:\(\d+\))?)*)")
_CALL = re.compile(r"\.(\w+)(?:\((\d+)\))?")

TAGGING = (
    "w[0]",
    "w[0].lower",
    *(f"w[0].suffix({n})" for n in (1, 2, 3, 4)),
    *(f"w[0].prefix({n})" for n in (1, 2, 3)),
    "w[0].brief",
    "w[-1]",
    "w[1]",
    "w[-2]",
    "w[2]",
    "w[-1]|w[0]",
    "w[0]|w[1]",
    "w[-1].brief",
    "w[1].brief",
)
"""Word, affixes, shapes and neighbors: the features of tokens that are text, unless others are asked for."""


class Term:
    """One term of a template."""

    def __init__(self, text: str, template: str, argument: str) -> None:
        found = _TERM.fullmatch(text.strip())
        if found is None:
            raise ValueError(
                f"{argument}: {template!r} is not a template: {text.strip()!r} should look like w[0], w[-1].lower or "
                "w[0].suffix(3); terms are joined by |."
            )
        if len(found["offset"]) > 9:
            raise ValueError(f"{argument}: {template!r} looks {found['offset']} tokens away; no sequence is that long.")
        self.column, self.offset = found["column"], int(found["offset"])
        self.calls: tuple[tuple[str, int | None], ...] = tuple(
            (name, None if number is None or number == "" else int(number))
            for name, number in _CALL.findall(found["calls"])
        )
        for name, number in self.calls:
            if name not in FUNCTIONS:
                raise ValueError(
                    f"{argument}: {template!r} has the unknown function {name!r}; there are {', '.join(FUNCTIONS)}."
                )
            if (name in _NUMBERED) != (number is not None) or number == 0:
                wanted = f"{name}(n) with n ≥ 1" if name in _NUMBERED else f"{name} without a number"
                raise ValueError(f"{argument}: {template!r} must use {wanted}.")

    @property
    def source(self) -> tuple[Any, ...]:
        """What it reads, wherever: terms that differ in the offset only share their vocabulary."""
        return (self.column, self.calls)


def changed(texts: list[str], calls: tuple[tuple[str, int | None], ...]) -> list[str]:
    """The texts after the functions of a term."""
    for name, number in calls:
        texts = list(map(FUNCTIONS[name]() if number is None else FUNCTIONS[name](number), texts))
    return texts


class Template:
    """Terms whose values together are one feature."""

    def __init__(self, text: Any, argument: str = "features") -> None:
        if not isinstance(text, str):
            raise TypeError(f"{argument} must be templates such as 'w[0]'; got {text!r} of type {type(text).__name__}.")
        self.text = text
        self.terms = [Term(part, text, argument) for part in text.split("|")]


@stored("TemplateFeatures")
class TemplateFeatures:
    """The features that templates find in sequences.

    Parameters
    ----------
    templates : iterable of str
    min_count : int, default=1
        Features that occur less often are left out.
    hashing : int or None, default=None
        Number of buckets; features are then put into buckets by their hash, and no vocabulary is kept.
    argument : str, default="features"
        What messages call the templates.

    Examples
    --------
    >>> from certifit.representation.sequences.templates import TemplateFeatures
    >>> found = TemplateFeatures(["w[0].lower", "w[-1]|w[0]"])
    >>> rows = found.fit([["The", "cat"], ["the", "dog"]])
    >>> [found.name(k) for k in range(5)]
    ['w[0].lower=the', 'w[0].lower=cat', 'w[0].lower=dog', 'w[-1]|w[0]=<s>|The', 'w[-1]|w[0]=The|cat']
    >>> rows.feature.tolist()
    [0, 3, 1, 4, 0, 5, 2, 6]
    """

    def __init__(
        self, templates: Iterable[str], min_count: int = 1, hashing: int | None = None, argument: str = "features"
    ) -> None:
        self.templates, self.argument = list(templates), argument
        self.min_count, self.hashing = min_count, hashing
        self.vocabulary: list[list[str]] = []
        """Values of each source, in the order in which they came."""
        self.codes: list[list[Array]] = []
        """For each template the codes that are known: of the conjunction of two terms, of that with the third, …"""
        self.kept: list[Array] = []
        """For each template the numbers of the codes that became features."""
        self.width = 0

    @cached_property
    def parsed(self) -> list[Template]:
        """The templates, read."""
        return [Template(text, self.argument) for text in self.templates]

    @cached_property
    def sources(self) -> list[tuple[Any, ...]]:
        """What the terms read, each once."""
        return list(dict.fromkeys(term.source for template in self.parsed for term in template.terms))

    @cached_property
    def index(self) -> list[dict[str, int]]:
        """The vocabularies as look-up tables."""
        return [{value: k for k, value in enumerate(values)} for values in self.vocabulary]

    def fit(self, sequences: Sequence[Sequence[Any]]) -> SparseRows:
        """Learn which features there are, and find them."""
        return self._rows(sequences, learn=self.hashing is None)

    def transform(self, sequences: Sequence[Sequence[Any]]) -> SparseRows:
        """Find the features that are known; others are left out."""
        return self._rows(sequences, learn=False)

    def name(self, feature: int) -> str:
        """What a feature means."""
        if self.hashing is not None:
            return f"bucket {feature}"
        starts = np.cumsum([0, *(kept.shape[0] for kept in self.kept)])
        which = int(np.searchsorted(starts, feature, side="right")) - 1
        template = self.parsed[which]
        code = int(self.kept[which][feature - starts[which]])
        values: list[str] = []
        for known, term in zip(reversed(self.codes[which]), reversed(template.terms[1:]), strict=True):
            code, last = divmod(int(known[code]), self._size(term))
            values.append(self._text(term, last))
        values.append(self._text(template.terms[0], code))
        return f"{template.text}={'|'.join(reversed(values))}"

    def _size(self, term: Term) -> int:
        return len(self.vocabulary[self.sources.index(term.source)]) + 2

    def _text(self, term: Term, code: int) -> str:
        values = self.vocabulary[self.sources.index(term.source)]
        return values[code] if code < len(values) else (BEFORE, AFTER)[code - len(values)]

    def _rows(self, sequences: Sequence[Sequence[Any]], learn: bool) -> SparseRows:
        lengths = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
        total = int(lengths.sum())
        ends = np.repeat(np.cumsum(lengths), lengths)
        begins = ends - np.repeat(lengths, lengths)
        here = np.arange(total)
        columns = {
            name: _distinct(sequences, name, total)
            for name in dict.fromkeys(term.column for template in self.parsed for term in template.terms)
        }
        if learn:
            self.vocabulary, self.codes, self.kept = [], [], []
            self.__dict__.pop("index", None)
        known = [self._source(columns, source, learn) for source in self.sources]
        found = np.empty((total, len(self.parsed)), dtype=np.int32)
        width = 0
        cache: dict[tuple[int, int], Array] = {}
        for j, template in enumerate(self.parsed):
            parts = []
            for term in template.terms:
                at = self.sources.index(term.source)
                if (at, term.offset) not in cache:
                    cache[at, term.offset] = _shifted(known[at], term.offset, here, begins, ends)
                parts.append(cache[at, term.offset])
            if self.hashing is not None:
                found[:, j] = _buckets(parts, j, self.hashing)
                continue
            code = self._joined(j, parts, template, learn)
            found[:, j] = self._feature(j, code, width, learn)
            width += self.kept[j].shape[0]
        self.width = self.hashing or width
        there = found >= 0
        row = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
        rows = SparseRows(row, found[there], None, self.width)
        return rows if self.hashing is None else merged(rows)

    def _source(self, columns: dict[str, tuple[list[str], Array]], source: tuple[Any, ...], learn: bool) -> Array:
        """The code of the source's value at every position: its number, or its hash; −1 where it is unknown."""
        column, calls = source
        texts, which = columns[column]
        values = changed(texts, calls)
        if self.hashing is not None:
            hashes = np.fromiter(
                (zlib.crc32(value.encode("utf-8", "surrogatepass")) for value in values), np.uint64, len(values)
            )
            return hashes[which]
        if learn:
            table: defaultdict[str, int] = defaultdict(count().__next__)
            numbers = np.fromiter(map(table.__getitem__, values), np.int64, len(values))
            self.vocabulary.append(list(table))
        else:
            index = self.index[self.sources.index(source)]
            numbers = np.fromiter((index.get(value, -1) for value in values), np.int64, len(values))
        codes = numbers[which]
        # The ends of the sequence are two more values, after those of the vocabulary.
        size = len(self.vocabulary[self.sources.index(source)])
        return np.append(codes, [size, size + 1])

    def _joined(self, j: int, parts: list[Array], template: Template, learn: bool) -> Array:
        """The code of the conjunction of all terms; −1 where it is unknown."""
        if learn:
            self.codes.append([])
        code = parts[0]
        for k, term in enumerate(template.terms[1:]):
            both = np.where((code < 0) | (parts[k + 1] < 0), -1, code * self._size(term) + parts[k + 1])
            if learn:
                distinct, first, number = np.unique(both, return_index=True, return_inverse=True)
                order = np.argsort(first, kind="stable")  # numbered as they come, like the values
                rank = np.empty_like(order)
                rank[order] = np.arange(order.shape[0])
                self.codes[j].append(distinct[order])
                code = rank[number]
            else:
                known = self.codes[j][k]
                sorter = np.argsort(known, kind="stable")
                at = np.minimum(np.searchsorted(known, both, sorter=sorter), max(known.shape[0] - 1, 0))
                hit = sorter[at] if known.shape[0] else np.zeros_like(both)
                code = (
                    np.where((known[hit] == both) & (both >= 0), hit, -1) if known.shape[0] else np.full_like(both, -1)
                )
        return code

    def _feature(self, j: int, code: Array, base: int, learn: bool) -> Array:
        """Numbers of the features, from `base` on; −1 for codes that are none."""
        if learn:
            counts = np.bincount(code[code >= 0])
            self.kept.append(np.flatnonzero(counts >= max(self.min_count, 1)))
        kept = self.kept[j]
        size = int(kept[-1]) + 1 if kept.shape[0] else 0
        number = np.full(size + 1, -1, dtype=np.int32)
        number[kept] = base + np.arange(kept.shape[0])
        return number[np.where((code < 0) | (code > size), size, code)]


def _distinct(sequences: Sequence[Sequence[Any]], column: str, total: int) -> tuple[list[str], Array]:
    """The distinct texts of a column, and the number of the text at every position."""
    table: defaultdict[Any, int] = defaultdict(count().__next__)
    tokens = chain.from_iterable(sequences)
    if column == "w" and isinstance(sequences[0][0], str):
        which = np.fromiter(map(table.__getitem__, tokens), np.int64, total)
    else:
        which = np.fromiter((table[_cell(token, column)] for token in tokens), np.int64, total)
    for text in table:
        if not isinstance(text, str):
            raise TypeError(f"X must hold text where a template reads it; column {column!r} has {text!r}.")
    return list(table), which


def _cell(token: Any, column: str) -> Any:
    """The text of a token in a column."""
    if isinstance(token, str):
        if column == "w":
            return token
        raise ValueError(
            f"features: a template reads the column {column!r}, but the tokens are text: their column is w."
        )
    try:
        if isinstance(token, (tuple, list)):
            return token[int(column.removeprefix("c"))]
        return token[column]
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise ValueError(
            f"features: a template reads the column {column!r}, which the token {token!r} does not have."
        ) from error


def _shifted(code: Array, offset: int, here: Array, begins: Array, ends: Array) -> Array:
    """The codes of the tokens at a distance; hashes get the ends of the sequence from the hashes of their names."""
    if code.dtype == np.uint64:
        ends_of = np.array([zlib.crc32(BEFORE.encode()), zlib.crc32(AFTER.encode())], dtype=np.uint64)
        code = np.append(code, ends_of)
    at = here + offset
    total = here.shape[0]
    return code[np.where(at < begins, total, np.where(at >= ends, total + 1, at))]


def _buckets(parts: list[Array], salt: int, buckets: int) -> Array:
    """Bucket of the conjunction: hashes mixed one after the other (splitmix64)."""
    mixed = np.full(parts[0].shape, salt + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for part in parts:
            mixed = (mixed ^ part) + np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(31)
    return (mixed % np.uint64(buckets)).astype(np.int64)


def merged(rows: SparseRows) -> SparseRows:
    """Features that fell into one bucket at the same position, added up."""
    import scipy.sparse as sp

    value = np.ones(rows.feature.shape[0]) if rows.value is None else rows.value
    return SparseRows.of(sp.csr_array((value, rows.feature, rows.row), shape=rows.shape))
