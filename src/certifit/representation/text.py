"""Text as numbers: a bag of the most frequent words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from certifit._types import Array, Matrix

__all__ = ["BagOfWords", "words_of"]

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def words_of(text: str) -> list[str]:
    """The words of a text in lower case: runs of letters and digits, with an apostrophe inside.

    Examples
    --------
    >>> from certifit.representation.text import words_of
    >>> words_of("Don't panic: 42 is THE answer!")
    ["don't", 'panic', '42', 'is', 'the', 'answer']
    """
    return WORD.findall(text.lower())


@dataclass(frozen=True)
class BagOfWords:
    """Which words a text has: one column for each word, in a sparse matrix.

    Attributes
    ----------
    words : tuple of str
        The words, in the order of the columns.
    binary : bool
        1 for a word that is there; otherwise how often it is.

    Examples
    --------
    >>> from certifit.representation.text import BagOfWords
    >>> bag = BagOfWords.learn(["good food", "bad food", "food, good food"], max_words=2)
    >>> bag.words
    ('food', 'good')
    >>> bag.transform(["Good food", "nothing", None]).toarray()
    array([[1., 1.],
           [0., 0.],
           [0., 0.]])
    """

    words: tuple[str, ...]
    binary: bool = True

    @classmethod
    def learn(
        cls,
        texts: Iterable[str | None],
        max_words: int = 200,
        min_share: float = 0.0,
        binary: bool = True,
        weight: Array | None = None,
    ) -> BagOfWords:
        """The words that most texts have.

        Parameters
        ----------
        texts : iterable of str or None
            None is a missing text, which has no words.
        max_words : int, default=200
            At most so many words; ties go by alphabet.
        min_share : float, default=0.0
            Words in a smaller share of the (weighted) texts are left out.
        binary : bool, default=True
            Presence instead of counts.
        weight : array, default=None
            Weight 2 is the text twice.

        Returns
        -------
        BagOfWords
        """
        count: dict[str, float] = {}
        total = 0.0
        for i, text in enumerate(texts):
            w = 1.0 if weight is None else float(weight[i])
            total += w
            for word in set(words_of(text)) if text is not None and w > 0 else ():
                count[word] = count.get(word, 0.0) + w
        # The slack forgives the rounding of sums of weights that are not integers.
        frequent = [word for word, mass in count.items() if mass >= min_share * total * (1 - 1e-12)]
        frequent.sort(key=lambda word: (-count[word], word))
        return cls(tuple(frequent[:max_words]), binary)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {word: j for j, word in enumerate(self.words)}

    def transform(self, texts: Sequence[str | None]) -> Matrix:
        """One row for each text, CSR, float64."""
        place = self._place
        columns: list[int] = []
        ends = [0]
        for text in texts:
            if text is not None:
                found = [place[word] for word in words_of(text) if word in place]
                columns.extend(set(found) if self.binary else found)
            ends.append(len(columns))
        shape = (len(ends) - 1, len(self.words))
        matrix = sp.csr_array(
            (np.ones(len(columns)), np.asarray(columns, dtype=np.int64), np.asarray(ends)), shape=shape
        )
        matrix.sum_duplicates()
        return matrix
