"""Reports of taggers: counts by hand, intervals that cover, units that are sentences."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from certifit import compare_sequences, sequence_report
from certifit.evaluation.sequences.spans import spans


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (["O", "O"], []),
        (["I-A", "I-A", "O", "I-A"], [("A", 0, 2), ("A", 3, 4)]),
        (["B-A", "B-A", "I-A"], [("A", 0, 1), ("A", 1, 3)]),
        (["I-A", "I-B"], [("A", 0, 1), ("B", 1, 2)]),
        (["B-A", "E-A", "S-B", "I-B"], [("A", 0, 2), ("B", 2, 3), ("B", 3, 4)]),
        (["O", "B-A-B", "I-A-B"], [("A-B", 1, 3)]),
    ],
)
def test_spans(labels: list[str], found: list[Any]) -> None:
    assert spans(labels) == found


def test_counts_by_hand() -> None:
    y = [["B-P", "I-P", "O"], ["O", "B-L"], ["O"]]
    z = [["B-P", "O", "O"], ["B-L", "B-L"], ["O"]]
    report = sequence_report(y, z)
    assert report.accuracy.value == pytest.approx(4 / 6)
    assert report.sequence_accuracy.value == pytest.approx(1 / 3)
    assert report.names == ("B-L", "B-P", "I-P", "O")
    np.testing.assert_array_equal(report.confusion, [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 2]])
    assert report.labels["B-L"].precision.value == 0.5
    assert report.labels["B-L"].recall.value == 1.0
    assert report.labels["B-L"].f1.value == pytest.approx(2 / 3)
    assert np.isnan(report.labels["I-P"].precision.value)
    assert report.labels["I-P"].recall.value == 0.0
    # spans there: P(0, 2), L(1, 2); said: P(0, 1), L(0, 1), L(1, 2); right: the last
    assert report.spans["all"].precision.value == pytest.approx(1 / 3)
    assert report.spans["all"].recall.value == pytest.approx(1 / 2)
    assert report.span_f1 is not None
    assert report.span_f1.value == pytest.approx(2 / 5)
    assert report.spans["P"].f1.value == 0.0
    text = json.dumps(report.as_dict(), allow_nan=False)
    assert "null" in text
    assert "accuracy" in str(report)


def test_labels_without_spans_have_none() -> None:
    report = sequence_report([["N", "V"], ["O"]], [["N", "N"], ["O"]])
    assert report.spans == {}
    assert report.span_f1 is None
    with pytest.raises(ValueError, match="span_f1"):
        compare_sequences([["N"]], {"a": [["N"]]}, metric="span_f1")


def test_weights_count_repetitions() -> None:
    y, z = [["a", "b"], ["b"], ["a", "a", "a"]], [["a", "a"], ["b"], ["a", "b", "a"]]
    weighted = sequence_report(y, z, sample_weight=[2, 0, 3])
    repeated = sequence_report([y[0]] * 2 + [y[2]] * 3, [z[0]] * 2 + [z[2]] * 3)
    assert weighted.accuracy.value == pytest.approx(repeated.accuracy.value)
    assert weighted.labels["a"].f1.value == pytest.approx(repeated.labels["a"].f1.value)
    assert weighted.labels["a"].support == repeated.labels["a"].support


def taggings(rng: np.random.Generator, n: int) -> tuple[list[list[str]], list[list[str]], np.ndarray]:
    """Sentences with errors that come together: the accuracy of a sentence is drawn."""
    y, z, quality = [], [], rng.beta(2, 1, size=n)
    for q in quality:
        labels = [str(x) for x in rng.choice(["a", "b"], size=20)]
        y.append(labels)
        z.append([label if rng.random() < q else ("b" if label == "a" else "a") for label in labels])
    return y, z, quality


def test_intervals_cover_because_sentences_are_resampled() -> None:
    """The true accuracy is 2/3; an interval over positions would be several times too narrow."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(60):
        y, z, _ = taggings(rng, 60)
        found = sequence_report(y, z, n_resamples=300).accuracy
        covered += found.low <= 2 / 3 <= found.high
    assert covered >= 52


def test_comparison_is_paired() -> None:
    rng = np.random.default_rng(1)
    y, z, _ = taggings(rng, 300)
    better = [
        [a if rng.random() < 0.05 else b for a, b in zip(one, other, strict=True)]
        for one, other in zip(y, z, strict=True)
    ]
    found = compare_sequences(y, {"z": z, "better": better, "same": [list(labels) for labels in z]})
    assert found.best == "better"
    assert found.pair("better", "z").distinguishable
    assert not found.pair("z", "same").distinguishable
    assert found.values["z"] == pytest.approx(sequence_report(y, z).accuracy.value)


def test_comparison_by_spans() -> None:
    y = [["B-P", "I-P", "O"], ["O", "B-L", "O"]] * 40
    worse = [["B-P", "O", "O"], ["O", "B-L", "O"]] * 40
    found = compare_sequences(y, {"right": y, "worse": worse}, metric="span_f1")
    assert found.best == "right"
    assert found.values["worse"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("y", "z", "match"),
    [
        ([["a"]], [["a"], ["b"]], "same sequences"),
        ([["a", "b"]], [["a"]], r"prediction\[0\] has 1"),
        ([], [], "not empty"),
        ([[]], [[]], r"y\[0\]"),
        (["ab"], [["a", "b"]], r"y\[0\]"),
    ],
)
def test_bad_input(y: Any, z: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        sequence_report(y, z)


def test_a_kind_of_span_may_be_called_all() -> None:
    y = [["B-all", "O"], ["B-PER", "O"]] * 5
    found = sequence_report(y, [["B-all", "O"], ["O", "O"]] * 5)
    assert found.span_f1 is not None
    assert found.span_f1.value == pytest.approx(2 / 3)  # 5 of 5 said, 5 of 10 there
    assert {name: score.f1.value for name, score in found.spans.items()} == {
        "all": pytest.approx(2 / 3),
        "kind all": 1.0,
        "PER": 0.0,
    }


def test_labels_that_cannot_be_counted() -> None:
    with pytest.raises(TypeError, match="y and prediction must hold one label"):
        sequence_report([[["a"]]], [[["a"]]])


def test_spans_of_weight_zero_are_none() -> None:
    with pytest.raises(ValueError, match="needs spans, but y and 'x' have none in sequences of positive weight"):
        compare_sequences([["O"], ["B-x"]], {"x": [["O"], ["O"]]}, metric="span_f1", sample_weight=[1, 0])


def test_weights_of_any_size() -> None:
    found = sequence_report([["a"], ["b"]], [["a"], ["a"]], sample_weight=[3e150, 1e150])
    assert (found.accuracy.value, found.accuracy.low, found.accuracy.high) == pytest.approx((0.75, 0.75, 0.75))
