"""The hidden Markov model by counting with pencil and paper."""

from __future__ import annotations

import itertools
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.models.structured.sequences import text

from certifit import HMM

X = [["a", "b"], ["a", "a", "c"], ["b"]]
Y = [["x", "y"], ["x", "x", "y"], ["y"]]


def test_counts() -> None:
    s = 0.5
    model = HMM(smoothing=s).fit(X, Y)
    np.testing.assert_allclose(np.exp(model.start_), [(2 + s) / (3 + 2 * s), (1 + s) / (3 + 2 * s)])
    # x → x once, x → y twice, x ends never; y ends three times
    np.testing.assert_allclose(np.exp(model.transition_[0]), np.array([1 + s, 2 + s]) / (3 + 3 * s))
    np.testing.assert_allclose(np.exp(model.end_), [s / (3 + 3 * s), (3 + s) / (3 + 3 * s)])
    # x emits a three times; y emits b twice and c once; c is the only symbol seen once
    assert model.symbols_ == ["a", "b", "c"]
    np.testing.assert_allclose(np.exp(model.emission_[:, 0]), (np.array([3, 0, 0, 0]) + s) / (3 + 4 * s))
    np.testing.assert_allclose(np.exp(model.emission_[:, 1]), (np.array([0, 2, 1, 1]) + s) / (4 + 4 * s))


def test_probabilities_of_labels_and_of_symbols() -> None:
    model = HMM().fit(X, Y)
    tokens = ["a", "c", "new"]
    code = [0, 2, 3]
    joint = {}
    for path in itertools.product(range(2), repeat=3):
        score = model.start_[path[0]] + model.end_[path[-1]]
        score += sum(model.emission_[code[t], path[t]] for t in range(3))
        score += sum(model.transition_[path[t - 1], path[t]] for t in (1, 2))
        joint[path] = np.exp(score)
    evidence = sum(joint.values())
    assert model.log_evidence([tokens])[0] == pytest.approx(np.log(evidence))
    best = max(joint, key=lambda path: joint[path])
    labels = [["x", "y"][k] for k in best]
    assert model.predict([tokens]) == [labels]
    assert model.log_likelihood([tokens], [labels])[0] == pytest.approx(np.log(joint[best] / evidence))
    first = sum(p for path, p in joint.items() if path[1] == 1) / evidence
    assert model.predict_marginals([tokens])[0][1, 1] == pytest.approx(first)


def test_counting_cannot_be_improved() -> None:
    """The smoothed counts maximize likelihood times prior: any other table is worse."""
    words, tags = text(40)
    model = HMM(smoothing=0.3).fit(words, tags)
    assert model.certificate_.kind == "closed form"
    assert model.certificate_.certified
    counts = np.array(
        [
            [sum(t == b and s == a for labels in tags for s, t in itertools.pairwise(labels)) for b in "ADNRV"]
            for a in "ADNRV"
        ]
    )
    ends = np.array([sum(labels[-1] == a for labels in tags) for a in "ADNRV"])
    table = np.column_stack([counts, ends]) + 0.3
    np.testing.assert_allclose(np.exp(model.transition_), (table / table.sum(axis=1, keepdims=True))[:, :5], rtol=1e-12)


def test_whole_numbers_as_symbols() -> None:
    ids = [np.array([3, 5, 3]), np.array([5])]
    model = HMM().fit(ids, [["x", "y", "x"], ["y"]])
    assert model.predict([[3, 5, 77]])[0][:2] == ["x", "y"]
    flat = HMM().fit(np.concatenate(ids), ["x", "y", "x", "y"], lengths=[3, 1])
    np.testing.assert_array_equal(flat.emission_, model.emission_)
    with pytest.raises(ValueError, match="text, but the model was fitted on whole numbers"):
        model.predict([["a"]])


def test_forbidden_transitions_have_no_probability() -> None:
    model = HMM(forbidden=[("y", "x")]).fit(X, Y)
    assert model.transition_[1, 0] == -np.inf
    assert not any(("y", "x") in itertools.pairwise(labels) for labels in model.predict([["b", "a", "b", "a"]]))


def test_counting_minimizes_the_objective_of_the_certificate() -> None:
    rng = np.random.default_rng(0)
    X = [rng.integers(4, size=n).tolist() for n in (3, 5, 2, 4)]
    y = [rng.integers(2, size=len(x)).tolist() for x in X]
    weight = np.array([1.0, 2.0, 0.5, 1.0])
    model = HMM(smoothing=0.3).fit(X, y, sample_weight=weight)
    counts = np.zeros(5)
    for x, s in zip(X, weight, strict=True):
        np.add.at(counts, x, s)
    seen = np.zeros((5, 2))
    for x, labels, s in zip(X, y, weight, strict=True):
        np.add.at(seen, (x, labels), s)
    symbols = model.symbols_
    rare = seen[[k for k in symbols if counts[k] <= max(1.0, min(counts[k] for k in symbols))]].sum(axis=0)

    def objective(emission: Any, transition: Any, start: Any, end: Any) -> float:
        total = 0.3 * sum(table.sum() for table in (emission, transition, start, end)) + rare @ emission[-1]
        for x, labels, s in zip(X, y, weight, strict=True):
            one = start[labels[0]] + end[labels[-1]] + sum(transition[a, b] for a, b in pairwise(labels))
            total += s * (one + sum(emission[symbols.index(k), label] for k, label in zip(x, labels, strict=True)))
        return -float(total) / float(weight.sum())

    fitted = model.emission_, model.transition_, model.start_, model.end_
    assert model.certificate_.objective == pytest.approx(objective(*fitted), rel=1e-12)
    for _ in range(50):
        emission = model.emission_ + 0.05 * rng.normal(size=model.emission_.shape)
        emission -= np.log(np.exp(emission).sum(axis=0))
        steps = np.column_stack([model.transition_, model.end_]) + 0.05 * rng.normal(size=(2, 3))
        steps -= np.log(np.exp(steps).sum(axis=1, keepdims=True))
        start = model.start_ + 0.05 * rng.normal(size=2)
        start -= np.log(np.exp(start).sum())
        assert objective(emission, steps[:, :2], start, steps[:, 2]) > model.certificate_.bound
