"""A bag of words: each term of the texts is a column, and the order of the words is forgotten."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix
from certifit.data.gate import check_sample_weight
from certifit.data.texts import check_texts
from certifit.parameters import (
    Any_,
    Choice,
    Declared,
    Either,
    Fitted,
    Flag,
    Function,
    Integer,
    Nothing,
    OneOf,
    Parameter,
    Real,
    check_parameters,
)
from certifit.representation.text.reading import TWO_LETTERS, Reader, Vocabulary
from certifit.representation.text.weighting import (
    document_frequency,
    frequent_terms,
    inverse_frequency,
    weighted_counts,
)

__all__ = ["BagOfWords"]

TEXTS = "X : sequence of str, or frame of one column\n    The texts."


class BagOfWords(Declared, TransformerMixin, BaseEstimator, takes={"X": TEXTS}):
    """Texts as rows of a sparse matrix: how often each text has each term.

    A term is a word, a run of neighboring words, or a run of characters. With c the count of a term in a text, n the number of
    texts and df the number of those that have the term, an entry is

        counts    c
        binary    1 if c > 0
        tfidf     c · (1 + ln((1 + n) / (1 + df))),    each row then divided by its norm

    with 1 + ln c in place of c if `sublinear`. Words are told apart and counted in native code, ASCII as it lies in memory.
    With `hashing` nothing is learned but the rarity: a term's column is its hash, and terms that meet in a column add up with
    signs that cancel on average. X is a list, an array or a series of texts, or a frame of one column; a missing text (None, NaN)
    has no words. Sample weights count texts: weight 2 is the text twice.

    Examples
    --------
    >>> from certifit import BagOfWords
    >>> bag = BagOfWords(ngram_range=(1, 2), min_df=2).fit(["good food", "bad food", "Good food, and good wine"])
    >>> bag.get_feature_names_out()
    array(['food', 'good', 'good food'], dtype=object)
    >>> bag.transform(["Good FOOD is good", "wine", None]).toarray()
    array([[1., 2., 1.],
           [0., 0., 0.],
           [0., 0., 0.]])
    >>> BagOfWords(analyzer="char", ngram_range=(2, 2), values="binary").fit(["abab"]).vocabulary_
    {'ab': 0, 'ba': 1}
    """

    values: str = OneOf(("counts", "binary", "tfidf"), "What an entry is: a count, presence, or count times rarity.")
    analyzer: str | Callable[[str], Any] = Parameter(
        "word",
        Either(Choice("word", "char", "char_wb"), Function()),
        "Terms are words, characters, or characters within words, which then have a blank on either side; or a function that "
        "gives the terms of a text.",
    )
    ngram_range: tuple[int, int] = Parameter(
        (1, 1),
        Any_("pair of int", wrong=(3, "12", (0, 1), (2, 1), (1, 2, 3), (1.0, 2.0), None)),
        "Least and most words, or characters, in a term.",
    )
    lowercase: bool = Parameter(True, Flag(), "Whether texts are put into lower case first.")
    pattern: str = Parameter(
        TWO_LETTERS,
        Any_("regular expression", wrong=(3, "(", "(a)(b)", None)),
        "What is a word. The default, two letters or digits at least, is told apart by native code.",
    )
    stop_words: Iterable[str] | None = Parameter(
        None,
        Any_("collection of str or None", wrong=("the", 3, [3])),
        "Words to leave out, in lower case if the texts are; neighbors of such a word are then neighbors of each other.",
    )
    min_df: float = Parameter(
        1,
        Either(Integer(1), Real(0, 1)),
        "Terms in fewer texts are left out: a number of texts, or a share if it is a float.",
    )
    max_df: float = Parameter(1.0, Either(Integer(1), Real(0, 1)), "The same for terms in more texts.")
    max_features: int | None = Parameter(
        None,
        Either(Integer(1), Nothing()),
        "At most so many terms, those of the largest sum of counts, or of presences; of equal ones the first by alphabet.",
    )
    vocabulary: Iterable[str] | Mapping[str, int] | None = Parameter(
        None,
        Any_("sequence of str, mapping of str to column or None", wrong=("the", 3, [3], ["a", "a"], {"a": 1}, [])),
        "The terms, in the order of the columns, instead of those of the texts.",
    )
    hashing: int | None = Parameter(
        None, Either(Integer(1, 2**31 - 1), Nothing()), "So many columns, chosen by hash; None remembers the terms."
    )
    alternate_sign: bool = Parameter(True, Flag(), "Whether hashed terms add up with signs; presence never has any.")
    sublinear: bool = Parameter(False, Flag(), "1 + ln c in place of a count c.")
    norm: str | None = Parameter(
        "auto",
        Choice("auto", "l1", "l2", None),
        'Norm that rows are divided by; "auto" is l2 for tfidf, none otherwise.',
    )

    terms_: Array = Fitted("array of str of shape (n_terms,)", "The terms, in the order of the columns; not if hashed.")
    document_frequency_: Array = Fitted(
        "array of shape (n_columns,)", "Number of training texts, by weight, that have each term or column."
    )
    idf_: Array = Fitted("array of shape (n_columns,)", 'Rarity, only with ``values="tfidf"``.')

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the terms and how many texts have them."""
        self._learn(X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Matrix:
        """`fit`, and the rows of the same texts, which are read once."""
        return self._valued(self._learn(X, sample_weight))

    def transform(self, X: Any) -> Matrix:
        """One row for each text: CSR, float64."""
        check_is_fitted(self)
        texts, reader = check_texts(X), self._reader()
        if self.hashing is not None:
            counts = reader.hashed(texts, int(self.hashing), signs=self._signs())
        else:
            counts = reader.count(texts, self._vocabulary)
        return self._valued(counts)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The terms; of hashed columns their numbers."""
        check_is_fitted(self)
        if self.hashing is None:
            return self.terms_
        return np.asarray([f"hash{j}" for j in range(int(self.hashing))], dtype=object)

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Column of each term."""
        check_is_fitted(self)
        return {term: j for j, term in enumerate(self.terms_)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.input_tags.allow_nan = True
        return tags

    takes_documents = True
    weights_are_counts = True

    # Learning

    def _learn(self, X: Any, sample_weight: Any) -> Matrix:
        """Counts of the training texts; the terms, and their frequency, are kept."""
        check_parameters(self)
        reader, given = self._reader(), self._given()
        texts = check_texts(X)
        if not texts:
            raise ValueError("X has no texts (0 samples): give at least one.")
        weight = check_sample_weight(sample_weight, len(texts))
        if self.hashing is not None:
            counts = reader.hashed(texts, int(self.hashing), signs=self._signs())
        elif given is not None:
            self._vocabulary = given
            counts = reader.count(texts, given)
        else:
            counts = self._choose(*reader.learn(texts), weight)
        if self.hashing is None:
            self.terms_ = self._vocabulary.terms
        self.document_frequency_ = document_frequency(counts, weight)
        if self.values == "tfidf":
            self.idf_ = inverse_frequency(self.document_frequency_, float(weight.sum()))
        return counts

    def _choose(self, found: Vocabulary, counts: Matrix, weight: Array) -> Matrix:
        """The terms within the bounds; the counts of these."""
        frequency, total = document_frequency(counts, weight), float(weight.sum())
        least, most = (
            float(bound) if isinstance(bound, Integral) else bound * total for bound in (self.min_df, self.max_df)
        )
        if most < least:
            raise ValueError(
                f"max_df corresponds to < documents than min_df: max_df={self.max_df!r} is {most:g} of {total:g} texts, "
                f"min_df={self.min_df!r} is {least:g}."
            )
        sums = frequency if self.values == "binary" else counts.T @ weight
        kept = frequent_terms(frequency, sums, total, least=least, most=most, limit=self.max_features)
        if not kept.shape[0]:
            if not len(found):
                raise ValueError("X gives an empty vocabulary; perhaps the texts only contain stop words.")
            raise ValueError("After pruning, no terms remain. Try a lower min_df or a higher max_df.")
        if kept.shape[0] == len(found):
            self._vocabulary = found
            return counts
        self._vocabulary = Vocabulary(found.terms[kept])
        return counts[:, kept]

    # Reading and weighting

    def _reader(self) -> Reader:
        pair, stop = self.ngram_range, self.stop_words
        if not (
            isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(n, Integral) for n in pair)
        ) or not (1 <= pair[0] <= pair[1]):
            raise ValueError(
                f"ngram_range must be a pair of integers (least, most) with 1 <= least <= most; got {pair!r}."
            )
        try:
            groups = re.compile(self.pattern).groups
        except (TypeError, re.error) as error:
            raise ValueError(f"pattern must be a regular expression; got {self.pattern!r} ({error}).") from error
        if groups > 1:
            raise ValueError(f"pattern must have one group at most, the word; {self.pattern!r} has {groups}.")
        return Reader(
            self.analyzer, (int(pair[0]), int(pair[1])), bool(self.lowercase), self.pattern, _words("stop_words", stop)
        )

    def _given(self) -> Vocabulary | None:
        """The vocabulary that was given."""
        if self.vocabulary is None:
            return None
        if isinstance(self.vocabulary, Mapping):
            columns = dict(self.vocabulary)
            if sorted(columns.values(), key=repr) != sorted(range(len(columns)), key=repr):
                raise ValueError("vocabulary must number its terms 0, 1, 2, …, each once.")
            terms = _words("vocabulary", sorted(columns, key=columns.__getitem__))
        else:
            terms = _words("vocabulary", self.vocabulary)
        if not terms:
            raise ValueError("vocabulary is empty: give at least one term, or None to learn the terms.")
        if len(set(terms)) < len(terms):
            twice = next(term for k, term in enumerate(terms) if term in terms[:k])
            raise ValueError(f"vocabulary must have each term once; {twice!r} is there twice.")
        return Vocabulary.of(terms)

    def _signs(self) -> bool:
        return bool(self.alternate_sign) and self.values != "binary"

    def _valued(self, counts: Matrix) -> Matrix:
        """Entries as `values` says, float64."""
        counts = counts.astype(np.float64)
        if self.values == "binary":
            counts.data[:] = 1.0
        norm = ("l2" if self.values == "tfidf" else None) if self.norm == "auto" else self.norm
        inverse = self.idf_ if self.values == "tfidf" else None
        sublinear = bool(self.sublinear) and self.values != "binary"
        if not sublinear and inverse is None and norm is None:
            return counts
        return weighted_counts(counts, sublinear=sublinear, inverse=inverse, norm=norm)


def _words(name: str, given: Iterable[Any] | None) -> tuple[str, ...]:
    """The words of a parameter; a single text is not a collection of words."""
    if given is None:
        return ()
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be a collection of str; got {given!r}.")
    words = []
    for word in given:
        if not isinstance(word, str):
            raise TypeError(f"{name} must hold texts (str); got {word!r}.")
        words.append(word)
    return tuple(words)
