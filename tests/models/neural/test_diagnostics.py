"""Looking into a network: true gradients pass, units that learn nothing are counted, attacks raise the loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from certifit import MLPClassifier, MLPRegressor, NeuralNetwork
from certifit.losses import LOSSES, MulticlassHinge
from certifit.models.neural.layers import ACTIVATIONS

X, LABELS = load_digits(return_X_y=True)
X, LABELS = X[:300], LABELS[:300]
QUICK: dict[str, Any] = {"hidden": (16, 8), "max_iter": 5, "random_state": 0}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_agree_with_differences_for_every_loss_and_activation(name: str, activation: str) -> None:
    y = (LABELS > 4).astype(float) if LOSSES[name].task == "binary" else LABELS + 1.5
    model = NeuralNetwork(loss=name, activation=activation, **QUICK).fit(X, y)
    report = model.check_gradients(X[:60], y[:60])
    assert report.passed, str(report)
    assert len(report.errors) == len(report.norms) == 3
    assert str(report).startswith("Gradients agree.\nlayer 1: off by ")


def test_gradients_of_several_scores_agree() -> None:
    for model in (MLPClassifier(**QUICK), NeuralNetwork(loss=MulticlassHinge(), **QUICK)):
        assert model.fit(X, LABELS).check_gradients(X[:60], LABELS[:60], n_weights=40).passed
    several = MLPRegressor(**QUICK).fit(X, np.column_stack([LABELS, 100.0 * LABELS]))
    assert several.check_gradients(X[:60], np.column_stack([LABELS, 100.0 * LABELS])[:60]).passed


def test_a_wrong_gradient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from certifit.models.neural import diagnostics

    model = MLPClassifier(**QUICK).fit(X, LABELS)
    true = diagnostics.gradient_at
    monkeypatch.setattr(diagnostics, "gradient_at", lambda *args: 1.01 * true(*args))
    report = model.check_gradients(X[:60], LABELS[:60])
    assert not report.passed
    assert str(report).startswith("Gradients DISAGREE.")


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_a_unit_at_its_kink_is_no_wrong_gradient(activation: str) -> None:
    """There the slopes of the two sides differ, and the gradient is one of them: the middle of both is none."""
    model = MLPRegressor(activation=activation, **QUICK).fit(X, LABELS.astype(float))
    inputs = (X[:4] - model.mean_) / model.scale_
    model.intercepts_[0][:] = -inputs[0] @ model.coefs_[0]
    assert model.check_gradients(X[:4], LABELS[:4].astype(float), n_weights=200).passed


def test_dead_and_saturated_units_are_counted() -> None:
    model = MLPClassifier(**QUICK).fit(X, LABELS)
    before = model.unit_report(X, LABELS)
    model.intercepts_[0][:3] = -1000.0
    report = model.unit_report(X, LABELS)
    assert report.units == (16, 8)
    assert (before.dead[0], report.dead[0]) == (0, 3)
    assert "hidden layer 1: 16 units, 3 dead" in str(report)
    curved = MLPClassifier(activation="sigmoid", **QUICK).fit(X, LABELS)
    assert curved.unit_report(X, LABELS).saturated[0] == 0
    curved.coefs_[0][:, :2] *= 1e3
    wide = curved.unit_report(X, LABELS)
    assert wide.saturated[0] + wide.dead[0] == 2


def test_vanishing_and_exploding_gradients_are_named() -> None:
    deep = MLPClassifier(hidden=(16,) * 8, activation="sigmoid", max_iter=1, random_state=0).fit(X, LABELS)
    report = deep.unit_report(X, LABELS)
    assert report.vanishing
    assert not report.exploding
    assert "vanishes" in str(report)
    # The slopes at the weights are inputs times slopes at the units: small inputs of later layers leave the first one steeper.
    steep = MLPRegressor(hidden=(16, 16), activation="tanh", max_iter=1, alpha=0.0, random_state=0).fit(X, LABELS)
    steep.coefs_[0][:] *= 1e-5
    steep.intercepts_[0][:] = 0.0
    steep.coefs_[1][:] *= 1e5
    assert "explodes" in str(steep.unit_report(X, LABELS))


def test_attacks_raise_the_loss_and_training_on_them_helps() -> None:
    plain, trained = (
        MLPClassifier(**{**QUICK, "max_iter": 80, "learning_rate": 0.01}, adversarial_eps=eps).fit(X, LABELS)
        for eps in (0.0, 0.2)
    )
    moved = plain.adversarial(X, LABELS, eps=0.2)
    np.testing.assert_allclose(np.abs(moved - X).max(axis=0), 0.2 * plain.scale_, rtol=1e-6)
    assert plain.score(moved, LABELS) < plain.score(X, LABELS) - 0.1
    assert trained.score(trained.adversarial(X, LABELS, 0.2), LABELS) > plain.score(moved, LABELS) + 0.1
    np.testing.assert_array_equal(plain.adversarial(sp.csr_array(X), LABELS, 0.2), moved)
    np.testing.assert_array_equal(plain.adversarial(X, LABELS, 0.0), X)


def test_they_look_at_the_network_as_it_was_fitted() -> None:
    for before, after in (("float32", "float64"), ("float64", "float32")):
        model = MLPRegressor(**QUICK, dtype=before).fit(X, LABELS)
        assert model.set_params(dtype=after).check_gradients(X[:40], LABELS[:40, None]).passed


def test_bad_input_is_named() -> None:
    model, number = MLPClassifier(**QUICK).fit(X, LABELS), MLPRegressor(**QUICK).fit(X, LABELS)
    with pytest.raises(ValueError, match="not in classes"):
        model.unit_report(X, LABELS + 20)
    with pytest.raises(ValueError, match="same number of rows"):
        model.check_gradients(X, LABELS[:10])
    with pytest.raises(ValueError, match="same number of rows"):
        number.check_gradients(X, LABELS[:10])
    for wrong, message in [
        (np.full(300, np.nan), "y contains NaN"), (np.c_[LABELS, LABELS], "y asks for 2"), (["a"] * 300, "y must be numeric"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            number.unit_report(X, wrong)
    with pytest.raises(ValueError, match="one class for each row"):
        model.adversarial(X, np.c_[LABELS > 1, LABELS < 3].astype(int))
    with pytest.raises(ValueError, match="eps must be"):
        model.adversarial(X, LABELS, eps=-1.0)
    with pytest.raises(ValueError, match="n_weights must be"):
        model.check_gradients(X, LABELS, n_weights=0)
