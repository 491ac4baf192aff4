"""Texts: the same matrices as scikit-learn's, whichever way the texts are read."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.feature_extraction.text as theirs
from sklearn.exceptions import NotFittedError

from certifit.sklearn.feature_extraction import text as ours

TEXTS = ["The CAFÉ, the café!", "a naïve résumé of it", "be to be to be", "Ünïcode and the rest"]
READING: list[dict[str, Any]] = [
    {},
    {"strip_accents": "unicode"},
    {"strip_accents": "ascii", "analyzer": "char", "ngram_range": (1, 3)},
    {"stop_words": "english", "ngram_range": (1, 2)},
    {"preprocessor": str.upper},
    {"tokenizer": str.split, "token_pattern": None, "ngram_range": (1, 2), "strip_accents": "unicode"},
    {"analyzer": str.split},
    {"token_pattern": r"\b(\w)\w+", "lowercase": False},
    {"analyzer": "char_wb", "ngram_range": (2, 3), "binary": True},
    {"dtype": np.float32},
]


@pytest.mark.parametrize("name", [name for name in ours.__all__ if name.endswith("Vectorizer")])
@pytest.mark.parametrize("settings", READING, ids=str)
def test_the_same_matrix(name: str, settings: dict[str, Any]) -> None:
    a, b = getattr(ours, name)(**settings), getattr(theirs, name)(**settings)
    first, wanted = a.fit_transform(TEXTS), b.fit_transform(TEXTS)
    assert type(first) is type(wanted)
    assert first.dtype == wanted.dtype
    assert abs(first - wanted).max() < 1e-6
    assert (a.transform(TEXTS) != first).nnz == 0
    if name != "HashingVectorizer":
        assert a.vocabulary_ == b.vocabulary_
        assert a.get_feature_names_out().tolist() == b.get_feature_names_out().tolist()
    if name == "TfidfVectorizer":
        np.testing.assert_allclose(a.idf_, b.idf_, rtol=1e-6)


def test_files_bytes_and_names_of_files(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes("Grüße".encode("latin-1"))
    for given, kind in (
        (str(path), "filename"), (io.BytesIO(path.read_bytes()), "file"), (path.read_bytes(), "content"),
    ):  # fmt: skip
        found = ours.CountVectorizer(input=kind, encoding="latin-1").fit([given])
        assert found.vocabulary_ == {"grüße": 0}
    with pytest.raises(UnicodeDecodeError):
        ours.CountVectorizer().fit([path.read_bytes()])


def test_the_interface_of_sparse_matrices() -> None:
    with sklearn.config_context(sparse_interface="sparray"):
        assert isinstance(ours.CountVectorizer().fit_transform(TEXTS), sp.csr_array)


def test_given_terms_need_no_fit() -> None:
    counts = ours.CountVectorizer(vocabulary={"be": 1, "to": 0}).transform(TEXTS)
    np.testing.assert_array_equal(counts.toarray()[2], [2, 3])
    with pytest.raises(NotFittedError, match="not fitted or provided"):
        ours.CountVectorizer().transform(TEXTS)
    with pytest.raises(NotFittedError, match="not fitted"):
        ours.TfidfVectorizer(vocabulary=["be"]).transform(TEXTS)


def test_rarity_can_be_set() -> None:
    model = ours.TfidfVectorizer(vocabulary=["be", "to"], norm=None)
    model.idf_ = [2.0, 3.0]
    np.testing.assert_array_equal(model.transform(TEXTS).toarray()[2], [6.0, 6.0])
    with pytest.raises(ValueError, match="idf length = 1 must be equal to vocabulary size = 2"):
        model.idf_ = [1.0]
    with pytest.raises(ValueError, match="cannot be set"):
        ours.TfidfVectorizer(use_idf=False).idf_ = [1.0]


def test_what_is_not_used_is_said() -> None:
    with pytest.warns(UserWarning, match="'stop_words' will not be used"):
        ours.CountVectorizer(analyzer="char", stop_words=["a"]).fit(TEXTS)
    with pytest.warns(UserWarning, match="Upper case characters found in vocabulary"):
        ours.CountVectorizer(vocabulary=["Be"]).fit(TEXTS)


@pytest.mark.parametrize(
    ("vocabulary", "words"),
    [
        ({"a": 0, "b": 0}, "repeated indices"),
        ({"a": 0, "b": 2}, "doesn't contain index 1"),
        (["a", "a"], "Duplicate term"),
        ([], "empty vocabulary"),
    ],
)
def test_vocabularies_that_are_none(vocabulary: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ours.CountVectorizer(vocabulary=vocabulary).fit(TEXTS)


@pytest.mark.parametrize("seed", range(5))
def test_a_matrix_of_counts_is_weighted_as_theirs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(10):
        settings: dict[str, Any] = {
            "norm": ("l1", "l2", None)[rng.integers(3)],
            **{name: bool(rng.integers(2)) for name in ("use_idf", "smooth_idf", "sublinear_tf")},
        }
        counts = rng.poisson(0.7, size=(12, 8)) + np.eye(12, 8, dtype=int)
        expected, found = (home.TfidfTransformer(**settings).fit(counts) for home in (theirs, ours))
        np.testing.assert_allclose(found.transform(counts).toarray(), expected.transform(counts).toarray())
        assert hasattr(found, "idf_") == hasattr(expected, "idf_")


def test_counts_are_written_to_only_if_asked() -> None:
    counts = sp.csr_array(np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 0.0]]))
    before = counts.copy()
    model = ours.TfidfTransformer().fit(counts)
    found = model.transform(counts)
    np.testing.assert_array_equal(counts.toarray(), before.toarray())
    assert np.shares_memory(model.transform(counts, copy=False).data, counts.data)
    np.testing.assert_allclose(counts.toarray(), found.toarray())
    with pytest.warns(RuntimeWarning, match="divide by zero: a term that no text has"):
        assert np.isinf(ours.TfidfTransformer(smooth_idf=False).fit(before).idf_[2])
