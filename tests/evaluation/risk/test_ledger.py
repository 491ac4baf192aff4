"""The ledger on problems whose parts are known, and the bound of Vapnik-Chervonenkis."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline

from certifit import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    LogisticRegression,
    Ridge,
    StandardScaler,
)
from certifit.evaluation.risk.ledger import ledger
from certifit.evaluation.risk.vc import vc_bound, vc_dimension_linear, vc_sample_size


def band(n: int, flip: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that no line separates, with labels flipped at a known rate."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    truth = np.abs(X[:, 0]) < 0.5
    return X, np.where(truth ^ (rng.random(n) < flip), "yes", "no")


def test_parts_of_a_line_on_a_band() -> None:
    X, y = band(3000, 0.1)
    a, b = slice(0, 1500), slice(1500, None)
    model = LogisticRegression().fit(X[a], y[a])
    found = ledger(model, X[a], y[a], X[b], y[b], richer=DecisionTreeClassifier(max_depth=6))
    assert [row.part for row in found.rows] == ["optimization", "estimation", "approximation", "noise (Bayes)"]
    assert found.loss == "error rate"
    assert found["optimization"].value == pytest.approx(model.certificate_.gap)
    wrong = [np.mean(model.predict(X[part]) != y[part]) for part in (a, b)]
    estimation = found["estimation"]
    assert estimation.value == pytest.approx(wrong[1] - wrong[0])
    assert estimation.low < estimation.value < estimation.high
    # The line errs on half the rows, the tree on little more than the flipped ones.
    assert found["approximation"].low > 0.2
    assert found["approximation"].low < 0.4 < found["approximation"].high + 0.05
    assert found["noise"].low < 0.11 < found["noise"].high
    assert found["noise"].value == pytest.approx(0.1, abs=0.03)
    assert "does better" in found["approximation"].text
    assert str(found).count("\n") == 3
    json.dumps(found.as_dict(), allow_nan=False)


def test_a_tree_that_learns_by_heart_pays_in_estimation() -> None:
    X, y = band(600, 0.3)
    model = DecisionTreeClassifier().fit(X[:300], y[:300])
    found = ledger(model, X[:300], y[:300], X[300:], y[300:])
    assert found["estimation"].low > 0.2
    assert found["approximation"].value is None
    assert "no richer model" in found["approximation"].text


def test_models_without_a_bound_say_so() -> None:
    X, y = band(200, 0.1)
    model = GradientBoostingClassifier(n_estimators=5).fit(X[:100], y[:100])
    row = ledger(model, X[:100], y[:100], X[100:], y[100:])["optimization"]
    assert row.value is None
    assert row.text.startswith("Not bounded")

    class Guess:
        classes_ = np.array(["no", "yes"])

        def predict(self, X: np.ndarray) -> np.ndarray:
            return np.full(X.shape[0], "no")

    assert "no certificate" in ledger(Guess(), X[:100], y[:100], X[100:], y[100:])["optimization"].text


@pytest.mark.parametrize("loss", ["squared", "mse", "rmse", "r2", "absolute"])
def test_regression(loss: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(800, 2))
    y = np.abs(X[:, 0]) + 0.1 * rng.normal(size=800)
    model = make_pipeline(StandardScaler(), Ridge(alpha=1e-4)).fit(X[:400], y[:400])
    richer = DecisionTreeRegressor(max_depth=4).fit(X[:400], y[:400])
    found = ledger(model, X[:400], y[:400], X[400:], y[400:], loss=loss, richer=richer)
    assert found["optimization"].value == pytest.approx(model[-1].certificate_.gap)
    approximation = found["approximation"]
    assert 0 < approximation.low < approximation.value < approximation.high
    assert found["estimation"].low < found["estimation"].high
    assert found["noise"].value is None
    assert "error rate only" in found["noise"].text
    swapped = ledger(richer, X[:400], y[:400], X[400:], y[400:], loss=loss, richer=model)["approximation"]
    assert (swapped.value, swapped.low, swapped.high) == (0.0, 0.0, 0.0)
    assert "does worse" in swapped.text


def test_a_function_of_ones_own() -> None:
    X, y = band(200, 0.1)
    target = (y == "yes").astype(float)
    model = Ridge().fit(X[:100], target[:100])
    found = ledger(model, X[:100], target[:100], X[100:], target[100:], loss=lambda y, f: np.abs(y - f))
    assert found["estimation"].value is not None


def test_ledger_of_a_frame_names_the_columns_it_used() -> None:
    X, y = band(300, 0.1)
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "t": ["x"] * 300})

    class Guess:
        classes_ = np.array(["no", "yes"])

        def predict(self, X: pl.DataFrame) -> np.ndarray:
            return np.full(X.height, "no")

    found = ledger(Guess(), frame[:150], y[:150], frame[150:], y[150:])
    assert "2 numeric columns of 3" in found["noise"].text
    text = ledger(Guess(), frame[:150].select("t"), y[:150], frame[150:].select("t"), y[150:])["noise"].text
    assert text.startswith("Not estimated: X has no numeric column")


BAD = {
    "gap": (lambda: vc_sample_size(0.0, 3), "gap"),
    "n": (lambda: vc_bound(0, 3), "n must be"),
    "delta": (lambda: vc_bound(10, 3, 1.0), "delta"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        call()


def test_an_unknown_part() -> None:
    X, y = band(60, 0.1)
    model = LogisticRegression().fit(X, y)
    with pytest.raises(KeyError, match="optimization, estimation"):
        ledger(model, X, y, X, y)["luck"]


@pytest.mark.parametrize(("n", "d", "delta"), [(100, 3, 0.1), (10_000, 10, 0.05), (50, 0, 0.5)])
def test_vc_bound_is_the_formula(n: int, d: int, delta: float) -> None:
    assert vc_bound(n, d, delta) == pytest.approx(np.sqrt(8 / n * np.log(4 * ((2 * n) ** d + 1) / delta)))


def test_vc_bound_of_huge_spaces_does_not_overflow() -> None:
    assert np.isfinite(vc_bound(10**6, 10**6))
    assert vc_dimension_linear(10) == 11


@pytest.mark.parametrize(("gap", "d"), [(0.1, 3), (0.05, 10), (5.0, 1)])
def test_vc_sample_size_is_the_least(gap: float, d: int) -> None:
    n = vc_sample_size(gap, d)
    assert vc_bound(n, d) <= gap
    assert n == 1 or vc_bound(n - 1, d) > gap


def test_vc_bound_holds_for_lines() -> None:
    """Training and test error of a fitted line differ by less than Ω, here by far."""
    X, y = band(2000, 0.2)
    model = LogisticRegression().fit(X[:500], y[:500])
    errors = [np.mean(model.predict(part) != label) for part, label in ((X[:500], y[:500]), (X[500:], y[500:]))]
    assert errors[1] <= errors[0] + vc_bound(500, vc_dimension_linear(2))


@pytest.mark.parametrize("loss", ["auto", "log_loss"])
def test_weights_are_repetitions(loss: str) -> None:
    X, y = band(400, 0.2)
    weight = np.random.default_rng(1).integers(0, 3, size=400)
    model = LogisticRegression().fit(X[:200], y[:200], sample_weight=weight[:200])
    given = {"loss": loss, "richer": DecisionTreeClassifier(max_depth=3)}
    weights = {"train_weight": weight[:200], "test_weight": weight[200:]}
    found = ledger(model, X[:200], y[:200], X[200:], y[200:], **given, **weights)
    train, test = np.repeat(np.arange(200), weight[:200]), np.repeat(np.arange(200, 400), weight[200:])
    twice = ledger(model, X[train], y[train], X[test], y[test], **given)
    for part in ("estimation", "approximation"):
        ends = [[getattr(one[part], name) for name in ("value", "low", "high")] for one in (found, twice)]
        assert ends[0] == pytest.approx(ends[1], abs=1e-12)
    kept = weight[:200] > 0
    points = ledger(model, X[:200][kept], y[:200][kept], X[200:], y[200:], loss=loss)
    assert found["noise"] == points["noise"]


def test_parts_that_are_none_are_named() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X[:, 0] + rng.normal(size=40)
    found = ledger(Ridge().fit(X, y), X, y, X, y)
    for part in ("", "luck"):
        with pytest.raises(KeyError, match="No part"):
            found[part]
