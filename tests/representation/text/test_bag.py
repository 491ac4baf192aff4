"""Bags of words: the same numbers as scikit-learn's, on any text."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from certifit import BagOfWords
from certifit.representation.text.reading import SPOKEN, Reader, words_of

TEXTS = [
    "To be, or not to be: that is the question.",
    "İstanbul ß ſ Ωmega ΣΑΣ naïve\u00a0café",
    "don\u2019t can't a_b __x 'tis o''clock",
    "\ud800ab cd\udfff lone \udc00 halves",
    "日本語 テスト 𝔘𝔫𝔦 ǅ ﬀ e\u0301te ٣٤ ²³",
    "white \t\n space\x1c\x85\u2003 \r\n  here   ",
    "a",
    "",
    "be to be to be",
]
SETTINGS: list[tuple[dict[str, Any], Any]] = [
    ({}, CountVectorizer()),
    ({"ngram_range": (1, 3)}, CountVectorizer(ngram_range=(1, 3))),
    ({"ngram_range": (2, 2), "lowercase": False}, CountVectorizer(ngram_range=(2, 2), lowercase=False)),
    ({"analyzer": "char", "ngram_range": (1, 4)}, CountVectorizer(analyzer="char", ngram_range=(1, 4))),
    ({"analyzer": "char", "ngram_range": (3, 3)}, CountVectorizer(analyzer="char", ngram_range=(3, 3))),
    ({"analyzer": "char_wb", "ngram_range": (1, 6)}, CountVectorizer(analyzer="char_wb", ngram_range=(1, 6))),
    ({"analyzer": "char_wb", "ngram_range": (4, 5)}, CountVectorizer(analyzer="char_wb", ngram_range=(4, 5))),
    ({"pattern": SPOKEN, "ngram_range": (1, 2)}, CountVectorizer(token_pattern=SPOKEN, ngram_range=(1, 2))),
    (
        {"pattern": r"\w+", "stop_words": ("to", "ab"), "ngram_range": (1, 2)},
        CountVectorizer(token_pattern=r"\w+", stop_words=["to", "ab"], ngram_range=(1, 2)),
    ),
    ({"stop_words": ["be"], "ngram_range": (1, 2)}, CountVectorizer(stop_words=["be"], ngram_range=(1, 2))),
    ({"values": "binary", "max_features": 2}, CountVectorizer(binary=True, max_features=2)),
    ({"min_df": 2}, CountVectorizer(min_df=2)),
    ({"max_df": 0.2, "min_df": 1}, CountVectorizer(max_df=0.2)),
    ({"analyzer": str.split}, CountVectorizer(analyzer=str.split)),
    ({"vocabulary": ["to", "be", "zebra"]}, CountVectorizer(vocabulary=["to", "be", "zebra"])),
    ({"vocabulary": {"be": 1, "to": 0}}, CountVectorizer(vocabulary={"be": 1, "to": 0})),
    ({"values": "tfidf"}, TfidfVectorizer()),
    ({"values": "tfidf", "sublinear": True, "norm": "l1"}, TfidfVectorizer(sublinear_tf=True, norm="l1")),
    ({"values": "tfidf", "norm": None, "ngram_range": (1, 2)}, TfidfVectorizer(norm=None, ngram_range=(1, 2))),
]


def check(ours: dict[str, Any], theirs: Any, texts: list[str]) -> None:
    bag = BagOfWords(**ours)
    first = bag.fit_transform(texts)
    assert_allclose(first.toarray(), theirs.fit_transform(texts).toarray(), rtol=1e-12)
    assert bag.terms_.tolist() == theirs.get_feature_names_out().tolist()
    again = bag.transform(texts)
    assert_array_equal(again.toarray(), first.toarray())
    assert again.has_canonical_format
    assert again.dtype == np.float64


@pytest.mark.parametrize(("ours", "theirs"), SETTINGS, ids=[str(ours) for ours, _ in SETTINGS])
def test_the_numbers_of_scikit_learn(ours: dict[str, Any], theirs: Any) -> None:
    check(ours, theirs, TEXTS)


@pytest.mark.parametrize("columns", [1, 7, 2**20, 2**31 - 1])
@pytest.mark.parametrize("signs", [True, False])
def test_hashes_of_scikit_learn(columns: int, signs: bool) -> None:
    texts = [text for text in TEXTS if text.isprintable() or "\ud800" not in text]  # theirs cannot hash half a pair
    ours = BagOfWords(hashing=columns, alternate_sign=signs, ngram_range=(1, 2))
    theirs = HashingVectorizer(n_features=columns, alternate_sign=signs, norm=None, ngram_range=(1, 2))
    assert abs(ours.fit_transform(texts) - theirs.transform(texts)).max() == 0.0
    ours, theirs = BagOfWords("binary", hashing=columns, norm="l2"), HashingVectorizer(n_features=columns, binary=True)
    assert abs(ours.fit_transform(texts) - theirs.transform(texts)).max() < 1e-15


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=6))
def test_any_text(texts: list[str]) -> None:
    for ours, theirs in (SETTINGS[0], SETTINGS[3], SETTINGS[5], SETTINGS[7]):
        texts_and_one = [*texts, "to be"]
        check(ours, theirs, texts_and_one)


def test_real_messages(real_data: Path) -> None:
    lines = gzip.decompress((real_data / "sms_spam" / "sms.tsv.gz").read_bytes()).decode().splitlines()
    texts = [line.split("\t", 1)[1] for line in lines[:1500]]
    for ours, theirs in (SETTINGS[0], SETTINGS[1], SETTINGS[5], SETTINGS[16]):
        counts, wanted = BagOfWords(**ours).fit_transform(texts), theirs.fit_transform(texts)
        assert abs(counts - wanted).max() < 1e-12


def test_weights_count_texts() -> None:
    weight = np.array([2.0, 0, 1, 0, 3, 1, 0, 1, 2])
    again = [text for text, w in zip(TEXTS, weight, strict=True) for _ in range(int(w))]
    for ours in ({"min_df": 2}, {"values": "tfidf", "max_features": 5}, {"max_df": 0.3, "values": "binary"}):
        weighted, repeated = BagOfWords(**ours).fit(TEXTS, sample_weight=weight), BagOfWords(**ours).fit(again)
        assert weighted.terms_.tolist() == repeated.terms_.tolist()
        assert_allclose(weighted.document_frequency_, repeated.document_frequency_)
        assert_allclose(weighted.transform(TEXTS).toarray(), repeated.transform(TEXTS).toarray())


def test_ties_go_by_alphabet() -> None:
    assert BagOfWords(max_features=2).fit(["dd cc bb aa"]).terms_.tolist() == ["aa", "bb"]


def test_missing_texts_have_no_words() -> None:
    got = BagOfWords().fit(["one two", None]).transform([None, np.nan, "two"]).toarray()
    assert_array_equal(got, [[0, 0], [0, 0], [0, 1]])


@pytest.mark.parametrize(
    ("texts", "settings", "error", "words"),
    [
        ("one text", {}, ValueError, "X must be several texts.*put it into a list"),
        ([b"bytes"], {}, TypeError, "got bytes at position 0: decode it first"),
        (["a", 3], {}, TypeError, "got int at position 1"),
        ([], {}, ValueError, "X has no texts"),
        ([["ab", "cd"]], {}, TypeError, "got list at position 0"),
        (np.array([["ab", "cd"]]), {}, ValueError, r"one column of texts; got shape \(1, 2\)"),
        (["a b"], {}, ValueError, "empty vocabulary; perhaps the texts only contain stop words"),
        (["ab"], {"min_df": 2}, ValueError, "max_df corresponds to < documents than min_df"),
        (["ab", "cd"], {"min_df": 2}, ValueError, "no terms remain"),
        (["ab"], {"analyzer": lambda text: [1, 2]}, TypeError, "analyzer must give texts .*; it gave 1"),
        (["ab"], {"vocabulary": {"ab": 1}}, ValueError, "must number its terms 0, 1, 2"),
        (["ab"], {"vocabulary": ["ab", "ab"]}, ValueError, "'ab' is there twice"),
        (["ab"], {"ngram_range": (2, 1)}, ValueError, r"ngram_range must be a pair .* got \(2, 1\)"),
        (["ab"], {"pattern": "("}, ValueError, "pattern must be a regular expression"),
        (["ab"], {"pattern": "(a)(b)"}, ValueError, "one group at most"),
        (["ab"], {"stop_words": "the"}, TypeError, "stop_words must be a collection of str; got 'the'"),
    ],
)
def test_refusals(texts: Any, settings: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        BagOfWords(**settings).fit(texts)


def test_the_spoken_words_are_those_of_the_pattern() -> None:
    for text in TEXTS:
        vocabulary, counts = Reader(pattern=SPOKEN).learn([text])
        found = words_of(text)
        assert vocabulary.terms.tolist() == sorted(set(found))
        assert counts.sum() == len(found)
        assert found == re.findall(SPOKEN, text.lower())
