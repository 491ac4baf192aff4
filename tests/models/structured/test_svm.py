"""Structured support vector machine: its special case, its costs, its gap."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.models.structured.sequences import matrices, text
from tests.oracles.chains import Enumerated

from certifit import MulticlassSVC, StructuredSVM


def test_length_one_is_the_multiclass_support_vector_machine() -> None:
    X, y = matrices(labels=3)
    rows, labels = np.concatenate(X), np.concatenate(y)
    delta = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 0.5], [3.0, 1.0, 0.0]])
    chain = StructuredSVM(alpha=0.1, delta=delta, bias=False, boundaries=False, tol=1e-6, max_iter=4000)
    chain.fit(rows, labels, lengths=np.ones(len(labels), dtype=int))
    flat = MulticlassSVC(alpha=0.1, delta=delta, fit_intercept=False, tol=1e-9).fit(rows, labels)
    assert chain.certificate_.objective == pytest.approx(flat.certificate_.objective, rel=1e-5)
    assert chain.certificate_.bound <= flat.certificate_.objective * (1 + 1e-12)
    np.testing.assert_allclose(chain.coef_.T, flat.coef_, atol=0.01)


@pytest.mark.parametrize("markov", [None, [0, 2]])
def test_objective_and_bound_by_enumeration(markov: list[int] | None) -> None:
    """The objective is what it says, and subgradient steps from there do not get below the bound."""
    X, y = matrices(n=12, labels=3)
    alpha = 0.05
    cost = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [0.5, 1.0, 0.0]])
    model = StructuredSVM(alpha=alpha, delta=cost, markov=markov, tol=1e-3, max_iter=2000).fit(X, y)

    def objective() -> float:
        losses = []
        for rows, path in zip(X, y, strict=True):
            unary = rows @ model.coef_[:-1] + model.coef_[-1]
            into = model.transition_
            if markov is not None:
                into = into + (rows[:, markov] @ model.markov_coef_).reshape(-1, 3, 3)
            plain = Enumerated(unary, into, model.start_, model.end_)
            margin = Enumerated(unary + cost[path], into, model.start_, model.end_)
            losses.append(margin.scores.max() - plain.scores[plain.paths.index(tuple(path))])
        parts = [model.coef_, model.transition_, model.start_, model.end_]
        parts += [] if markov is None else [model.markov_coef_]
        return float(np.mean(losses)) + 0.5 * alpha * sum(float((part**2).sum()) for part in parts)

    assert objective() == pytest.approx(model.certificate_.objective, rel=1e-9)
    assert model.certificate_.certified
    rng = np.random.default_rng(0)
    for _ in range(20):
        for part in (model.coef_, model.transition_, model.start_):
            part += 0.01 * rng.normal(size=part.shape)
        assert objective() >= model.certificate_.bound


def test_costs_move_the_decision() -> None:
    """The label whose confusion is expensive is taken more often."""
    X, y = matrices(n=60, labels=2, seed=2)
    plain = StructuredSVM(alpha=0.05).fit(X, y)
    careful = StructuredSVM(alpha=0.05, delta=[[0.0, 10.0], [0.2, 0.0]]).fit(X, y)
    first = [np.mean([label == 0 for labels in model.predict(X) for label in labels]) for model in (plain, careful)]
    assert first[1] > first[0]


def test_it_learns_text_and_forbids_what_it_must() -> None:
    X, y = text(60, noise=0.0)
    model = StructuredSVM(alpha=0.001, forbidden=[("V", "V")] if not _has(y, "V", "V") else None).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.certificate_.kind == "duality gap"


def _has(y: list[list[str]], a: str, b: str) -> bool:
    return any((a, b) in itertools.pairwise(labels) for labels in y)
