"""``sklearn.feature_extraction.text``, as far as Certifit has it: terms of texts, counted, weighted or hashed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import sklearn.feature_extraction.text as theirs
from sklearn import get_config
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from certifit._types import Array, Matrix, is_sparse
from certifit.representation.text.bag import BagOfWords
from certifit.representation.text.weighting import document_frequency, inverse_frequency, weighted_counts
from certifit.sklearn.translation import By, Data, DropIn, Here, Of, Same, Table, fresh, same

__all__ = ["CountVectorizer", "HashingVectorizer", "TfidfTransformer", "TfidfVectorizer"]


def _reading(value: Any, data: Data) -> dict[str, Any]:
    """How ours reads what `documents` has made of theirs: natively, unless a function of the user's own cuts the words."""
    asked = data.estimator
    least, most = asked.ngram_range
    if least > most:
        raise ValueError(
            f"Invalid value for ngram_range={asked.ngram_range} lower boundary larger than the upper boundary."
        )
    if callable(value):
        return {"analyzer": value}
    if value == "word":
        asked.build_analyzer()  # judges the pattern and the stop words
        if asked.tokenizer is not None:
            return {"analyzer": clone(asked).set_params(input="content").build_analyzer()}
    stop = asked.get_stop_words() if value == "word" else None
    return {
        "analyzer": value,
        "ngram_range": (least, most),
        "lowercase": asked.lowercase and not _prepared(asked),
        "pattern": asked.token_pattern if value == "word" else r"\w+",
        "stop_words": None if stop is None else sorted(stop),
    }


def _prepared(asked: Any) -> bool:
    """Whether a function changes the texts before they are read."""
    return asked.preprocessor is not None or bool(asked.strip_accents)


