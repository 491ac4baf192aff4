"""Networks under scikit-learn's names learn the same network as scikit-learn's, step by step."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import sklearn.neural_network as theirs
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from certifit.sklearn import neural_network as ours

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 6))
SCORE = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
TARGETS: dict[str, Any] = {
    "number": SCORE,
    "numbers": np.column_stack([SCORE, X[:, 3] - 2 * SCORE]),
    "two": np.where(SCORE > 0, "a", "b"),
    "three": np.digitize(SCORE, [-0.7, 0.7]),
    "labels": np.column_stack([SCORE > 0, X[:, 0] > 0.3, X[:, 1] > 0]).astype(int),
}
STEPS: dict[str, dict[str, Any]] = {
    "nesterov": {"solver": "sgd", "learning_rate_init": 0.02, "max_iter": 10, "batch_size": 30, "alpha": 1.0},
    "momentum": {
        "solver": "sgd", "nesterovs_momentum": False, "learning_rate": "invscaling", "power_t": 0.3,
        "learning_rate_init": 0.2, "max_iter": 10, "batch_size": 50, "activation": "logistic",
    },
    "adam": {"max_iter": 12, "batch_size": 50, "alpha": 1.0, "activation": "tanh"},
    "early": {"max_iter": 40, "learning_rate_init": 0.01, "early_stopping": True, "n_iter_no_change": 2, "tol": 0.02},
    "adaptive": {
        "solver": "sgd", "learning_rate": "adaptive", "learning_rate_init": 0.1, "max_iter": 50, "n_iter_no_change": 2,
        "tol": 0.01,
    },
    "great epsilon": {"max_iter": 8, "batch_size": 50, "epsilon": 0.01},
    "a smaller batch": {"max_iter": 8, "batch_size": 40, "alpha": 2.0},
    "one batch": {"max_iter": 15, "shuffle": False, "activation": "identity"},
}  # fmt: skip


def pair(target: str, **settings: Any) -> tuple[Any, Any]:
    name = "MLPRegressor" if target.startswith("number") else "MLPClassifier"
    return tuple(getattr(home, name)(hidden_layer_sizes=(8, 5), random_state=3, **settings) for home in (theirs, ours))  # type: ignore[return-value]


def quietly(model: Any, *data: Any, **more: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data, **more)


def assert_same(one: Any, other: Any, accuracy: float) -> None:
    assert other.n_iter_ == one.n_iter_
    assert (other.n_layers_, other.n_outputs_, other.out_activation_) == (
        one.n_layers_, one.n_outputs_, one.out_activation_,
    )  # fmt: skip
    for a, b in zip(one.coefs_ + one.intercepts_, other.coefs_ + other.intercepts_, strict=True):
        np.testing.assert_allclose(b, a, atol=accuracy)
        assert b.dtype == a.dtype
    told = {name for name in vars(one) if name.endswith("_") and not name.startswith("_")}
    assert told <= set(vars(other))


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our networks in double precision, so that nothing but another formula could make a difference."""
    for cls in (ours.MLPClassifier, ours.MLPRegressor):
        monkeypatch.setattr(cls, "_always", {**cls._always, "dtype": "float64"})


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("target", TARGETS)
def test_steps_and_draws_are_theirs(target: str, steps: str) -> None:
    one, other = (quietly(model, X, TARGETS[target]) for model in pair(target, **STEPS[steps]))
    assert_same(one, other, 1e-9)
    assert other.t_ == one.t_
    if STEPS[steps].get("alpha", 0.0001) < 1:  # theirs tell the penalty with the loss
        np.testing.assert_allclose(other.loss_curve_, one.loss_curve_, atol=1e-4)
        assert (other.best_loss_ is None) == (one.best_loss_ is None)
    if steps == "early":
        np.testing.assert_allclose(other.validation_scores_, one.validation_scores_, atol=1e-9)
        assert other.best_validation_score_ == max(other.validation_scores_)
    assert "local optima" in other.certificate_.note


