"""The kernels of stochastic gradient descent and of the perceptrons, against plain transcriptions."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp

from certifit import losses
from certifit._native import stochastic as native
from certifit.evaluation.losses import BINARY, REGRESSION
from certifit.evaluation.losses.base import kernel_form
from certifit.optimization.stochastic.engines import native_rows

EMPTY = np.zeros(0)
GIVEN = {losses.Huber: (0.7, 1.5), losses.Quantile: (0.3,), losses.EpsilonInsensitive: (0.2,)}
LOSSES = [loss(*GIVEN.get(loss, ())) for loss in (*REGRESSION, *BINARY) if "kernel" in vars(loss)]


def kernel_loss(loss):
    return native.loss(*kernel_form(loss))


def target(loss, n, rng):
    if loss.task == "binary":
        return rng.integers(0, 2, size=n).astype(float)
    return rng.gamma(2.0, size=n) if loss.name in ("poisson", "gamma") else rng.normal(size=n)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_are_those_of_the_package(loss):
    rng = np.random.default_rng(0)
    y, f = target(loss, 200, rng), np.concatenate([2 * rng.normal(size=198), [0.0, 30.0]])
    mine = kernel_loss(loss)
    np.testing.assert_allclose(
        [mine.value(*p) for p in zip(y, f, strict=True)], loss.value(y, f), rtol=1e-12, atol=1e-13
    )
    slopes = loss.derivative(y, f)
    np.testing.assert_allclose([mine.derivative(*p) for p in zip(y, f, strict=True)], slopes, rtol=1e-12, atol=1e-15)
    assert mine.smooth == loss.smooth
    if loss.smooth:
        bends = loss.second_derivative(y, f)
        np.testing.assert_allclose([mine.curvature(*p) for p in zip(y, f, strict=True)], bends, rtol=1e-12)
        inside = 0.5 * slopes
        wanted = loss.conjugate(y, inside)
        np.testing.assert_allclose(
            [mine.conjugate(*p) for p in zip(y, inside, strict=True)], wanted, rtol=1e-10, atol=1e-13
        )


@pytest.mark.parametrize("count", [1.0, 1e4, 1e9])
def test_counts_that_are_nearly_met_keep_their_digits(count):
    kernel, away = native.loss("poisson"), 10.0 ** -np.arange(1.0, 9.0)
    for a in (*away, *-away):
        a = float(np.log(count) + a) - float(np.log(count))  # of a score that can be written down
        wanted = count * (np.expm1(a) - a)
        assert kernel.value(count, float(np.log(count)) + a) == pytest.approx(wanted, rel=1e-9)
        u = count * a
        wanted = count * ((1.0 + a) * np.log1p(a) - a) + u * np.log(count)
        assert kernel.conjugate(count, u) == pytest.approx(wanted, rel=1e-12, abs=1e-12 * count * a * a)


@pytest.mark.parametrize("score", [1.0, 21.6, 36.0, 40.0, 300.0])
def test_the_logistic_loss_of_a_label_that_is_nearly_certain_keeps_its_digits(score):
    n = 19  # two times eight rows at once, and three alone
    y = np.arange(n) % 2.0
    X, p = np.where(y, score, -score)[:, None], np.full(n, 1 / n)
    found = native.evaluate(native_rows(X), y, p, kernel_loss(losses.Logistic()), np.ones(1), 0.0, 1)[0]
    assert found == pytest.approx(np.log1p(np.exp(-score)), rel=1e-14)
    assert kernel_loss(losses.Logistic()).value(1.0, score) == pytest.approx(np.log1p(np.exp(-score)), rel=1e-14)


def reference(X, y, order, loss, schedule, l1, l2, intercept, batch, w, b, average_from):
    """The three lines of the problem statement, written down without any trick."""
    size, offset, slope, power = schedule
    w_sum, b_sum, k, t = np.zeros_like(w), 0.0, 0, 0
    for number, start in enumerate(range(0, len(order), batch)):
        rows = order[start : start + batch]
        t += 1
        eta = size * (1.0 if power == 0 else (offset + slope * t) ** -power) * len(rows) / min(batch, len(order))
        g = loss.derivative(y[rows], X[rows] @ w + b)
        z = w - eta * X[rows].T @ g / len(rows)
        w = np.sign(z) * np.maximum(np.abs(z) - eta * l1, 0) / (1 + eta * l2)
        if intercept:
            b -= eta * g.mean()
        if number >= average_from:
            w_sum, b_sum, k = w_sum + w, b_sum + b, k + 1
    return w, b, w_sum, b_sum, k, t


def run(X, y, order, loss, schedule, l1, l2, intercept, batch, w, b, average_from):
    rows = native.csr(X.data, X.indices, X.indptr, X.shape[1]) if sp.issparse(X) else native.dense(X)
    plan = native.plan(kernel_loss(loss), schedule, l1, l2, intercept, True, batch)
    w, w_sum, scalars = w.copy(), np.zeros_like(w), np.array([b, 0.0, 0.0, 0.0])
    _, watched, diverged = native.epoch(
        rows, y, order, plan, average_from, 1, w, w_sum, scalars, np.zeros(len(y)), np.zeros(len(y))
    )
    assert not diverged
    assert watched == len(order)
    return w, scalars[0], w_sum, scalars[1], scalars[2], scalars[3]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.0, 0.3), (0.02, 0.0), (0.02, 0.3)])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_an_epoch_is_its_transcription(loss, batch, l1, l2, dtype):
    rng = np.random.default_rng(1)
    for d in (8, 11, 16, 21):
        X = (0.4 * rng.normal(size=(23, d)) * (rng.uniform(size=(23, d)) < 0.6)).astype(dtype)
        y = target(loss, 23, rng)
        order = rng.integers(0, 23, size=40).astype(np.uint32)
        for schedule in ((0.05, 1.0, 0.02, 0.75), (0.05, 0.0, 0.0, 0.0), (0.1, 0.0, 1.0, 0.5), (0.1, 0.0, 1.0, 1.0)):
            arguments = (order, loss, schedule, l1, l2, True, batch, 0.01 * rng.normal(size=d), 0.1, 4)
            wanted = reference(X.astype(np.float64), y, *arguments)
            for matrix in (X, sp.csr_array(X)):
                for found, value in zip(run(matrix, y, *arguments), wanted, strict=True):
                    np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-11)


def test_the_scale_of_sparse_rows_is_settled_in_time():
    """Strong shrinking drives the lazy scale to zero: it must be multiplied out before it gets there."""
    rng = np.random.default_rng(2)
    X, y = sp.random_array((50, 9), density=0.4, random_state=rng, format="csr"), rng.normal(size=50)
    order = rng.integers(0, 50, size=500).astype(np.uint32)
    arguments = (order, losses.Squared(), (0.5, 0.0, 0.0, 0.0), 0.001, 20.0, True, 1, np.ones(9), 0.0, 0)
    for found, value in zip(run(X, y, *arguments), reference(X.toarray(), y, *arguments), strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-8, atol=1e-10)


def test_without_an_intercept_it_stays():
    X, y = np.ones((4, 8)), np.ones(4)
    order = np.arange(4, dtype=np.uint32)
    arguments = (order, losses.Squared(), (0.1, 0.0, 0.0, 0.0), 0.0, 0.0, False, 1, np.zeros(8), 0.0, 0)
    assert run(X, y, *arguments)[1] == 0.0


def test_divergence_is_noticed():
    X, y = 100 * np.ones((50, 8)), np.ones(50)
    for rows in (native.dense(X), native.csr(*(lambda m: (m.data, m.indices, m.indptr, 8))(sp.csr_array(X)))):
        plan = native.plan(native.loss("squared"), (10.0, 0.0, 0.0, 0.0), 0.0, 0.0, True, False, 1)
        order = np.arange(50, dtype=np.uint32)
        assert native.epoch(rows, y, order, plan, 0, 1, np.zeros(8), np.zeros(8), np.zeros(4), EMPTY, EMPTY)[2]


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.smooth], ids=repr)
def test_the_evaluation_is_numpys(loss):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(9001, 10)), target(loss, 9001, rng)
    w, b, p = 0.1 * rng.normal(size=10), 0.2, rng.dirichlet(np.ones(9001))
    results = [native.evaluate(native.dense(X), y, p, kernel_loss(loss), w, b, threads) for threads in (1, 2)]
    risk, slope, curvature, g, h, f = results[0]
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
    scores = X @ w + b
    theta, bend = loss.derivative(y, scores), loss.second_derivative(y, scores)
    np.testing.assert_allclose(f, scores, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose([risk, slope, curvature], [p @ loss.value(y, scores), p @ theta, p @ bend], rtol=1e-9)
    np.testing.assert_allclose(g, X.T @ (p * theta), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(h, X.T @ (p * bend), rtol=1e-8, atol=1e-12)
    found = native.conjugate_sum(y, p, f, kernel_loss(loss), 0.01, 0.9, 2)
    assert found == pytest.approx(p @ loss.conjugate(y, 0.9 * (theta - 0.01 * bend)), rel=1e-9)


@pytest.mark.parametrize("block", [1, 4])
def test_a_shuffle_is_a_permutation_and_fair(block):
    state = np.array([1, 2, 3, 4], dtype=np.uint64)
    n, counts = 21, np.zeros((21, 21))
    for _ in range(4000):
        order = np.arange(n, dtype=np.uint32)
        native.shuffle(order, state, block, 100)
        np.testing.assert_array_equal(np.sort(order), np.arange(n))
        counts[np.arange(n), order] += 1
    # Five standard errors of a binomial count; with blocks, the incomplete last one is shuffled with its group.
    assert np.abs(counts - 4000 / n).max() < 5.5 * np.sqrt(4000 / n)
    again = np.array([1, 2, 3, 4], dtype=np.uint64)
    one, two = np.arange(n, dtype=np.uint32), np.arange(n, dtype=np.uint32)
    native.shuffle(one, again.copy(), block, 2)
    native.shuffle(two, again.copy(), block, 2)
    np.testing.assert_array_equal(one, two)


def test_perceptron_pocket_and_prototypes_refuse_what_does_not_fit():
    X = native.dense(np.ones((3, 8)))
    order, sign = np.arange(3, dtype=np.uint32), np.ones(3)
    with pytest.raises(ValueError, match="order"):
        native.perceptron(X, sign, np.array([3], dtype=np.uint32), 1.0, np.zeros(8), EMPTY, np.zeros(3))
    with pytest.raises(ValueError, match="w has length"):
        native.perceptron(X, sign, order, 1.0, np.zeros(7), EMPTY, np.zeros(3))
    with pytest.raises(ValueError, match="label"):
        native.multiclass(
            X, np.array([0, 1, 2]), order, 1.0, np.zeros((2, 8)), np.zeros(2), np.zeros((0, 8)), EMPTY, np.zeros(1)
        )
    with pytest.raises(ValueError, match="column index"):
        native.csr(np.ones(1), np.array([9], dtype=np.int32), np.array([0, 1], dtype=np.int32), 8)
    plan = native.plan(native.loss("squared"), (0.1, 0.0, 0.0, 0.0), 0.0, 0.0, True, False, 1)
    narrow = native.dense(np.ones((3, 2)))
    with pytest.raises(ValueError, match="8 columns"):
        native.epoch(narrow, sign, order, plan, 0, 1, np.zeros(2), np.zeros(2), np.zeros(4), EMPTY, EMPTY)
    with pytest.raises(ValueError, match="loss"):
        native.loss("no such loss")
    with pytest.raises(ValueError, match="step"):
        native.plan(native.loss("squared"), (np.nan, 0.0, 0.0, 0.0), 0.0, 0.0, True, False, 1)
    with pytest.raises(TypeError):
        native.dense(np.asfortranarray(np.ones((3, 8))))


def test_ctrl_c_stops_an_epoch():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(1000, 64)), rng.normal(size=1000)
    plan = native.plan(native.loss("squared"), (1e-6, 0.0, 0.0, 0.0), 0.0, 0.0, True, True, 1)
    order = np.zeros(200_000_000, dtype=np.uint32)
    rang = []

    def ring(number, frame):
        rang.append(time.perf_counter())
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.4)
    try:
        with pytest.raises(KeyboardInterrupt):
            native.epoch(native.dense(X), y, order, plan, 0, 8, np.zeros(64), np.zeros(64), np.zeros(4), EMPTY, EMPTY)
        assert time.perf_counter() - rang[0] < 1.0
    finally:
        signal.signal(signal.SIGALRM, before)
