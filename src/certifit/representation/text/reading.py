"""Texts in pieces: which terms a text has, and how often.

Words and characters are told apart in `native/text/`; a pattern of the user's own is Python's `re`, and only the counting is
native then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

import certifit._native.text as _text
from certifit._types import Array, Matrix
from certifit.names import stored

__all__ = ["SPOKEN", "TWO_LETTERS", "Reader", "Texts", "Vocabulary", "words_of"]

TWO_LETTERS = r"\b\w\w+\b"
"""Words of two letters, digits or underscores at least: scikit-learn's rule."""
SPOKEN = r"[^\W_]+(?:['’][^\W_]+)*"
"""Runs of letters and digits, with an apostrophe inside."""
UNITS = {TWO_LETTERS: "words", f"(?u){TWO_LETTERS}": "words", SPOKEN: "spoken"}
CHARACTERS = {"char": "characters", "char_wb": "within_words"}
Texts = Sequence[str | None]
_SPOKEN = re.compile(SPOKEN)


def words_of(text: str) -> list[str]:
    """The words of a text in lower case: runs of letters and digits, with an apostrophe inside.

    Examples
    --------
    >>> from certifit.representation.text.reading import words_of
    >>> words_of("Don't panic: 42 is THE answer!")
    ["don't", 'panic', '42', 'is', 'the', 'answer']
    """
    return _SPOKEN.findall(text.lower())


@stored("Vocabulary")
@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Terms, in the order of the columns."""

    terms: Array

    @classmethod
    def of(cls, terms: Sequence[str]) -> Vocabulary:
        """From any sequence of different terms."""
        array = np.empty(len(terms), dtype=object)
        array[:] = list(terms)
        return cls(array)

    @cached_property
    def table(self) -> Any:
        """The native table in which terms are found."""
        return _text.Terms(self.terms.tolist())

    def __len__(self) -> int:
        return int(self.terms.shape[0])


@dataclass(frozen=True)
class Reader:
    """How a text is read.

    Attributes
    ----------
    analyzer : {"word", "char", "char_wb"} or callable
        Terms are words, characters, or characters within words; or what a function makes of a text.
    ngram_range : pair of int
        Least and most pieces of a term.
    lowercase : bool
        Whether a text is put into lower case first.
    pattern : str
        What is a word.
    stop_words : tuple of str
        Words to leave out, before n-grams are made.

    Examples
    --------
    >>> from certifit.representation.text.reading import Reader
    >>> vocabulary, counts = Reader(ngram_range=(1, 2)).learn(["To be or not to be", None])
    >>> vocabulary.terms.tolist()
    ['be', 'be or', 'not', 'not to', 'or', 'or not', 'to', 'to be']
    >>> counts.toarray().tolist()
    [[2, 1, 1, 1, 1, 1, 2, 2], [0, 0, 0, 0, 0, 0, 0, 0]]
    """

    analyzer: str | Callable[[str], Any] = "word"
    ngram_range: tuple[int, int] = (1, 1)
    lowercase: bool = True
    pattern: str = TWO_LETTERS
    stop_words: tuple[str, ...] = field(default=())

    def learn(self, texts: Texts) -> tuple[Vocabulary, Matrix]:
        """All terms, in the order of their code points, and how often each text has them, CSR, int32."""
        found = _text.Terms([])
        ends, columns, counts = _text.count(*self._pieces(texts), found, True)
        order = found.order()
        place = np.empty_like(order)
        place[order] = np.arange(order.shape[0], dtype=order.dtype)
        matrix = _csr(counts, place[columns], ends, order.shape[0])
        matrix.sort_indices()
        return Vocabulary(Vocabulary.of(found.listed()).terms[order]), matrix

    def count(self, texts: Texts, vocabulary: Vocabulary) -> Matrix:
        """How often each text has each term of a vocabulary, CSR, int32."""
        ends, columns, counts = _text.count(*self._pieces(texts), vocabulary.table, False)
        matrix = _csr(counts, columns, ends, len(vocabulary))
        matrix.sort_indices()
        return matrix

    def hashed(self, texts: Texts, columns: int, *, signs: bool) -> Matrix:
        """Sums of ±1, or counts, over the terms that hash to each column, CSR, int32."""
        ends, places, sums = _text.hash(*self._pieces(texts), columns, signs)
        return _csr(sums, places, ends, columns)

    def _pieces(self, texts: Texts) -> tuple[Any, Any]:
        """What the native reader takes, and its rule: a tuple of texts, or a list of lists of words."""
        least, most = map(int, self.ngram_range)
        stop = _text.Terms(list(self.stop_words)) if self.stop_words else None
        if callable(self.analyzer):
            cut = [[] if text is None else self._words(self.analyzer(text)) for text in texts]
            return cut, _text.Rule("words", 1, 1, False, None)
        if self.analyzer != "word":
            return tuple(texts), _text.Rule(CHARACTERS[self.analyzer], least, most, self.lowercase, None)
        unit = UNITS.get(self.pattern)
        if unit is not None:
            return tuple(texts), _text.Rule(unit, least, most, self.lowercase, stop)
        find = re.compile(self.pattern).findall
        cut = [[] if text is None else find(text.lower() if self.lowercase else text) for text in texts]
        return cut, _text.Rule("words", least, most, False, stop)

    def _words(self, found: Any) -> list[str]:
        """What a function made of a text."""
        words = list(found)
        for word in words:
            if not isinstance(word, str):
                raise TypeError(f"analyzer must give texts (str) for each text; it gave {word!r}.")
        return words


def _csr(values: Array, columns: Array, ends: Array, width: int) -> Matrix:
    """The matrix, with narrow pointers where they reach."""
    if ends[-1] < np.iinfo(np.int32).max:
        ends = ends.astype(np.int32)
    return sp.csr_array((values, columns, ends), shape=(ends.shape[0] - 1, width))