# Theirs tell L-BFGS the mean over several targets with the gradient of their sum, and hold probabilities away from zero.
@pytest.mark.parametrize("activation", ["tanh", "logistic", "identity"])
@pytest.mark.parametrize("target", ["number", "two", "three", "labels"])
def test_lbfgs_is_theirs(target: str, activation: str) -> None:
    y = TARGETS[target]
    given: dict[str, Any] = {"solver": "lbfgs", "max_iter": 12, "alpha": 0.5, "activation": activation}
    weight = RNG.uniform(0.5, 2.0, size=150)
    one, other = (quietly(model, X, y, sample_weight=weight) for model in pair(target, **given))
    assert_same(one, other, 1e-8)
    assert other.loss_ == pytest.approx(one.loss_, rel=1e-9)
    ask = "predict" if target == "number" else "predict_proba"
    np.testing.assert_allclose(getattr(other, ask)(X), getattr(one, ask)(X), atol=1e-8)
    np.testing.assert_array_equal(other.predict(csr_array(X)), other.predict(X))


def test_counts_have_their_own_loss() -> None:
    counts = RNG.poisson(np.exp(0.5 * SCORE.clip(-2, 2)))
    one, other = pair("number", loss="poisson", solver="lbfgs", max_iter=10, activation="tanh")
    assert_same(quietly(one, X, counts), quietly(other, X, counts), 1e-8)
    np.testing.assert_allclose(other.predict(X), one.predict(X), rtol=1e-8)


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("target", ["numbers", "three"])
def test_fits_go_on_as_theirs(target: str) -> None:
    y = TARGETS[target]
    one, other = pair(target, warm_start=True, max_iter=4, batch_size=50)
    for _ in range(2):
        quietly(one, X, y)
        quietly(other, X, y)
    assert_same(one, other, 1e-9)
    assert len(other.loss_curve_) == len(one.loss_curve_) == 8
    one, other = pair(target, solver="sgd", learning_rate="invscaling", learning_rate_init=0.1)
    more = {} if target == "numbers" else {"classes": [0, 1, 2]}
    for rows in (slice(0, 90), slice(60, 150), slice(0, 150)):
        for model in (one, other):
            model.partial_fit(X[rows], y[rows], **more)
    assert_same(one, other, 1e-9)
    assert other.t_ == one.t_ == 330


@pytest.mark.parametrize("steps", ["nesterov", "great epsilon", "a smaller batch"])
@pytest.mark.parametrize("target", TARGETS)
def test_single_precision_takes_the_same_way(target: str, steps: str) -> None:
    one, other = (quietly(model, X, TARGETS[target]) for model in pair(target, **STEPS[steps]))
    assert_same(one, other, 1e-4)


def test_single_precision_stays() -> None:
    small = X.astype(np.float32)
    for target in ("number", "two"):
        one, other = (quietly(model, small, TARGETS[target]) for model in pair(target, max_iter=3))
        assert_same(one, other, 1e-4)
    assert other.predict_proba(small).dtype == np.float32


def test_what_is_refused_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="hidden_layer_sizes must be > 0"):
        ours.MLPRegressor(hidden_layer_sizes=(3, 0)).fit(X, SCORE)
    with pytest.raises(ValueError, match=r"non-finite parameter weights.*as large as .*beyond ±1e"):
        ours.MLPRegressor().fit(X * 1e14, SCORE)
    with pytest.raises(ValueError, match="MLPClassifier needs at least 2 classes"):
        ours.MLPClassifier().fit(X, np.ones(150))
    with pytest.raises(ValueError, match="validation set is too small"):
        ours.MLPRegressor(early_stopping=True).fit(X[:4], SCORE[:4])
    with pytest.warns(UserWarning, match="going to be clipped"), pytest.warns(ConvergenceWarning, match="Maximum iter"):
        ours.MLPRegressor(batch_size=500, max_iter=2, verbose=True).fit(X, SCORE)
    assert "Iteration 2, loss " in capsys.readouterr().out
    with pytest.warns(ConvergenceWarning, match="L-BFGS stopped after 2 iterations"):
        ours.MLPRegressor(solver="lbfgs", max_iter=2).fit(X, SCORE)
    assert not hasattr(ours.MLPClassifier(solver="lbfgs"), "partial_fit")


def test_a_fit_can_be_kept() -> None:
    model = quietly(ours.MLPClassifier(hidden_layer_sizes=4, max_iter=3, random_state=0), X, TARGETS["two"])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.partial_fit(X, TARGETS["two"]).n_iter_ == 1
