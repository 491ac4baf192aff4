"""Training on a GPU is training on the processor, up to rounding; skipped where PyTorch or a GPU is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from certifit import MLPClassifier, MLPRegressor, NeuralNetwork
from certifit.losses import Huber, Loss, MulticlassHinge, Quantile, SquaredHinge
from certifit.models.neural.layers import ACTIVATIONS, Columns, initial
from certifit.models.neural.objective import Target
from certifit.models.neural.trainers.cpu import Trainer
from certifit.models.neural.trainers.cuda import NAMES, CudaTrainer
from certifit.models.neural.training import Recipe, State

try:
    import torch

    DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
except ImportError:
    torch, DEVICE = None, ""
NEEDS_TORCH = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
NEEDS_GPU = pytest.mark.skipif(DEVICE != "cuda", reason="there is no GPU")
X, LABELS = load_digits(return_X_y=True)
X, LABELS = X[:500], LABELS[:500]
LOSSES: dict[str, tuple[Loss | str, Any]] = {
    "softmax": ("softmax", LABELS),
    "squared": ("squared", np.column_stack([LABELS, 1e6 + LABELS])),
    "absolute": ("absolute", LABELS.astype(float)),
    "huber": (Huber(0.7), LABELS.astype(float)),
    "quantile": (Quantile(0.3), LABELS.astype(float)),
    "logistic": ("logistic", (LABELS > 4).astype(float)),
    "poisson": ("poisson", LABELS.astype(float)),
}


def recipe(**given: Any) -> Recipe:
    plain: dict[str, Any] = {
        "optimizer": "adam",
        "learning_rate": 1e-3,
        "schedule": "constant",
        "momentum": 0.9,
        "betas": (0.9, 0.999),
        "epsilon": 1e-8,
        "alpha": 0.01,
        "batch_size": 64,
        "dropout": 0.0,
        "input_noise": 0.0,
        "adversarial": 0.0,
        "clip": 0.0,
        "max_epochs": 3,
        "patience": 9,
        "tol": 0.0,
        "seed": 0,
    }
    return Recipe(**{**plain, **given})


def both(loss: Any, y: Any, activation: str = "tanh") -> tuple[Trainer, CudaTrainer, Target]:
    """The same network at the same start on the processor and on the device."""
    resolved, shaped = NeuralNetwork(loss=loss)._checked_target(
        NeuralNetwork(loss=loss)._resolved_loss(), np.asarray(y, float)
    )
    target, columns = Target.of(resolved, shaped, np.ones(500)), Columns.of(X, np.ones(500), True)
    sizes = (64, 20, 12, target.n_scores)
    one = Trainer(sizes, activation, 0.01, columns, X, target, 1)
    other = CudaTrainer(torch, sizes, activation, 0.01, columns, X, target, DEVICE)
    leak = 0.1 if activation == "prelu" else None
    state = State.start(initial(sizes, "glorot", 0.0, np.random.default_rng(0), leak))
    one.load(state)
    other.load(state)
    return one, other, target


def assert_same_epochs(one: Trainer, other: CudaTrainer, given: Recipe) -> None:
    order = np.random.default_rng(1).permutation(500).astype(np.uint32)
    for _ in range(3):
        first, second = one.epoch(order, given, 0.003), other.epoch(order, given, 0.003)
        assert second == (pytest.approx(first[0], rel=1e-3), True)
    before, after = one.state(), other.state()
    assert before.steps == after.steps == 24
    np.testing.assert_allclose(after.weights, before.weights, atol=2e-3)
    np.testing.assert_allclose(other.scores(X), one.scores(X), atol=0.02 * np.std(one.scores(X)))


def test_every_loss_of_the_device_is_tested() -> None:
    assert set(LOSSES) == set(NAMES)


@NEEDS_TORCH
@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_trains_alike(name: str) -> None:
    loss, y = LOSSES[name]
    one, other, _ = both(loss, y)
    rows = np.arange(500, dtype=np.uint32)
    np.testing.assert_allclose(other.gradient(rows), one.gradient(rows), rtol=1e-3, atol=1e-5)
    assert_same_epochs(one, other, recipe())


@NEEDS_TORCH
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("adversarial", [0.0, 0.1])
def test_every_activation_trains_alike(activation: str, adversarial: float) -> None:
    one, other, _ = both("softmax", LABELS, activation)
    rows = np.arange(500, dtype=np.uint32)
    np.testing.assert_allclose(other.gradient(rows), one.gradient(rows), rtol=1e-3, atol=1e-5)
    assert_same_epochs(one, other, recipe(adversarial=adversarial))


@NEEDS_TORCH
@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "nesterov"])
@pytest.mark.parametrize("clip", [0.0, 0.1])
def test_every_optimizer_trains_alike(optimizer: str, clip: float) -> None:
    one, other, _ = both("softmax", LABELS)
    assert_same_epochs(one, other, recipe(optimizer=optimizer, clip=clip))


@NEEDS_TORCH
@pytest.mark.parametrize(
    ("loss", "y"),
    [("gamma", 1.0 + LABELS), (SquaredHinge(), LABELS > 4), (MulticlassHinge(), LABELS)],
    ids=["gamma", "squared_hinge", "multiclass_hinge"],
)
def test_losses_without_a_formula_train_alike(loss: Loss | str, y: Any) -> None:
    one, other, _ = both(loss, y)
    assert_same_epochs(one, other, recipe())


@NEEDS_GPU
def test_models_train_on_the_device() -> None:
    given: dict[str, Any] = {"hidden": (32,), "max_iter": 20, "random_state": 0}
    one, other = (MLPClassifier(device=device, **given).fit(X, LABELS) for device in ("cpu", "cuda"))
    assert np.abs(one.predict_proba(X) - other.predict_proba(X)).max() < 0.05
    noisy = MLPRegressor(device="cuda", dropout=0.2, input_noise=0.1, early_stopping=True, polish=True, **given)
    assert noisy.fit(X, LABELS).score(X, LABELS) > 0.7
    assert noisy.certificate_
    again = MLPRegressor(**noisy.get_params()).fit(X, LABELS)
    np.testing.assert_allclose(again.predict(X), noisy.predict(X), atol=0.1)


@pytest.mark.skipif(DEVICE == "cuda", reason="there is a GPU")
def test_without_a_gpu_the_message_says_so() -> None:
    with pytest.raises(ValueError, match=r"device='cuda' needs .*use device='cpu'"):
        MLPClassifier(device="cuda").fit(X, LABELS)
