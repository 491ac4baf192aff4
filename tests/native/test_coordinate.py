"""The strict boundary of the coordinate-descent kernels, and their one-dimensional pieces."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certifit._native import coordinate

finite = st.floats(-50, 50)
positive = st.floats(0, 20)
exponent = st.sampled_from([0.0, 1.05, 1.3, 1.7, 2.0])


def one(l1, l2, lower=-np.inf, upper=np.inf, q=0.0):
    return coordinate.Penalty(*(np.array([float(v)]) for v in (l1, l2, lower, upper)), q)


def value(w, l1, l2, q):
    return (l1 / q * np.abs(w) ** q if q else l1 * np.abs(w)) + 0.5 * l2 * w * w


@settings(max_examples=200, deadline=None)
@given(
    finite,
    st.floats(1e-3, 20),
    positive,
    positive,
    finite,
    positive,
    st.sampled_from([0.0, 1.05, 1.3, 1.7, 2.0]),
)
def test_the_minimizer_beats_every_other_point(z, H, l1, l2, lower, width, q):
    upper = lower + width
    w = coordinate.minimizer(one(l1, l2, lower, upper, q), z, H)
    assert lower <= w <= upper
    others = np.clip(np.r_[np.linspace(lower, upper, 101), w + np.geomspace(1e-8, 1, 9), 0.0], lower, upper)

    def cost(t):
        return 0.5 * H * t * t - z * t + value(t, l1, l2, q)

    assert cost(w) <= cost(others).min() + 1e-9 * (1 + abs(z) * (1 + abs(w)))


@settings(max_examples=200, deadline=None)
@given(finite, positive, positive, finite, positive, st.sampled_from([0.0, 1.2, 1.5, 2.0]))
def test_the_conjugate_is_the_supremum(v, l1, l2, lower, width, q):
    upper = lower + width
    found = coordinate.conjugate(one(l1, l2, lower, upper, q), v)
    grid = np.clip(np.r_[np.linspace(lower, upper, 20001), 0.0], lower, upper)
    best = (v * grid - value(grid, l1, l2, q)).max()
    assert found >= best - 1e-9 * (1 + abs(best))
    assert found <= best + 1e-2 * (1 + abs(best) + abs(v) * width * 1e-2)


def test_the_conjugate_is_infinite_outside_its_domain():
    assert coordinate.conjugate(one(1, 0), 1.5) == np.inf
    assert coordinate.conjugate(one(1, 0), 1.0) == 0
    assert coordinate.conjugate(one(1, 0, 0, np.inf), -5.0) == 0
    assert coordinate.conjugate(one(1, 0, 0, np.inf), 1.5) == np.inf
    assert coordinate.conjugate(one(1, 2), 3.0) == pytest.approx(1.0)


def arguments(n=6, d=3):
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((n, d)))
    penalty = coordinate.Penalty(np.full(d, 0.1), np.zeros(d), np.full(d, -np.inf), np.full(d, np.inf), 0.0)
    return {
        "X": coordinate.dense(X),
        "y": rng.standard_normal(n),
        "p": np.full(n, 1 / n),
        "penalty": penalty,
        "coef": np.zeros(d),
        "options": coordinate.Options(True, 1e-8, 10, 1),
    }


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("y", np.zeros(5)),
        ("p", np.zeros(7)),
        ("p", -np.ones(6)),
        ("p", np.full(6, np.nan)),
        ("coef", np.zeros(4)),
    ],
)
def test_wrong_lengths_and_weights_are_refused(name, bad):
    with pytest.raises(ValueError, match=name):
        coordinate.least_squares(**(arguments() | {name: bad}))


def test_wrong_types_and_layouts_are_refused():
    with pytest.raises(TypeError):
        coordinate.least_squares(**(arguments() | {"y": np.zeros(6, np.float32)}))
    for X in (np.zeros((3, 2), np.int64, order="F"), np.zeros((3, 2), order="C"), np.zeros(3)):
        with pytest.raises(TypeError):
            coordinate.dense(X)


@pytest.mark.parametrize(
    ("indices", "indptr"),
    [
        ([0, 3], [0, 1, 2]),
        ([0, -1], [0, 1, 2]),
        ([0, 1], [0, 2, 1]),
        ([0, 1], [0, 1, 3]),
        ([0, 1], [1, 1, 2]),
        ([0], [0, 1, 2]),
    ],
)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_broken_sparse_matrices_are_refused(indices, indptr, dtype):
    with pytest.raises(ValueError):
        coordinate.csc(np.ones(2), np.array(indices, dtype), np.array(indptr, dtype), 3)


def test_broken_penalties_options_and_columns_are_refused():
    def arrays(l1=0.1, l2=0.0, lower=-1.0, upper=1.0):
        return [np.full(3, v) for v in (l1, l2, lower, upper)]

    for bad in ({"l1": -1.0}, {"l2": np.inf}, {"lower": 2.0}, {"upper": np.nan}):
        with pytest.raises(ValueError):
            coordinate.Penalty(*arrays(**bad), 0.0)
    with pytest.raises(ValueError):
        coordinate.Penalty(*arrays(), 3.0)
    with pytest.raises(ValueError):
        coordinate.Penalty(np.ones(3), np.ones(2), np.ones(3), np.ones(3), 0.0)
    for bad in ((True, -1.0, 10, 1), (True, np.nan, 10, 1), (True, 1.0, -1, 1), (True, 1.0, 10, 0)):
        with pytest.raises(ValueError):
            coordinate.Options(*bad)
    good = arguments()
    step = {"X": good["X"], "r": good["y"], "h": good["p"], "penalty": good["penalty"], "coef": good["coef"]}
    for columns in ([3], [-1], [0, 0]):
        with pytest.raises(ValueError, match="columns"):
            coordinate.quadratic(**step, columns=np.array(columns, np.int64), options=good["options"])
    with pytest.raises(ValueError, match="square"):
        coordinate.gram_quadratic(np.ones((3, 2)), np.ones(3), good["penalty"], np.zeros(3), good["options"])


def test_ctrl_c_stops_a_long_fit():
    rng = np.random.default_rng(0)
    n, d = 400, 400
    X = np.asfortranarray(np.cumsum(rng.standard_normal((n, d)), axis=1))
    penalty = coordinate.Penalty(np.full(d, 1e-9), np.zeros(d), np.full(d, -np.inf), np.full(d, np.inf), 1.5)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        coordinate.least_squares(
            coordinate.dense(X), rng.standard_normal(n), np.full(n, 1 / n), penalty, np.zeros(d),
            coordinate.Options(True, 0.0, 10**9, 1),
        )  # fmt: skip
    timer.join()
    assert time.perf_counter() - start < 1.5
