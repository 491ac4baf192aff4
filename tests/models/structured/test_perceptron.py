"""Structured perceptron against the algorithm written down plainly."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.models.structured.sequences import matrices, text

from certifit import StructuredPerceptron


def plain_perceptron(X: list[np.ndarray], y: list[list[int]], K: int, epochs: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights (features, then transitions) after some epochs in the given order, and their average over all visits."""
    d = X[0].shape[1]

    def psi(rows: np.ndarray, path: tuple[int, ...]) -> np.ndarray:
        out, A = np.zeros((d, K)), np.zeros((K, K))
        for t, k in enumerate(path):
            out[:, k] += rows[t]
            if t:
                A[path[t - 1], k] += 1
        return np.concatenate([out.ravel(), A.ravel()])

    w = np.zeros(d * K + K * K)
    total, visits = w.copy(), 1
    for _ in range(epochs):
        for rows, path in zip(X, y, strict=True):
            best = max(
                itertools.product(range(K), repeat=len(path)), key=lambda one: round(float(w @ psi(rows, one)), 9)
            )
            if best != tuple(path):
                w = w + psi(rows, tuple(path)) - psi(rows, best)
            total += w
            visits += 1
    return w, total / visits


@pytest.mark.parametrize("averaged", [False, True])
def test_the_plain_algorithm(averaged: bool) -> None:
    X, y = matrices(n=15, labels=3)
    model = StructuredPerceptron(averaged=averaged, shuffle=False, max_iter=4, bias=False, boundaries=False).fit(X, y)
    last, average = plain_perceptron(X, y, 3, 4)
    wanted = average if averaged else last
    np.testing.assert_allclose(model.coef_.ravel(), wanted[:12], atol=1e-9)
    np.testing.assert_allclose(model.transition_.ravel(), wanted[12:], atol=1e-9)


def test_length_one_is_the_multiclass_perceptron() -> None:
    X, y = matrices(n=20, labels=3)
    rows, labels = np.concatenate(X), np.concatenate(y)
    model = StructuredPerceptron(averaged=False, shuffle=False, max_iter=3, bias=False, boundaries=False)
    model.fit(rows, labels, lengths=np.ones(len(labels), dtype=int))
    W = np.zeros((4, 3))
    for _ in range(3):
        for x, label in zip(rows, labels, strict=True):
            best = int(np.argmax(x @ W))
            if best != label:
                W[:, label] += x
                W[:, best] -= x
    np.testing.assert_allclose(model.coef_, W, atol=1e-9)


def test_a_separating_fit_is_its_own_witness() -> None:
    X, y = text(30, noise=0.0, seed=3)
    model = StructuredPerceptron(max_iter=200).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.certificate_.kind == "witness"
    assert model.certificate_.certified
    assert model.mistakes_[-1] == 0
    noisy = StructuredPerceptron(max_iter=2).fit(*text(40, noise=0.6))
    assert noisy.certificate_.kind == "none"
    assert "wrong" in noisy.certificate_.note


def test_forbidden_transitions_and_markov_features() -> None:
    X, y = text(40, noise=0.0)
    pairs = {pair for labels in y for pair in itertools.pairwise(labels)}
    never = next((a, b) for a in "ADNRV" for b in "ADNRV" if (a, b) not in pairs)
    model = StructuredPerceptron(forbidden=[never], markov=["w[0]"]).fit(X, y)
    assert model.transitions()[never] == -np.inf
    assert not any(never in itertools.pairwise(labels) for labels in model.predict(X))
    assert model.markov_coef_.any()
