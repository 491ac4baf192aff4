"""Networks in double precision: gradients by differences, steps as in native code, L-BFGS to a stationary point."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from tests.models.neural.test_model import waves

from certifit import LogisticRegression, MLPClassifier, MLPRegressor, NeuralNetwork, Ridge
from certifit.losses import LOSSES, MULTICLASS, Huber
from certifit.models.neural.layers import ACTIVATIONS, Columns, initial
from certifit.models.neural.objective import Target
from certifit.models.neural.trainers.cpu import Trainer
from certifit.models.neural.trainers.double import DoubleTrainer
from certifit.models.neural.training import Recipe, State

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
WEIGHT = RNG.uniform(0.5, 2.0, size=40)
SIZES = (3, 6, 5)
RECIPE = Recipe("adam", 0.01, "constant", 0.9, (0.9, 0.999), 1e-8, 0.1, 16, 0.0, 0.0, 0.0, 0.0, 3, 9, 0.0, 0)


def target_of(name: str) -> Target:
    """Targets that a loss takes, in units of their own; several columns where the loss is of one score."""
    loss = (LOSSES | MULTICLASS)[name]()
    score = np.sin(X[:, 0]) + X[:, 1]
    if loss.coupled:
        return Target.of(type(loss)(n_classes=3), np.digitize(score, [-0.5, 0.7]), WEIGHT)
    y = np.column_stack([score, 3 * X[:, 2] - score])
    if loss.task == "binary":
        y = (y > 0).astype(float)
    elif name in ("poisson", "gamma", "relative"):
        y = np.exp(0.3 * y)
    return Target.of(loss, y, WEIGHT)


def trainers(name: str, activation: str) -> tuple[DoubleTrainer, Trainer, State]:
    target, columns = target_of(name), Columns.of(X, WEIGHT, True)
    sizes = (*SIZES, target.n_scores)
    leak = 0.2 if activation == "prelu" else None
    state = State.start(initial(sizes, "glorot", 0.1, np.random.default_rng(1), leak, np.float64))
    double = DoubleTrainer(sizes, activation, 0.01, columns, X, target)
    single = Trainer(sizes, activation, 0.01, columns, X, target, 1)
    double.load(state)
    single.load(replace(state, weights=state.weights.astype(np.float32), first=np.zeros(single.net.size, np.float32),
                        second=np.zeros(single.net.size, np.float32)))  # fmt: skip
    return double, single, state


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("name", sorted(LOSSES | MULTICLASS))
def test_gradients_are_slopes_of_the_objective(name: str, activation: str) -> None:
    double, single, state = trainers(name, activation)
    at, alpha = state.weights, 0.3
    value, found = double.objective(at, alpha)
    direct = double.target.mean(double.scores()) + alpha * 0.5 * float((at**2 * double.decays).sum())
    assert value == pytest.approx(direct, rel=1e-12)
    step, size = 1e-6, np.abs(found).max()
    for i in {*range(0, at.shape[0], 5), at.shape[0] - 1}:
        shift = np.eye(1, at.shape[0], i)[0] * step
        slope = (double.objective(at + shift, alpha)[0] - double.objective(at - shift, alpha)[0]) / (2 * step)
        assert found[i] == pytest.approx(slope, abs=1e-6 * size)
    rows = np.arange(40, dtype=np.uint32)
    np.testing.assert_allclose(single.gradient(rows), double.gradient(rows), atol=1e-5 * size)
    slopes = double.input_slopes(rows)
    np.testing.assert_allclose(single.input_slopes(rows), slopes, atol=1e-5 * np.abs(slopes).max())


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "nesterov"])
@pytest.mark.parametrize(
    "more", [{}, {"clip": 0.05}, {"adversarial": 0.1}, {"epsilon": 0.01, "unscaled": True}], ids=str
)
def test_steps_are_those_of_native_code(optimizer: str, more: dict[str, Any]) -> None:
    double, single, _ = trainers("huber", "prelu")
    given, order = replace(RECIPE, optimizer=optimizer, **more), np.arange(40, dtype=np.uint32)[::-1].copy()
    for _ in range(3):
        (one, sound), (other, finite) = single.epoch(order, given, 0.01), double.epoch(order, given, 0.01)
        assert sound
        assert finite
        assert one == pytest.approx(other, rel=1e-4)
    np.testing.assert_allclose(single.state().weights, double.state().weights, atol=1e-4)
    assert double.state().steps == single.state().steps == 9


def test_dropout_and_noise_keep_the_mean() -> None:
    double, _, state = trainers("squared", "relu")
    plain, given = double.epoch(np.arange(40), replace(RECIPE, batch_size=40), 0.0)[0], np.tile(np.arange(40), 100)
    for draws in ({"dropout": 0.3}, {"input_noise": 0.2}):
        double.load(state)
        drawn = double.epoch(given, replace(RECIPE, **draws), 0.0)[0]  # type: ignore[arg-type]
        assert plain < drawn < 3 * plain
    # Of a network without bends the mean under dropout is the network.
    line, _, state = trainers("squared", "identity")
    line.load(state)
    scores = line.scores()
    seen: list[Any] = []
    slopes_at = lambda f: seen.append(f) or np.zeros_like(f)  # noqa: E731
    for k in range(400):
        line.net.backpropagated(state.weights, line.rows, slopes_at, 0.3, np.random.default_rng(k))
    off = np.mean(seen, axis=0) + line.target.offset - scores
    assert (np.abs(off) < 5 * np.std(seen, axis=0) / 20).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_double_precision_learns_the_same(dtype: str) -> None:
    rows, y = waves(300)
    given: dict[str, Any] = {"hidden": (16,), "learning_rate": 0.01, "max_iter": 30, "random_state": 0}
    model = MLPRegressor(dtype=dtype, **given).fit(rows, 1e3 + 10 * y)
    assert [coef.dtype for coef in model.coefs_] == [np.dtype(dtype), np.float64]
    other = MLPRegressor(dtype="float64" if dtype == "float32" else "float32", **given).fit(rows, 1e3 + 10 * y)
    np.testing.assert_allclose(model.predict(rows), other.predict(rows), atol=0.3)
    np.testing.assert_allclose(model.predict(csr_array(rows)), model.predict(rows), rtol=1e-6)
    assert model.check_gradients(rows[:50], 1e3 + 10 * y[:50]).passed
    assert model.unit_report(rows, y).units == (16,)
    assert model.adversarial(rows, y, 0.1).shape == rows.shape
    jobs = MLPRegressor(dtype=dtype, n_jobs=2, **given).fit(rows, 1e3 + 10 * y)
    np.testing.assert_array_equal(jobs.predict(rows), model.predict(rows))


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "identity"])
def test_lbfgs_ends_at_a_stationary_point(activation: str) -> None:
    rows, y = waves(200)
    weight = RNG.integers(0, 3, size=200)
    given: dict[str, Any] = {"hidden": (6,), "activation": activation, "optimizer": "lbfgs", "alpha": 0.05, "tol": 1e-8}
    model = MLPRegressor(**given, max_iter=3000, random_state=0).fit(rows, y, weight)
    norm = float(model.certificate_.note.split("norm ")[1].rstrip("."))
    assert norm < 1e-6
    assert not model.certificate_
    assert np.all(np.diff(model.loss_curve_) < 0.1)
    copies = np.repeat(np.arange(200), weight)
    again = MLPRegressor(**given, max_iter=3000, random_state=0).fit(rows[copies], y[copies])
    np.testing.assert_allclose(again.predict(rows), model.predict(rows), atol=1e-5)
    assert again.certificate_.objective == pytest.approx(model.certificate_.objective, rel=1e-9)
    turned = MLPRegressor(**given, max_iter=3000, random_state=0).fit(rows[::-1], y[::-1], weight[::-1])
    np.testing.assert_array_equal(turned.predict(rows), model.predict(rows))


def test_without_hidden_layers_lbfgs_finds_the_optimum() -> None:
    y = X @ [1.0, -2.0, 0.5] + RNG.normal(size=40)
    given: dict[str, Any] = {"hidden": (), "optimizer": "lbfgs", "tol": 1e-12, "max_iter": 1000, "random_state": 0}
    plain: dict[str, Any] = {"standardize": False, "standardize_target": False}
    found = MLPRegressor(alpha=0.1, **given, **plain).fit(X, y, WEIGHT)
    np.testing.assert_allclose(found.predict(X), Ridge(alpha=0.1).fit(X, y, WEIGHT).predict(X), rtol=1e-6)
    labels = np.digitize(y, [-1.0, 1.0])
    classes = MLPClassifier(alpha=0.1, **given, **plain).fit(X, labels, WEIGHT)
    wanted = LogisticRegression(alpha=0.1, tol=1e-12).fit(X, labels, WEIGHT)
    np.testing.assert_allclose(classes.predict_proba(X), wanted.predict_proba(X), atol=1e-6)
    assert classes.certificate_.objective == pytest.approx(wanted.certificate_.objective, rel=1e-8)
    # A layer of units that bend nothing is a line too.
    line = MLPRegressor(activation="identity", alpha=0.0, **{**given, "hidden": (4,)}, **plain).fit(X, y)
    np.testing.assert_allclose(line.predict(X), Ridge(alpha=1e-14).fit(X, y).predict(X), rtol=1e-4, atol=1e-4)


def test_lbfgs_goes_on_stops_early_and_says_when_it_stopped_short() -> None:
    rows, y = waves(200)
    warm = MLPRegressor(hidden=(8,), optimizer="lbfgs", max_iter=20, warm_start=True, random_state=0)
    with pytest.warns(ConvergenceWarning, match="L-BFGS stopped after 20 iterations.*greater max_iter"):
        first = warm.fit(rows, y).loss_curve_[-1]
    with pytest.warns(ConvergenceWarning, match="L-BFGS stopped"):
        assert warm.fit(rows, y).loss_curve_[-1] < first
    early = MLPRegressor(hidden=(60,), optimizer="lbfgs", alpha=0.0, early_stopping=True, max_iter=500, random_state=0)
    early.fit(rows, y + RNG.normal(size=200))
    assert early.best_epoch_ == int(np.argmin(early.history_["validation_loss"])) + 1 < early.n_iter_ < 500
    with pytest.raises(ValueError, match="stays the same: dropout must be 0"):
        MLPRegressor(optimizer="lbfgs", dropout=0.1).fit(rows, y)
    assert not hasattr(MLPRegressor(optimizer="lbfgs"), "partial_fit")
    with pytest.raises(ValueError, match="need device='cpu'"):
        MLPRegressor(optimizer="lbfgs", device="cuda").fit(rows, y)
    polished = NeuralNetwork(loss=Huber(0.3), hidden=(8,), optimizer="lbfgs", max_iter=2000, tol=1e-3, polish=True)
    assert polished.fit(rows, y).certificate_


def test_a_score_is_watched() -> None:
    rows, y = waves(200)
    given: dict[str, Any] = {"hidden": (16,), "learning_rate": 0.02, "early_stopping": True, "random_state": 0}
    model = MLPRegressor(scoring="r2", **given).fit(rows, y)
    scores = model.history_["validation_score"]
    assert model.best_epoch_ == int(np.argmax(scores)) + 1
    assert len(scores) == len(model.history_["validation_loss"]) == model.n_iter_
    told = MLPClassifier(scoring="accuracy", **given).fit(rows, y > 0)
    assert told.best_epoch_ == int(np.argmax(told.history_["validation_score"])) + 1
    assert "validation_score" not in MLPClassifier(**given).fit(rows, y > 0).history_
    with pytest.raises(ValueError, match="scoring='r2' is for targets that are numbers"):
        NeuralNetwork(loss="softmax", scoring="r2").fit(rows, (y > 0).astype(int))


def test_steps_shrink_with_the_rows_visited() -> None:
    rows, y = waves(100)
    model = MLPRegressor(hidden=(4,), optimizer="sgd", schedule="invscaling", power_t=0.25, max_iter=4, random_state=0)
    rates = model.fit(rows, y).history_["learning_rate"]
    np.testing.assert_allclose(rates, [1e-3 / (1 + 100 * k) ** 0.25 for k in range(4)])


@pytest.mark.parametrize("schedule", ["constant", "1/sqrt(t)", "cosine", "invscaling"])
def test_passes_follow_the_schedule(schedule: str) -> None:
    rows, y = waves(60)
    given: dict[str, Any] = {"hidden": (4,), "schedule": schedule, "max_iter": 4, "random_state": 0}
    online = MLPRegressor(**given)
    for _ in range(4):
        online.partial_fit(rows, y)
    wanted = MLPRegressor(**given).fit(rows, y).history_["learning_rate"]
    np.testing.assert_allclose(online.history_["learning_rate"], wanted)
    assert online.n_iter_ == len(online.loss_curve_) == 4
