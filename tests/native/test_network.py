"""The native network against NumPy in double precision: scores, gradients of every layer, steps of every optimizer."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.oracles.network import ACTIVATIONS, forward, gradient, weights

from certifit._native import network as native
from certifit.losses import Huber, Logistic, Poisson, Quantile, Softmax, Squared

RNG = np.random.default_rng(0)
SHAPES = [(7, 3), (5, 9, 1), (40, 33, 17, 10), (100, 64, 70)]
LOSSES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "squared": (Squared(), ("squared", 0.0, 0.0)),
    "huber": (Huber(0.5), ("huber", 0.5, Huber(0.5).curvature)),
    "quantile": (Quantile(0.3), ("quantile", 0.3, 0.0)),
    "logistic": (Logistic(), ("logistic", 0.0, 0.0)),
    "poisson": (Poisson(), ("poisson", 0.0, 0.0)),
    "softmax": (Softmax(), ("softmax", 0.0, 0.0)),
}


def rows(X: np.ndarray) -> Any:
    return native.inputs(native.dense(np.ascontiguousarray(X, dtype=np.float32)), None, None)


def bent(sizes: tuple[int, ...], plain: np.ndarray, seed: int) -> np.ndarray:
    """The layers with slopes below zero of both signs after the biases of each hidden one."""
    rng, pieces, at = np.random.default_rng(seed), [], 0
    for layer, (n, m) in enumerate(pairwise(sizes)):
        pieces += [plain[at : at + (n + 1) * m], rng.uniform(-0.3, 0.5, size=m if layer + 2 < len(sizes) else 0)]
        at += (n + 1) * m
    return np.concatenate(pieces).astype(np.float32)


def built(sizes: tuple[int, ...], activation: str = "relu", seed: int = 0) -> tuple[Any, np.ndarray]:
    net, plain = native.network(list(sizes), activation, 0.01), weights(sizes, seed)
    if activation == "prelu":
        plain = bent(sizes, plain, seed)
    net.load("weights", plain)
    return net, plain


def targets(name: str, n: int, K: int) -> np.ndarray:
    if name == "softmax":
        return RNG.integers(K, size=(n, 1)).astype(float)
    if name == "logistic":
        return RNG.integers(2, size=(n, K)).astype(float)
    return RNG.poisson(2.0, size=(n, K)).astype(float) if name == "poisson" else RNG.normal(size=(n, K))


def order(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.uint32)


def plan(rule: str = "adam", rate: float = 0.01, *, batch: int = 64, decay: float = 0.0, **further: Any) -> Any:
    draws = tuple(further.get(name, 0.0) for name in ("dropout", "noise", "attack"))
    return native.plan(rule, rate, 0.9, (0.9, 0.999, 1e-8), decay, batch, draws, further.get("clip", 0.0), 3)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("sizes", SHAPES, ids=str)
@pytest.mark.parametrize("n", [1, 45])
def test_scores_and_layers(sizes: tuple[int, ...], activation: str, n: int) -> None:
    X = RNG.normal(size=(n, sizes[0])).astype(np.float32)
    net, plain = built(sizes, activation)
    _, wanted = forward(sizes, plain, X, activation)
    for layer, values in enumerate(wanted):
        out = np.empty((n, sizes[layer]), dtype=np.float32)
        net.evaluate(rows(X), layer, out, 2)
        np.testing.assert_allclose(out, values, rtol=1e-5, atol=3e-6)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("sizes", SHAPES, ids=str)
def test_gradients_of_every_layer_activation_and_loss(sizes: tuple[int, ...], activation: str, name: str) -> None:
    n, K = 37, sizes[-1]
    loss, form = LOSSES[name]
    if name == "softmax":
        loss = Softmax(K)
    X, y, offset = RNG.normal(size=(n, sizes[0])).astype(np.float32), targets(name, n, K), np.linspace(-0.2, 0.2, K)
    net, plain = built(sizes, activation)
    scores = forward(sizes, plain, X, activation)[1][-1] + (0.0 if name == "softmax" else offset)
    target = y[:, 0].astype(int) if name == "softmax" else y
    wanted, at_rows = gradient(sizes, plain, X, activation, loss.derivative(target, scores))
    found, slopes = np.empty(net.size, dtype=np.float32), np.empty((n, sizes[0]), dtype=np.float32)
    total = net.differentiate(rows(X), y, order(n), native.loss(*form, offset), found, 2)
    net.input_slopes(rows(X), y, order(n), native.loss(*form, offset), slopes, 2)
    size = np.abs(wanted).max() / n
    np.testing.assert_allclose(found, wanted / n, rtol=1e-4, atol=1e-5 * size)
    np.testing.assert_allclose(slopes, at_rows, rtol=1e-4, atol=1e-4 * np.abs(at_rows).max())
    assert total == pytest.approx(float(loss.value(target, scores).sum()), rel=1e-4)

    def elsewhere(visited: Any, f: Any, slope: Any) -> float:
        slope[...] = loss.derivative(target[visited], f)
        return float(loss.value(target[visited], f).sum())

    through = np.empty_like(found)
    given = native.loss(elsewhere, np.zeros(K) if name == "softmax" else offset)
    assert net.differentiate(rows(X), y, order(n), given, through, 1) == pytest.approx(total, rel=1e-4)
    np.testing.assert_allclose(through, found, rtol=1e-4, atol=1e-5 * size)


@pytest.mark.parametrize("sizes", SHAPES, ids=str)
def test_slopes_below_zero_are_learned_by_their_gradient(sizes: tuple[int, ...]) -> None:
    n, K = 21, sizes[-1]
    X, y = RNG.normal(size=(n, sizes[0])).astype(np.float32), RNG.normal(size=(n, K))
    net, plain = built(sizes, "prelu")

    def scores(at: np.ndarray) -> np.ndarray:
        a, start = X.astype(float), 0
        for layer, (n_in, n_out) in enumerate(pairwise(sizes)):
            middle, end = start + n_in * n_out, start + (n_in + 1) * n_out
            a, start = a @ at[start:middle].reshape(n_in, n_out) + at[middle:end], end
            if layer + 2 < len(sizes):
                a, start = np.where(a > 0, a, at[end : end + n_out] * a), end + n_out
        assert start == at.shape[0]
        return a

    out, found = np.empty((n, K), dtype=np.float32), np.empty_like(plain)
    net.evaluate(rows(X), len(sizes) - 1, out, 2)
    np.testing.assert_allclose(out, scores(plain.astype(float)), rtol=1e-4, atol=1e-5)
    net.differentiate(rows(X), y, order(n), native.loss("squared", 0.0, 0.0, np.zeros(K)), found, 2)
    output = plain.shape[0] - (sizes[-2] + 1) * K
    below = range(output - (sizes[-2] if len(sizes) > 2 else 0), output)  # the slopes of the last hidden layer
    for i in {*np.linspace(0, plain.shape[0] - 1, 60).astype(int), *below}:
        step = np.eye(1, plain.shape[0], i)[0] * 1e-5
        up, down = (0.5 * ((scores(plain + sign * step) - y) ** 2).sum() / n for sign in (1.0, -1.0))
        assert found[i] == pytest.approx((up - down) / 2e-5, rel=1e-3, abs=1e-4 * float(np.abs(found).max()))


def test_the_oracle_is_the_slope() -> None:
    sizes, X, y = (5, 9, 4, 2), RNG.normal(size=(11, 5)), RNG.normal(size=(11, 2))
    for activation in ACTIVATIONS:
        plain = weights(sizes).astype(float)

        def objective(at: np.ndarray, activation: str = activation) -> float:
            return float(0.5 * ((forward(sizes, at, X, activation)[1][-1] - y) ** 2).sum())

        wanted, _ = gradient(sizes, plain, X, activation, forward(sizes, plain, X, activation)[1][-1] - y)
        for i in range(0, plain.shape[0], 7):
            step = np.eye(plain.shape[0])[i] * 1e-6
            assert (objective(plain + step) - objective(plain - step)) / 2e-6 == pytest.approx(wanted[i], abs=1e-6)


def stepped(rule: str, plain: np.ndarray, slopes: Any, decay: np.ndarray, steps: int, rate: float) -> np.ndarray:
    """The weights after some steps, in double precision."""
    w, m, v = plain.astype(float), np.zeros(plain.shape), np.zeros(plain.shape)
    for t in range(1, steps + 1):
        g = slopes(w, t)
        if rule in ("adam", "adamw"):
            g = g + decay * w if rule == "adam" else g
            w = w * (1.0 - rate * decay) if rule == "adamw" else w
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            w = w - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        else:
            g = g + decay * w
            m = 0.9 * m - rate * g
            w = w + (0.9 * m - rate * g if rule == "nesterov" else m)
    return w


@pytest.mark.parametrize("rule", ["adam", "adamw", "sgd", "nesterov"])
@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_steps_are_those_of_the_formulas(rule: str, clip: float) -> None:
    sizes, n, batch, rate = (20, 24, 3), 50, 20, 0.02
    X, y = RNG.normal(size=(n, 20)).astype(np.float32), RNG.normal(size=(n, 3))
    net, plain = built(sizes, "tanh")
    biased = np.concatenate([np.full(20 * 24, 0.3), np.zeros(24), np.full(24 * 3, 0.3), np.zeros(3)])

    def slopes(w: np.ndarray, t: int) -> np.ndarray:
        part = slice((t - 1) * batch, t * batch)
        difference = forward(sizes, w, X[part], "tanh")[1][-1] - y[part]
        g = gradient(sizes, w, X[part], "tanh", difference / difference.shape[0])[0]
        return g * min(1.0, clip / np.linalg.norm(g)) if clip else g

    clock = np.zeros(1)
    given = plan(rule, rate, batch=batch, decay=0.3, clip=clip)
    net.train(rows(X), y, order(n), native.loss("squared", 0.0, 0.0, np.zeros(3)), given, clock, 2)
    found = np.empty_like(plain)
    net.save("weights", found)
    assert clock[0] == 3
    np.testing.assert_allclose(found, stepped(rule, plain, slopes, biased, 3, rate), rtol=1e-3, atol=2e-5)


def trained(
    threads: int, n: int = 700, batch: int = 96, filled: float = 1.0, given: Any = rows, **further: Any
) -> list[np.ndarray]:
    """Summed losses, weights, a gradient and the outputs of every layer after three epochs on rows with this share of entries."""
    sizes, rng = (70, 130, 40, 12), np.random.default_rng(5)
    X, y = rng.normal(size=(n, 70)).astype(np.float32), rng.integers(12, size=(n, 1)).astype(float)
    X *= rng.uniform(size=X.shape) < filled
    net, plain = built(sizes, further.pop("activation", "relu"))
    loss, clock, found = native.loss("softmax", 0.0, 0.0, np.zeros(12)), np.zeros(1), np.empty_like(plain)
    inputs = given(X)
    sums = [net.train(inputs, y, order(n), loss, plan(batch=batch, **further), clock, threads)[0] for _ in range(3)]
    net.save("weights", found)
    slope, outputs = np.empty_like(plain), [np.empty((n, size), dtype=np.float32) for size in sizes]
    net.differentiate(inputs, y, order(n), loss, slope, threads)
    for layer, out in enumerate(outputs):
        net.evaluate(inputs, layer, out, threads)
    return [np.array(sums), found, slope, *outputs]


DRAWS: list[dict[str, Any]] = [{}, {"dropout": 0.3, "noise": 0.1}, {"clip": 0.1}, {"attack": 0.05}]


@pytest.mark.parametrize("further", DRAWS, ids=str)
def test_threads_change_nothing(further: dict[str, Any]) -> None:
    for one, other in zip(trained(1, **further), trained(3, **further), strict=True):
        np.testing.assert_array_equal(one, other)


def kept(X: np.ndarray, threads: int = 2) -> Any:
    return native.kept(native.dense(X), np.zeros(X.shape[1]), np.ones(X.shape[1]), threads)


@pytest.mark.parametrize(
    "further", [*DRAWS, {"batch": 50, "activation": "tanh"}, {"activation": "prelu", "dropout": 0.2}], ids=str
)
def test_zeros_that_are_left_out_change_no_bit(further: dict[str, Any]) -> None:
    wanted = trained(1, filled=0.2, **further)
    for threads in (1, 3):
        for one, other in zip(trained(threads, filled=0.2, given=kept, **further), wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def test_only_rows_of_zeros_leave_them_out() -> None:
    import scipy.sparse as sp

    X = RNG.normal(size=(400, 45)) * (RNG.uniform(size=(400, 45)) < 0.2)
    X[3] = 0.0
    sparse, center, factor = sp.csr_array(X), np.zeros(45), RNG.uniform(0.5, 2.0, size=45)
    csr = native.csr(sparse.data, sparse.indices, sparse.indptr, 45)
    assert kept(X).compact
    assert not kept(RNG.normal(size=(400, 45))).compact
    assert not native.kept(csr, center + 0.5, factor, 1).compact  # what is not stored is not zero once it is centered
    net, _ = built((45, 8, 2))
    found = [np.empty((400, 2), dtype=np.float32) for _ in range(3)]
    inputs = [
        native.inputs(csr, center, factor),
        native.kept(csr, center, factor, 2),
        native.kept(native.dense(X), center, factor, 2),
    ]
    for seen, out in zip(inputs, found, strict=True):
        assert seen.shape == (400, 45)
        net.evaluate(seen, 2, out, 2)
        np.testing.assert_array_equal(out, found[0])
    assert [seen.compact for seen in inputs] == [False, True, True]


def test_dropout_keeps_the_mean_and_noise_has_its_deviation() -> None:
    n = 4000
    net = native.network([1, 50, 1], "relu", 0.0)
    plain = np.concatenate([np.zeros(50), np.ones(50), np.full(50, 0.02), np.zeros(1)]).astype(np.float32)
    seen: list[np.ndarray] = []

    def watch(visited: Any, f: Any, slope: Any) -> float:
        seen.append(f.copy())
        slope[...] = 0.0
        return 0.0

    def train(trained: Any, X: Any, **options: float) -> None:
        loss = native.loss(watch, np.zeros(1))
        trained.train(rows(X), np.zeros((n, 1)), order(n), loss, plan(**options), np.zeros(1), 1)

    net.load("weights", plain)
    train(net, np.zeros((n, 1)), dropout=0.4)
    scores = np.concatenate(seen)[:, 0]
    # The mean of 50 units, each kept with probability 0.6 and scaled by 1/0.6.
    assert scores.mean() == pytest.approx(1.0, abs=5 * np.sqrt(0.4 / 0.6 / 50 / n))
    assert scores.std() == pytest.approx(np.sqrt(0.4 / 0.6 / 50), rel=0.05)
    seen.clear()
    line = native.network([1, 1], "relu", 0.0)
    line.load("weights", np.array([1.0, 0.0], dtype=np.float32))
    train(line, np.ones((n, 1)), noise=0.5)
    noise = np.concatenate(seen)[:, 0] - 1.0
    assert abs(noise.mean()) < 5 * 0.5 / np.sqrt(n)
    assert noise.std() == pytest.approx(0.5, rel=0.06)


def test_scaling_in_the_kernel_is_scaling_before_it() -> None:
    import scipy.sparse as sp

    X = RNG.normal(size=(30, 40)) * (RNG.uniform(size=(30, 40)) < 0.3)
    center, factor = RNG.normal(size=40), RNG.uniform(0.5, 2.0, size=40)
    net, _ = built((40, 8, 2))
    sparse = sp.csr_array(X)
    given = [
        rows((X - center) * factor),
        native.inputs(native.dense(X), center, factor),
        native.inputs(native.csr(sparse.data, sparse.indices, sparse.indptr, 40), center, factor),
    ]
    found = [np.empty((30, 2), dtype=np.float32) for _ in given]
    for inputs, out in zip(given, found, strict=True):
        net.evaluate(inputs, 2, out, 1)
        np.testing.assert_array_equal(out, found[0])


def test_what_does_not_fit_is_refused() -> None:
    net, plain = built((4, 3, 2))
    X, y, loss, zeros = (
        rows(np.zeros((6, 4))),
        np.zeros((6, 2)),
        native.loss("squared", 0.0, 0.0, np.zeros(2)),
        np.zeros(1),
    )
    for wrong, given in [
        ("another number of columns", (rows(np.zeros((6, 5))), y, order(6), loss)),
        ("row that does not exist", (X, y, order(7), loss)),
        ("length", (X, y[:5], order(5), loss)),
        ("columns than the loss wants", (X, y[:, :1].copy(), order(6), loss)),
        ("offset", (X, y, order(6), native.loss("squared", 0.0, 0.0, zeros))),
        ("no score", (X, np.full((6, 1), 2.0), order(6), native.loss("softmax", 0.0, 0.0, zeros))),
        ("at least one row", (X, y, order(0), loss)),
    ]:
        with pytest.raises(ValueError, match=wrong):
            net.train(*given, plan(), np.zeros(1), 1)
    for call in (
        lambda: native.network([4], "relu", 0.0),
        lambda: native.network([4, 0, 1], "relu", 0.0),
        lambda: native.network([4, 1], "square", 0.0),
        lambda: native.loss("no such loss", 0.0, 0.0, zeros),
        lambda: plan("descent"),
        lambda: plan(batch=0),
        lambda: plan(dropout=1.0),
        lambda: net.load("weights", plain[:-1].copy()),
        lambda: net.load("third", plain),
        lambda: net.evaluate(X, 3, np.empty((6, 2), dtype=np.float32), 1),
        lambda: native.inputs(native.dense(np.zeros((2, 4))), None, None),
        lambda: net.train(X, y, order(6), loss, plan(), np.zeros(1), 0),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            call()


def test_a_loss_that_fails_is_told() -> None:
    net, _ = built((4, 3, 1))

    def broken(*_: Any) -> float:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        net.train(
            rows(np.zeros((6, 4))), np.zeros((6, 1)), order(6), native.loss(broken, np.zeros(1)), plan(), np.zeros(1), 1
        )