def _vocabulary(value: Any, data: Data) -> Any:
    """The given terms in the order of their columns; raises in scikit-learn's words."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        columns = set(value.values())
        if len(columns) != len(value):
            raise ValueError("Vocabulary contains repeated indices.")
        absent = next((j for j in range(len(value)) if j not in columns), None)
        if absent is not None:
            raise ValueError(f"Vocabulary of size {len(value)} doesn't contain index {absent}.")
        terms = sorted(value, key=value.__getitem__)
    else:
        terms = sorted(value) if isinstance(value, set) else list(value)
        seen: set[str] = set()
        for term in terms:
            if term in seen:
                raise ValueError(f"Duplicate term in vocabulary: {term!r}")
            seen.add(term)
    if not terms:
        raise ValueError("empty vocabulary passed to fit")
    return terms


BEFORE = Here("texts are read, decoded and prepared before they are counted")
WITH = Here("read together with ``analyzer``")
AFTER = Here("the matrix is given this way")
READING: Table = {
    "input": BEFORE,
    "encoding": BEFORE,
    "decode_error": BEFORE,
    "strip_accents": BEFORE,
    "preprocessor": BEFORE,
    "lowercase": WITH,
    "tokenizer": WITH,
    "stop_words": WITH,
    "token_pattern": WITH,
    "ngram_range": WITH,
    "analyzer": By(_reading, "the same; words are cut by native code, or by the function or pattern given", None),
    "binary": Of(lambda value, data: "binary" if value else "counts", '``values="binary"``', "values"),
    "dtype": AFTER,
}
COUNTING: Table = {
    **READING,
    **same("max_df", "min_df"),
    "max_features": Of(lambda value, data: value, "the same; of equal sums the first by alphabet"),
    "vocabulary": By(_vocabulary, "the same, in the order of its columns"),
}


class _Texts(DropIn):
    """Texts in place of rows."""

    _ours = BagOfWords

    def _documents(self, raw: Any) -> list[str]:
        """Texts that are decoded and prepared."""
        if isinstance(raw, str):
            raise ValueError("Iterable over raw text documents expected, string object received.")
        asked: Any = self
        as_they_are = asked.input == "content"
        texts = [text if as_they_are and type(text) is str else asked.decode(text) for text in raw]
        if _prepared(asked) and not callable(asked.analyzer) and asked.tokenizer is None:
            texts = [*map(asked.build_preprocessor(), texts)]
        return texts

    def _type(self) -> Any:
        return self.dtype  # type: ignore[attr-defined]

    def _model(self) -> Any:
        return fresh(self._ours, **self._settings(Data(self, None)))

    def _warn_of_unused(self) -> None:
        asked: Any = self
        by_function, by_word = callable(asked.analyzer), asked.analyzer == "word"
        own_pattern = asked.token_pattern not in (None, r"(?u)\b\w\w+\b")
        for name, unused, because in (
            (
                "token_pattern",
                asked.tokenizer is not None and asked.token_pattern is not None,
                "'tokenizer' is not None'",
            ),
            ("preprocessor", by_function and asked.preprocessor is not None, "'analyzer' is callable'"),
            ("ngram_range", by_function and asked.ngram_range not in (None, (1, 1)), "'analyzer' is callable'"),
            ("stop_words", not by_word and asked.stop_words is not None, "'analyzer' != 'word'"),
            ("token_pattern", not by_word and own_pattern, "'analyzer' != 'word'"),
            ("tokenizer", not by_word and asked.tokenizer is not None, "'analyzer' != 'word'"),
        ):
            if unused:
                text = f"The parameter '{name}' will not be used since {because}"
                warnings.warn(text, UserWarning, stacklevel=4)

    def _given(self, counts: Matrix) -> Matrix:
        """In the type and the interface of sparse matrices that scikit-learn would answer with."""
        return _in_interface(counts.astype(self._type(), copy=False))


def _in_interface(counts: Matrix) -> Matrix:
    """As the kind of sparse matrix that scikit-learn is set to answer with; older releases know one kind only."""
    kind = sp.csr_array if get_config().get("sparse_interface") == "sparray" else sp.csr_matrix
    if isinstance(counts, kind):
        return counts
    return kind((counts.data, counts.indices, counts.indptr), shape=counts.shape, copy=False)


class CountVectorizer(_Texts, theirs.CountVectorizer):
    """How often each text has each term."""

    _table: ClassVar[Table] = COUNTING

    def fit(self, raw_documents: Any, y: Any = None) -> Any:  # type: ignore[override]  # the signature is scikit-learn's
        """Learn the terms of texts."""
        self._learned(raw_documents)
        return self

    def fit_transform(self, raw_documents: Any, y: Any = None) -> Matrix:
        """`fit`, and the rows of the same texts."""
        return self._given(self._weighted(self._learned(raw_documents)))

    def transform(self, raw_documents: Any) -> Matrix:
        """One row for each text."""
        documents = self._documents(raw_documents)
        if not hasattr(self, "model_"):
            if self.vocabulary is None:
                raise NotFittedError("Vocabulary not fitted or provided")
            self._keep(self._model().fit([""]), Data(self, None))
        return self._given(self._weighted(self.model_.transform(documents)))

    def _learned(self, raw_documents: Any) -> Matrix:
        self._checked(self)
        self._warn_of_unused()
        documents = self._documents(raw_documents)
        model = self._model()
        if model.vocabulary is not None and self.lowercase and any(map(str.isupper, "".join(model.vocabulary))):
            warnings.warn(
                "Upper case characters found in vocabulary while 'lowercase' is True. These entries will not be matched "
                "with any documents",
                UserWarning,
                stacklevel=3,
            )
        counts = model.fit_transform(documents)
        self._keep(model, Data(self, counts))
        return counts

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {"vocabulary_": model.vocabulary_, "fixed_vocabulary_": self.vocabulary is not None}

    def _weighted(self, counts: Matrix) -> Matrix:
        return counts


class TfidfVectorizer(CountVectorizer, theirs.TfidfVectorizer):
    """Counts times rarity, in rows of norm one."""

    _table: ClassVar[Table] = {**COUNTING, "norm": AFTER, "use_idf": AFTER, "smooth_idf": AFTER, "sublinear_tf": AFTER}

    def _learned(self, raw_documents: Any) -> Matrix:
        if np.dtype(self.dtype).kind != "f":
            text = f"Only float 'dtype' should be used. {self.dtype} 'dtype' will be converted to np.float64."
            warnings.warn(text, UserWarning, stacklevel=3)
        return super()._learned(raw_documents)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        found = dict(super()._fitted(model, data))
        if self.use_idf and data.X is not None:
            total = float(data.X.shape[0])
            inverse = inverse_frequency(model.document_frequency_, total, smooth=self.smooth_idf)
            found["_inverse"] = inverse.astype(self._type())
        return found

    @property
    def idf_(self) -> Array:
        """Rarity of each term."""
        if not hasattr(self, "_inverse"):
            raise NotFittedError(f"{type(self).__name__} is not fitted yet. Call 'fit' before using this attribute.")
        return self._inverse

    @idf_.setter
    def idf_(self, value: Any) -> None:
        if not self.use_idf:
            raise ValueError("`idf_` cannot be set when `user_idf=False`.")
        terms = self.vocabulary_ if hasattr(self, "vocabulary_") else self.vocabulary
        if terms is not None and len(terms) != len(value):
            raise ValueError(f"idf length = {len(value)} must be equal to vocabulary size = {len(terms)}")
        self._inverse = np.asarray(value, dtype=np.float64)

    def _weighted(self, counts: Matrix) -> Matrix:
        inverse = self.idf_ if self.use_idf else None
        return weighted_counts(counts, sublinear=self.sublinear_tf, inverse=inverse, norm=self.norm)

    def _type(self) -> Any:
        return self.dtype if np.dtype(self.dtype).kind == "f" else np.float64


class HashingVectorizer(_Texts, theirs.HashingVectorizer):
    """Columns by hash: nothing to remember."""

    _table: ClassVar[Table] = {**READING, "n_features": Same("hashing"), "norm": Same(), "alternate_sign": Same()}

    def fit(self, X: Any, y: Any = None) -> Any:  # type: ignore[override]  # the signature is scikit-learn's
        """Check the parameters: nothing is learned."""
        self._checked(self)
        self._warn_of_unused()
        self._documents(X if isinstance(X, str) else ())
        self.model_ = self._model().fit([""])
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Any:
        """As `fit`."""
        return self.fit(X, y)

    def transform(self, X: Any) -> Matrix:
        """One row for each text."""
        return self._given(self._model().fit([""]).transform(self._documents(X)))

    def fit_transform(self, X: Any, y: Any = None) -> Matrix:
        """`fit` and `transform`."""
        return self.fit(X, y).transform(X)


class TfidfTransformer(DropIn, theirs.TfidfTransformer):
    """Counts of terms, as a matrix, times rarity, in rows of norm one."""

    _ours = BagOfWords
    _table: ClassVar[Table] = {"norm": AFTER, "use_idf": AFTER, "smooth_idf": AFTER, "sublinear_tf": AFTER}

    def fit(self, X: Any, y: Any = None) -> Any:  # type: ignore[override]  # the signature is scikit-learn's
        """Learn how rare each term is."""
        self._checked(self)
        counts = sp.csr_array(validate_data(self, X, accept_sparse=("csr", "csc")))
        if self.use_idf:
            n = counts.shape[0]
            frequency = document_frequency(counts, np.ones(n))
            if not self.smooth_idf and (frequency == 0).any():
                text = "divide by zero: a term that no text has is infinitely rare; smooth_idf=True makes it finite."
                warnings.warn(text, RuntimeWarning, stacklevel=2)
            found = inverse_frequency(frequency, float(n), smooth=self.smooth_idf)
            self.idf_ = found.astype(counts.dtype if counts.dtype in (np.float64, np.float32) else np.float64)
        return self

    def transform(self, X: Any, copy: bool = True) -> Matrix:
        """Weighted rows; with ``copy=False`` a CSR matrix of real numbers is written to, and given back."""
        check_is_fitted(self)
        given = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        counts = sp.csr_array(given)
        inverse = getattr(self, "idf_", None)
        found = weighted_counts(counts, sublinear=self.sublinear_tf, inverse=inverse, norm=self.norm)
        if given is X and not copy and is_sparse(X):
            X.data[:] = found.data
            return _in_interface(X)
        return _in_interface(found.astype(counts.dtype, copy=False))
