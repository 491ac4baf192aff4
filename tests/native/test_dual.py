"""The strict boundary of the dual coordinate descent kernels, and their small pieces."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from certifit._native import dual


def arrays(n=6, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = np.ascontiguousarray(rng.normal(size=(n, d)))
    positive = np.arange(n) % 2 == 0
    lower, upper = np.where(positive, 1.0, -np.inf), np.where(positive, np.inf, -1.0)
    return X, dual.Loss(lower, upper, positive.astype(float), (~positive).astype(float), np.full(n, 1 / n), 0.0)


def options(alpha=0.1, constant=1.0, tolerance=1e-8, max_iter=1000, seed=0):
    return dual.Options(alpha, constant, tolerance, max_iter, seed)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-20, 20), min_size=1, max_size=8))
def test_projection_onto_the_simplex(values):
    v = np.array(values)
    x = dual.project_simplex(v)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(1.0, abs=1e-12)
    # v − x is constant on the support of x and not larger elsewhere.
    shift = v - x
    top = shift[x > 0].max()
    assert shift[x > 0] == pytest.approx(top, abs=1e-9)
    assert (shift <= top + 1e-9).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_the_best_intercept_is_best(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    lower = rng.normal(size=n)
    upper = lower + rng.integers(0, 2, size=n)
    p = rng.random(n) + 0.1
    loss = dual.Loss(lower, upper, np.ones(n), np.full(n, 2.0), p, 0.0)
    scores = rng.normal(size=n)

    def risk(b):
        f = scores + b
        return p @ (np.maximum(lower - f, 0) + 2.0 * np.maximum(f - upper, 0))

    b = dual.best_intercept(loss, scores)
    kinks = np.concatenate([lower - scores, upper - scores])
    assert risk(b) <= min(risk(k) for k in kinks) + 1e-12


def test_rows_in_any_storage_agree():
    X, loss = arrays(40, 7, 1)
    results = []
    csr = sp.csr_array(X)
    for rows in (
        dual.dense(X),
        dual.csr(csr.data, csr.indices.astype(np.int32), csr.indptr.astype(np.int32), 7),
        dual.csr(csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64), 7),
    ):
        results.append(dual.hinge(rows, loss, np.zeros(40), 0.0, options()))
    for other in results[1:]:
        assert other[0] == pytest.approx(results[0][0], abs=1e-9)
    single = X.astype(np.float32)
    one = dual.hinge(dual.dense(single), loss, np.zeros(40), 0.0, options())
    two = dual.hinge(dual.dense(single.astype(np.float64)), loss, np.zeros(40), 0.0, options())
    assert one[0] == pytest.approx(two[0], abs=1e-9)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": np.nan}, "alpha"),
        ({"constant": -1.0}, "constant"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_bad_options_are_refused(change, match):
    with pytest.raises(ValueError, match=match):
        options(**change)


def test_bad_arrays_are_refused():
    X, loss = arrays()
    rows = dual.dense(X)
    with pytest.raises(ValueError, match="theta"):
        dual.hinge(rows, loss, np.zeros(5), 0.0, options())
    with pytest.raises(ValueError, match="theta"):
        dual.hinge(rows, loss, np.full(6, 3.0), 0.0, options())
    with pytest.raises(ValueError, match="centre"):
        dual.hinge(rows, loss, np.zeros(6), np.nan, options())
    with pytest.raises(ValueError, match="out of bounds"):
        dual.csr(np.ones(1), np.array([3], dtype=np.int32), np.array([0, 1], dtype=np.int32), 2)
    with pytest.raises(ValueError, match="indptr"):
        dual.csr(np.ones(1), np.array([0], dtype=np.int32), np.array([0, 2], dtype=np.int32), 2)
    with pytest.raises(ValueError, match="lower"):
        dual.Loss(np.ones(1), np.zeros(1), np.ones(1), np.ones(1), np.ones(1), 0.0)
    with pytest.raises(ValueError, match="label"):
        dual.multiclass(rows, np.full(6, 2), np.full(6, 1 / 6), 1 - np.eye(2), options())
    with pytest.raises(ValueError, match="delta"):
        dual.multiclass(rows, np.zeros(6, dtype=np.int64), np.full(6, 1 / 6), -np.ones((2, 2)), options())
    state = [np.zeros(3), np.zeros(3), np.zeros(6), np.zeros(6)]
    with pytest.raises(ValueError, match="draw"):
        dual.pegasos(rows, np.ones(6), np.array([6]), 0.1, True, *state, (0.0, 0.0, 0.0))
    with pytest.raises(TypeError):
        dual.dense(np.asfortranarray(X)[:, ::-1])


def test_rows_of_zeros_and_weights_of_zero():
    X, loss = arrays()
    X[0] = 0.0
    found = dual.hinge(dual.dense(X), loss, np.zeros(6), 0.0, options(constant=0.0))
    assert found[3] - found[4] <= 1e-8
    found = dual.multiclass(
        dual.dense(X), np.arange(6) % 3, np.array([0.0, 0.2, 0.2, 0.2, 0.2, 0.2]), 1 - np.eye(3), options()
    )
    assert found[3] - found[4] <= 1e-8


def test_pegasos_steps_are_the_recursion():
    rng = np.random.default_rng(0)
    X, sign, alpha = rng.normal(size=(8, 3)), np.where(np.arange(8) % 2 == 0, 1.0, -1.0), 0.3
    draws = rng.integers(0, 8, size=50)
    V, U, count, early = np.zeros(3), np.zeros(3), np.zeros(8), np.zeros(8)
    rows = dual.dense(np.ascontiguousarray(X))
    steps, harmonic, _ = dual.pegasos(rows, sign, draws, alpha, False, V, U, count, early, (0.0, 0.0, 0.0))
    w, mean = np.zeros(3), np.zeros(3)
    for t, i in enumerate(draws, 1):
        eta = 1 / (alpha * t)
        inside = sign[i] * (X[i] @ w) < 1
        w = (1 - eta * alpha) * w + eta * inside * sign[i] * X[i]
        mean += w / 50
    assert V / (alpha * steps) == pytest.approx(w, abs=1e-12)
    assert (harmonic * V - U) / (alpha * steps) == pytest.approx(mean, abs=1e-12)
    assert (sign * count) @ X / (alpha * steps) == pytest.approx(w, abs=1e-12)


def test_control_c_stops_a_long_run():
    X, loss = arrays(4000, 50, 2)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    started = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        dual.hinge(dual.dense(X), loss, np.zeros(4000), 0.0, options(alpha=1e-9, tolerance=0.0, max_iter=10**9))
    assert time.perf_counter() - started < 2.0
