"""Features by templates against the same features written out by hand, token by token."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.models.structured.sequences import text

from certifit.representation.sequences.encoder import Bags, SequenceEncoder
from certifit.representation.sequences.templates import TAGGING, TemplateFeatures, brief, shape

X, _ = text(25)
HARD = [
    "w[0]",
    "w[-2].lower|w[0]|w[1].shape",
    "w[1].prefix(2)",
    "w[0].lower.suffix(2)",
    "w[0].digits",
    "w[0].length|w[-1]",
]


def by_hand(words: list[str], t: int, template: str) -> str:
    """One feature, read off the template anew each time."""
    values = []
    for term in template.split("|"):
        _, offset, calls = re.fullmatch(r"(\w+)\[(-?\d+)\](.*)", term).groups()  # type: ignore[union-attr]
        at = t + int(offset)
        if not 0 <= at < len(words):
            values.append("<s>" if at < 0 else "</s>")
            continue
        value = words[at]
        for call in filter(None, calls.split(".")):
            name, _, number = call.rstrip(")").partition("(")
            value = {
                "lower": lambda v: v.lower(),
                "shape": shape,
                "brief": brief,
                "digits": lambda v: re.sub(r"\d", "0", v),
                "length": lambda v: str(len(v)),
                "prefix": lambda v, n=number: v[: int(n)],
                "suffix": lambda v, n=number: v[-int(n) :],
            }[name](value)
        values.append(value)
    return f"{template}={'|'.join(values)}"


def found(features: TemplateFeatures, rows: Any) -> list[set[str]]:
    return [
        {features.name(int(f)) for f in rows.feature[a:b]} for a, b in zip(rows.row[:-1], rows.row[1:], strict=True)
    ]


@pytest.mark.parametrize("templates", [list(TAGGING), HARD])
def test_features_are_those_of_the_templates(templates: list[str]) -> None:
    features = TemplateFeatures(templates)
    wanted = [{by_hand(words, t, template) for template in templates} for words in X for t in range(len(words))]
    assert found(features, features.fit(X)) == wanted
    assert found(features, features.transform(X)) == wanted


def test_what_was_not_seen_is_left_out() -> None:
    features = TemplateFeatures(HARD)
    features.fit(X[:10])
    known = {features.name(k) for k in range(features.width)}
    new = [["quite", "the", "New1"], ["Dog"]]
    wanted = [{by_hand(words, t, template) for template in HARD} & known for words in new for t in range(len(words))]
    assert found(features, features.transform(new)) == wanted


def test_rare_features_are_left_out() -> None:
    features = TemplateFeatures(["w[0]", "w[-1]|w[0]"], min_count=3)
    features.fit(X)
    counts: dict[str, int] = {}
    for words in X:
        for t in range(len(words)):
            for template in features.templates:
                name = by_hand(words, t, template)
                counts[name] = counts.get(name, 0) + 1
    assert {features.name(k) for k in range(features.width)} == {name for name, n in counts.items() if n >= 3}


def test_buckets_are_those_of_the_values() -> None:
    one, other = TemplateFeatures(HARD, hashing=1 << 16), TemplateFeatures(HARD, hashing=1 << 16)
    a, b = one.fit(X), other.transform(X)
    np.testing.assert_array_equal(a.feature, b.feature)
    assert a.width == 1 << 16
    few = TemplateFeatures(HARD, hashing=4).fit(X)
    sums = np.add.reduceat(few.value, few.row[:-1]) if few.value is not None else np.diff(few.row)
    np.testing.assert_array_equal(sums, len(HARD))  # what falls together is added up


def test_columns_of_tokens() -> None:
    mapped = [[{"w": word, "pos": word[0]} for word in words] for words in X]
    tuples = [[(word, word[0]) for word in words] for words in X]
    plain = TemplateFeatures(["w[0]", "w[1].prefix(1)"]).fit(X)
    first = TemplateFeatures(["w[0]", "pos[1]"]).fit(mapped)
    second = TemplateFeatures(["c0[0]", "c1[1]"]).fit(tuples)
    for rows in (first, second):
        np.testing.assert_array_equal(rows.feature, plain.feature)
    with pytest.raises(ValueError, match="column 'lemma'"):
        TemplateFeatures(["lemma[0]"]).fit(mapped)
    with pytest.raises(ValueError, match="column 'pos'"):
        TemplateFeatures(["pos[0]"]).fit(X)


@pytest.mark.parametrize(
    ("template", "match"),
    [
        ("w", r"should look like w\[0\]"),
        ("w[0]|", "should look like"),
        ("w[0].nothing", "unknown function 'nothing'"),
        ("w[0].suffix", r"suffix\(n\)"),
        ("w[0].suffix(0)", r"suffix\(n\)"),
        ("w[0].lower(2)", "lower without a number"),
        (3, "templates such as"),
    ],
)
def test_bad_templates(template: Any, match: str) -> None:
    with pytest.raises((ValueError, TypeError), match=match):
        TemplateFeatures([template]).fit(X)


def test_shapes() -> None:
    assert shape("Ab-12ß") == "Xx-00x"
    assert brief("Abcd-1234") == "Xx-0"


def test_values_of_named_features() -> None:
    bags = Bags()
    rows = bags.fit([{"a": 2, "b": True, "c": "x", "d": False, "e": 0.0}, {"a": -1.5}])
    assert [bags.name(int(f)) for f in rows.feature] == ["a", "b", "c=x", "a"]
    np.testing.assert_array_equal(rows.value, [2.0, 1.0, 1.0, -1.5])
    for bad, match in (({"a": np.nan}, "finite"), ({"a": None}, "finite"), ({"a": [1]}, "finite"), ({3: 1.0}, "text")):
        with pytest.raises((ValueError, TypeError), match=match):
            Bags().fit([bad])
    with pytest.raises(TypeError, match="like the first"):
        Bags().fit([{"a": 1}, ["b"]])


@pytest.mark.parametrize(
    ("sequences", "lengths", "match"),
    [
        ([[1, 2], [-1]], None, "≥ 0"),
        ([np.array([[1.0, np.nan]])], None, "NaN"),
        ([np.ones((2, 2)), np.ones((2, 3))], None, "same width"),
        (np.ones((4, 2)), [2, 3], "add up to 5"),
        (np.ones((4, 2)), [4, 0], "empty"),
        (np.ones((4, 2)), [2.0, 2.0], "whole numbers"),
        ([[object()]], None, r"X\[0\]\[0\]"),
    ],
)
def test_bad_sequences(sequences: Any, lengths: Any, match: str) -> None:
    with pytest.raises((ValueError, TypeError), match=match):
        SequenceEncoder().fit(sequences, lengths)


def test_another_kind_of_input_is_refused() -> None:
    encoder = SequenceEncoder()
    encoder.fit(X)
    with pytest.raises(ValueError, match="ids, but the model was fitted on tokens of text"):
        encoder.transform([[1, 2]])
    with pytest.raises(ValueError, match="features belong to tokens"):
        SequenceEncoder(features=["w[0]"]).fit([np.array([1, 2])])
    with pytest.raises(ValueError, match="hashing"):
        SequenceEncoder(hashing=8).fit([np.array([1, 2])])
