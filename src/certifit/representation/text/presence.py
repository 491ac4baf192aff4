"""Which words texts have: those that most texts have, and whether a text has each."""

from __future__ import annotations

import numpy as np

from certifit._types import Array, Matrix
from certifit.representation.basis.blocks import with_data
from certifit.representation.text.reading import SPOKEN, Reader, Texts, Vocabulary
from certifit.representation.text.weighting import document_frequency, frequent_terms

__all__ = ["frequent_words", "presence"]


def frequent_words(texts: Texts, weight: Array, share: float, limit: int) -> tuple[list[str], float]:
    """The words in at least this share of the texts, the most frequent first (equal ones by alphabet), and how many a text has.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.representation.text.presence import frequent_words
    >>> frequent_words(["good food", "bad food", None], np.ones(3), 0.0, 2)
    (['food', 'bad'], 1.0)
    """
    vocabulary, counts = Reader(pattern=SPOKEN).learn(texts)
    mass, total = document_frequency(counts, weight), float(weight.sum())
    kept = frequent_terms(mass, mass, total, least=share * total, limit=limit)
    kept = kept[np.argsort(-mass[kept], kind="stable")]
    return vocabulary.terms[kept].tolist(), float(mass[kept].sum()) / total


def presence(texts: Texts, words: list[str]) -> Matrix:
    """Which of the words each text has, as a sparse matrix of ones.

    Examples
    --------
    >>> from certifit.representation.text.presence import presence
    >>> presence(["good food", None], ["food", "bad", "good"]).toarray()
    array([[1., 0., 1.],
           [0., 0., 0.]])
    """
    counts = Reader(pattern=SPOKEN).count(texts, Vocabulary.of(words))
    return with_data(counts, np.ones(counts.data.shape[0]))
