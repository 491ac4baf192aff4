"""Multilayer perceptrons: what they learn, what must not matter, and how they fail."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from tests.evaluation.user_losses import LogCosh
from tests.oracles.network import forward

from certifit import MLPClassifier, MLPRegressor, NeuralNetwork
from certifit.losses import LOSSES, Huber, MulticlassHinge, Quantile, Softmax
from certifit.models.neural.layers import ACTIVATIONS

DIGITS, LABELS = load_digits(return_X_y=True)
QUICK: dict[str, Any] = {"hidden": (24,), "learning_rate": 0.01, "max_iter": 40, "random_state": 0}


def waves(n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 2))
    return X, np.sin(X[:, 0]) * X[:, 1] + 0.05 * rng.normal(size=n)


def test_learns_digits() -> None:
    model = MLPClassifier(hidden=(64, 32), max_iter=25, random_state=0).fit(DIGITS[::2], LABELS[::2])
    assert model.score(DIGITS[1::2], LABELS[1::2]) > 0.9
    np.testing.assert_allclose(model.predict_proba(DIGITS).sum(axis=1), 1.0, rtol=1e-12)
    assert model.loss_curve_[-1] < 0.1 * model.loss_curve_[0]
    assert model.n_iter_ == len(model.history_["learning_rate"]) == 25


@pytest.mark.parametrize("activation", [name for name in ACTIVATIONS if name != "identity"])
def test_every_activation_learns_what_no_line_can(activation: str) -> None:
    X, y = waves()
    model = MLPRegressor(**{**QUICK, "max_iter": 150}, activation=activation).fit(X, y)
    assert model.score(*waves(seed=1)) > 0.9


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "nesterov"])
@pytest.mark.parametrize("schedule", ["constant", "1/sqrt(t)", "cosine", "plateau"])
def test_every_optimizer_and_schedule_learns(optimizer: str, schedule: str) -> None:
    X, y = waves()
    rate = 0.02 if optimizer.startswith("adam") else 0.05
    model = MLPRegressor(
        hidden=(24,), learning_rate=rate, max_iter=80, optimizer=optimizer, schedule=schedule, random_state=0
    )
    assert model.fit(X, y).score(X, y) > 0.85
    rates = model.history_["learning_rate"]
    assert rates[0] == rate
    assert (rates[-1] < 0.2 * rate) == (schedule in ("1/sqrt(t)", "cosine"))


def test_a_plateau_cuts_the_step() -> None:
    X, y = waves()
    model = MLPRegressor(
        hidden=(8,), learning_rate=0.05, schedule="plateau", n_iter_no_change=3, tol=0.01, random_state=0
    )
    rates = model.fit(X, y).history_["learning_rate"]
    np.testing.assert_allclose(sorted(set(rates), reverse=True), [0.05 * 0.2**k for k in range(5)])


# The perceptron's loss is least, zero, at the constant score zero.
@pytest.mark.parametrize("name", [name for name in LOSSES if name != "perceptron"])
def test_every_loss_trains_below_the_best_constant(name: str) -> None:
    X, y = waves(300)
    loss = LOSSES[name]()
    if loss.task == "binary":
        y = (y > 0).astype(float)
    elif name in ("poisson", "gamma", "relative"):
        y = np.exp(0.3 * y)
    model = NeuralNetwork(loss=name, **QUICK).fit(X, y)
    constant = loss.optimal_constant(y, np.ones(300))
    assert model.loss_curve_[-1] < 0.8 * loss.value(y, np.full(300, constant)).mean()
    assert model.predict(X).shape == (300,)


def test_a_loss_of_your_own() -> None:
    X, y = waves()
    model = NeuralNetwork(loss=LogCosh(), **{**QUICK, "max_iter": 150}).fit(X, y)
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match="adversarial_eps needs a loss with a native kernel"):
        NeuralNetwork(loss=LogCosh(), adversarial_eps=0.1, **QUICK).fit(X, y)


def test_losses_of_several_scores() -> None:
    for loss in ("softmax", MulticlassHinge()):
        model = NeuralNetwork(loss=loss, **QUICK).fit(DIGITS, LABELS)
        scores = model.predict(DIGITS)
        assert scores.shape == (len(LABELS), 10)
        assert (scores.argmax(axis=1) == LABELS).mean() > 0.97
    shares = np.eye(10)[LABELS] * 0.9 + 0.01
    soft = NeuralNetwork(loss=Softmax(), **QUICK).fit(DIGITS, shares)
    assert np.abs(soft.predict(DIGITS) - shares).mean() < 0.02


def test_several_targets_are_learned_together() -> None:
    X, y = waves()
    model = MLPRegressor(loss="huber", **{**QUICK, "max_iter": 150}).fit(X, np.column_stack([y, 100 - 3 * y]))
    found = model.predict(X)
    assert found.shape == (600, 2)
    assert np.corrcoef(found[:, 0], y)[0, 1] > 0.95
    assert np.corrcoef(found[:, 1], y)[0, 1] < -0.95


def test_predictions_are_those_of_the_layers() -> None:
    X, y = waves(200)
    model = MLPRegressor(hidden=(7, 5), activation="tanh", max_iter=5, random_state=0).fit(X, 1e3 + 10 * y)
    plain = np.concatenate([p.ravel() for pair in zip(model.coefs_, model.intercepts_, strict=True) for p in pair])
    _, layers = forward((2, 7, 5, 1), plain, (X - model.mean_) / model.scale_, "tanh")
    np.testing.assert_allclose(model.predict(X), layers[-1][:, 0], rtol=1e-6)
    np.testing.assert_allclose(model.features(X, 1), layers[1], atol=1e-5)
    np.testing.assert_allclose(model.features(X), layers[2], atol=1e-5)
    with pytest.raises(ValueError, match="layer must be an integer from 0"):
        model.features(X, 3)


def test_no_hidden_layer_is_the_linear_model() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = X @ [1.0, -2.0, 0.5] + 3
    model = MLPRegressor(hidden=(), alpha=0.0, learning_rate=0.05, schedule="cosine", tol=0, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coefs_[0][:, 0] / model.scale_, [1.0, -2.0, 0.5], atol=1e-3)


@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_units_do_not_matter(unit: float, shift: float) -> None:
    X, y = waves()
    one = MLPRegressor(**QUICK).fit(X, y).predict(X)
    other = MLPRegressor(**QUICK).fit(X * 1e5 + 7, unit * 2.0**10 * (y + shift)).predict(X * 1e5 + 7)
    assert np.abs(other / (unit * 2.0**10) - shift - one).mean() < 0.1
    assert np.corrcoef(other, one)[0, 1] > 0.98


def test_seeds_repeat_and_differ() -> None:
    X, y = waves(200)
    given = {**QUICK, "dropout": 0.2, "input_noise": 0.1}
    first, again = (MLPRegressor(**given).fit(X, y).predict(X) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = MLPRegressor(**{**given, "random_state": 1}).fit(X, y).predict(X)
    assert np.abs(first - other).max() > 1e-3


@pytest.mark.parametrize("init", ["normal", "he", "glorot"])
def test_initial_weights_have_the_spread_of_their_rule(init: str) -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 200)), np.arange(20.0)
    model = MLPRegressor(
        hidden=(300,), init=init, bias_init=0.1, learning_rate=1e-12, alpha=0.0, max_iter=1, random_state=0
    )
    first = model.fit(X, y).coefs_[0]
    wanted = {"normal": 1 / 200, "he": 2 / 200, "glorot": 2 / 500}[init]
    assert first.var() == pytest.approx(wanted, rel=0.03)
    np.testing.assert_allclose(model.intercepts_[0], 0.1, rtol=1e-6)


def test_early_stopping_goes_back_to_the_best_epoch() -> None:
    X, y = waves(150)
    noisy = y + np.random.default_rng(1).normal(size=150)
    model = MLPRegressor(
        hidden=(128, 64), learning_rate=0.01, early_stopping=True, validation_fraction=0.3, random_state=0
    )
    model.fit(X, noisy)
    held = model.history_["validation_loss"]
    assert model.best_epoch_ == np.argmin(held) + 1 < model.n_iter_ == len(held)
    shorter = MLPRegressor(**{**model.get_params(), "max_iter": model.best_epoch_}).fit(X, noisy)
    np.testing.assert_array_equal(shorter.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="too few distinct rows"):
        MLPRegressor(early_stopping=True).fit(np.ones((5, 1)), np.ones(5))


def test_regularizers_regularize() -> None:
    X, y = waves(150)

    def size(**given: Any) -> float:
        model = MLPRegressor(**{**QUICK, "max_iter": 100}, **given).fit(X, y)
        return sum(float((coef**2).sum()) for coef in model.coefs_)

    assert size(alpha=0.1) < 0.5 * size(alpha=0.0)
    assert size(alpha=0.1, optimizer="adamw") < size(alpha=0.0, optimizer="adamw")
    plain, dropped = (MLPRegressor(**QUICK, dropout=share).fit(X, y) for share in (0.0, 0.5))
    assert dropped.loss_curve_[-1] > plain.loss_curve_[-1]


def test_partial_fit_and_warm_start_go_on() -> None:
    model = MLPClassifier(hidden=(32,), random_state=0)
    for _ in range(12):
        for start in range(0, 1200, 300):
            model.partial_fit(DIGITS[start : start + 300], LABELS[start : start + 300], classes=np.arange(10))
    assert model.n_iter_ == 48
    assert model.score(DIGITS[1200:], LABELS[1200:]) > 0.8
    with pytest.raises(ValueError, match="not in classes"):
        model.partial_fit(DIGITS[:2], ["a", "b"])
    X, y = waves()
    warm = MLPRegressor(**{**QUICK, "max_iter": 20}, warm_start=True).fit(X, y)
    before = warm.loss_curve_
    assert warm.fit(X, y).loss_curve_[0] < 1.1 * before[-1]
    with pytest.raises(ValueError, match="continue a network of layers"):
        warm.set_params(hidden=(3,)).fit(X, y)
    online = NeuralNetwork(loss=Quantile(0.5), **QUICK)
    for _ in range(3):
        online.partial_fit(X, y)
    assert online.loss_curve_[-1] < online.loss_curve_[0]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"optimizer": "adam"}, {"optimizer": "sgd"}),
        ({"optimizer": "nesterov"}, {"optimizer": "adamw"}),
        ({"optimizer": "lbfgs", "tol": 0.1}, {"optimizer": "adam"}),
    ],
    ids=str,
)
def test_another_optimizer_goes_on_without_the_memory_of_the_last(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    X, y = waves(200)
    model = MLPRegressor(**QUICK, **before, warm_start=True).fit(X, y)
    fresh = copy.deepcopy(model).set_params(**after)
    fresh._moments = None
    np.testing.assert_array_equal(model.set_params(**after).fit(X, y).predict(X), fresh.fit(X, y).predict(X))


def test_training_goes_on_in_another_precision_with_its_memory() -> None:
    X, y = waves(200)
    for before, after in (("float32", "float64"), ("float64", "float32")):
        model = MLPRegressor(**QUICK, dtype=before, warm_start=True).fit(X, y)
        plain = copy.deepcopy(model).fit(X, y)
        np.testing.assert_allclose(model.set_params(dtype=after).fit(X, y).predict(X), plain.predict(X), atol=1e-3)


def test_what_cannot_go_on_is_named() -> None:
    X, y = waves(200)
    model = MLPRegressor(**QUICK, warm_start=True).fit(X, y)
    learned = MLPRegressor(**QUICK, warm_start=True, activation="prelu").fit(X, y)
    coded = MLPRegressor(**QUICK, warm_start=True, categorical_features=[0]).fit(np.rint(X), y)
    classes = NeuralNetwork(**QUICK, loss="softmax").partial_fit(X, np.arange(200) % 3)
    for case, y_new, change, message in (
        (model, np.c_[y, y], {}, "1 of them, and y asks for 2"),
        (classes, np.arange(200) % 2, {}, "3 of them, and y asks for 2"),
        (model, np.abs(y), {"loss": "poisson"}, "set loss back to Squared"),
        (model, y, {"categorical_features": [0]}, r"categorical_features=\[0\] is not what it began with"),
        (coded, y, {"categorical_features": None}, "categorical_features=None is not what it began with"),
        (model, y, {"activation": "prelu"}, "did not learn their slopes below zero"),
        (learned, y, {"activation": "relu"}, "whose units learned their slopes below zero"),
    ):
        changed = copy.deepcopy(case).set_params(**change)
        with pytest.raises(ValueError, match=message):
            changed.partial_fit(X, y_new)
        if changed.warm_start:
            with pytest.raises(ValueError, match=message):
                changed.fit(X, y_new)
        changed.set_params(warm_start=False).fit(X, y_new)
    with pytest.raises(ValueError, match="did not learn"):
        model.set_params(activation="prelu").predict(X)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("optimizer", ["sgd", "nesterov", "adam", "adamw"])
def test_a_step_that_runs_away_is_told_and_taken_back(optimizer: str, dtype: str) -> None:
    X, y = waves(200)
    model = MLPRegressor(optimizer=optimizer, learning_rate=1e30, dtype=dtype, max_iter=5, random_state=0)
    with pytest.warns(ConvergenceWarning, match="ran away in epoch 1.*smaller learning_rate"):
        model.fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert "ran away" in model.certificate_.note


def test_a_gradient_beyond_its_precision_has_no_norm() -> None:
    X, y = waves(200)
    with pytest.warns(ConvergenceWarning, match="ran away in epoch 2"):
        model = MLPRegressor(hidden=(8, 6), optimizer="sgd", learning_rate=10**4.25, max_iter=5, random_state=0).fit(
            X, y
        )
    assert "gradient of the objective is beyond the range of its precision" in model.certificate_.note
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("epochs", [1, 2, 5])
def test_a_network_that_says_no_numbers_goes_back_to_its_start(epochs: int) -> None:
    X, y = waves(200)
    given: dict[str, Any] = {"hidden": (8, 6), "optimizer": "sgd", "max_iter": epochs, "random_state": 0}
    for rate in (10**2.75, 1e5, 1e6):
        model = MLPRegressor(learning_rate=rate, **given).fit(X, y)
        assert np.isfinite(model.predict(X)).all()
    assert "went back to the weights it began with" in model.certificate_.note


def test_constant_columns_and_constant_targets() -> None:
    X, y = waves(80)
    for optimizer in ("adam", "lbfgs"):
        given: dict[str, Any] = {"hidden": (8,), "max_iter": 500, "optimizer": optimizer, "random_state": 0}
        flat = MLPRegressor(**given).fit(np.ones((80, 2)), y)
        np.testing.assert_allclose(flat.predict(np.ones((1, 2))), y.mean(), atol=1e-3)
        same = MLPRegressor(**given).fit(X, np.full(80, 7.0))
        np.testing.assert_allclose(same.predict(X), 7.0, rtol=1e-9)
    later = MLPRegressor(hidden=(8,), learning_rate=0.01, random_state=0).partial_fit(X, np.full(80, 7.0))
    for _ in range(60):
        later.partial_fit(X, y + 7.0)
    assert later.score(X, y + 7.0) > 0.5


def test_rows_too_large_to_be_taken_as_they_are() -> None:
    X, y = waves(80)
    with pytest.raises(ValueError, match=r"entries as large as .*standardize=True"):
        MLPRegressor(standardize=False).fit(X * 1e14, y)
    with pytest.raises(ValueError, match="entries as large as"):
        MLPRegressor(standardize=False).partial_fit(sp.csr_array(X * 1e14), y)


def test_a_batch_larger_than_the_data_is_the_data() -> None:
    X, y = waves(50)
    one, other = (MLPRegressor(**QUICK, batch_size=size).fit(X, y).predict(X) for size in (50, 10_000))
    np.testing.assert_array_equal(one, other)


def test_weights_are_copies() -> None:
    X, y = waves(100)
    weight = np.random.default_rng(0).integers(0, 3, size=100)
    one = MLPRegressor(**QUICK).fit(X, y, sample_weight=weight).predict(X)
    copies = np.repeat(np.arange(100), weight)
    np.testing.assert_array_equal(MLPRegressor(**QUICK).fit(X[copies], y[copies]).predict(X), one)


def test_the_certificate_claims_nothing_and_the_objective_is_true() -> None:
    X, y = waves()
    model = NeuralNetwork(loss=Huber(0.3), alpha=0.01, **QUICK).fit(X, y)
    assert model.certificate_.kind == "none"
    assert not model.certificate_
    assert "local optima" in model.certificate_.note
    loss = Huber(0.3).value(y, model.predict(X)).mean()
    unit = y.std()  # the penalty is that of the network's own unit of y
    last = model.coefs_[-1] / unit
    penalty = 0.5 * 0.01 * unit**2 * ((model.coefs_[0].astype(float) ** 2).sum() + (last**2).sum())
    assert model.certificate_.objective == pytest.approx(loss + penalty, rel=1e-4)


def test_units_learn_their_slopes_below_zero() -> None:
    X = np.linspace(-2.0, 2.0, 400)[:, None]
    y = np.where(X[:, 0] > 0, X[:, 0], -1.5 * X[:, 0])
    given: dict[str, Any] = {"hidden": (6,), "activation": "prelu", "learning_rate": 0.02, "random_state": 0}
    model = MLPRegressor(**given, max_iter=60, warm_start=True).fit(X, y)
    assert [slopes.shape for slopes in model.leaks_] == [(6,)]
    assert np.abs(model.leaks_[0] - 0.01).max() > 0.1
    z = (X - model.mean_) / model.scale_ @ model.coefs_[0] + model.intercepts_[0]
    bent = np.where(z > 0, z, model.leaks_[0] * z)
    np.testing.assert_allclose(model.features(X), bent, rtol=1e-4, atol=1e-5)
    before = model.loss_curve_[-1]
    assert model.fit(X, y).loss_curve_[0] < 1.5 * before  # a warm start goes on with the slopes it learned
    assert model.unit_report(X, y).dead == (0,)
    assert MLPRegressor(**{**given, "activation": "relu"}, max_iter=1).fit(X, y).leaks_ == []


def test_targets_beyond_single_precision_warn_of_nothing() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    plain, large = (
        MLPRegressor(hidden=(8,), max_iter=3, random_state=0).fit(X * u, X[:, 0] * u) for u in (1.0, 2.0**500)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(large.predict(X * 2.0**500), plain.predict(X) * 2.0**500, rtol=1e-6)
        assert large.unit_report(X * 2.0**500, X[:, 0] * 2.0**500).dead == plain.unit_report(X, X[:, 0]).dead
