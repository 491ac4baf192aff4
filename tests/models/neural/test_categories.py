"""Categories in networks: learned vectors, what is not seen, codes and text alike, files and ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import certifit as cf
from certifit import MLPClassifier, MLPRegressor, NeuralNetwork
from certifit.models.neural.categories import places

RNG = np.random.default_rng(0)
N = 500
CITY = RNG.integers(12, size=N)
NUMBER = RNG.normal(size=N)
LEVEL = RNG.normal(size=12) * 3
Y = LEVEL[CITY] + np.abs(NUMBER) + 0.05 * RNG.normal(size=N)
QUICK: dict[str, Any] = {"hidden": (16,), "learning_rate": 0.02, "max_iter": 60, "random_state": 0}


def frame(city: Any = CITY, number: Any = NUMBER) -> pd.DataFrame:
    return pd.DataFrame({"number": number, "city": [None if c is None else f"town {c:02d}" for c in city]})


def test_a_column_of_categories_is_columns_of_0_and_1_that_are_not_scaled() -> None:
    X = np.column_stack([NUMBER, CITY.astype(float)])
    model = MLPRegressor(categorical_features=[1], **QUICK).fit(X, Y)
    assert model.score(X, Y) > 0.97
    assert MLPRegressor(**QUICK).fit(X, Y).score(X, Y) < 0.9
    assert model.n_features_in_ == 2
    spread = np.column_stack([(NUMBER - model.mean_[0]) / model.scale_[0], np.zeros(N), np.eye(12)[CITY]])
    np.testing.assert_allclose(
        np.maximum(spread @ model.coefs_[0] + model.intercepts_[0], 0), model.features(X), rtol=1e-4, atol=1e-5
    )
    vectors = model.embeddings_[1]
    assert list(vectors) == list(range(12))
    np.testing.assert_array_equal(vectors[3], model.coefs_[0][places(model._categories, 2)[1]][3])
    assert MLPRegressor(**QUICK).fit(X, Y).embeddings_ == {}


def test_text_codes_and_frames_are_alike() -> None:
    codes = MLPRegressor(categorical_features=[1], **QUICK).fit(np.column_stack([NUMBER, CITY]), Y)
    wanted = codes.predict(np.column_stack([NUMBER, CITY]))
    for table in (frame(), pl.from_pandas(frame())):
        for given in ("auto", ["city"], [1], [False, True]):
            model = MLPRegressor(categorical_features=given, **QUICK).fit(table, Y)
            np.testing.assert_array_equal(model.predict(table), wanted)
    assert list(model.embeddings_[1])[:2] == ["town 00", "town 01"]


def test_unseen_and_missing_categories_have_the_zero_vector() -> None:
    model = MLPRegressor(categorical_features="auto", **QUICK).fit(frame(), Y)
    new = frame([99, None, 0], [0.4, 0.4, 0.4])
    z = (0.4 - model.mean_[0]) / model.scale_[0] * model.coefs_[0][0] + model.intercepts_[0]
    zero = np.maximum(z, 0) @ model.coefs_[1] + model.intercepts_[1]
    found = model.predict(new)
    np.testing.assert_allclose(found[:2], np.repeat(zero, 2), rtol=1e-4)
    assert abs(found[2] - zero[0]) > 1e-3


def test_weights_are_repetition_and_zero_is_absence() -> None:
    weight = RNG.integers(0, 3, size=N)
    weight[CITY == 5] = 0
    table = frame()
    weighted = MLPRegressor(categorical_features="auto", **QUICK).fit(table, Y, weight)
    again = np.repeat(np.arange(N), weight)
    repeated = MLPRegressor(categorical_features="auto", **QUICK).fit(table.iloc[again], Y[again])
    np.testing.assert_array_equal(weighted.predict(table), repeated.predict(table))
    assert "town 05" not in weighted.embeddings_[1]


def test_goes_on_with_the_categories_it_knows() -> None:
    table, labels = frame(), np.where(Y > 0, "high", "low")
    model = MLPClassifier(categorical_features="auto", **QUICK)
    model.partial_fit(table[CITY != 5], labels[CITY != 5], classes=["high", "low"])
    model.partial_fit(table, labels)
    assert len(model.embeddings_[1]) == 11
    warm = NeuralNetwork(categorical_features="auto", **QUICK, warm_start=True).fit(table, Y)
    before = warm.loss_curve_[-1]
    assert warm.fit(table[::-1], Y[::-1]).loss_curve_[0] < 2 * before
    assert warm.check_gradients(table[:50], Y[:50]).passed
    with pytest.raises(ValueError, match="categories take none"):
        warm.adversarial(table, Y)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [([7], "names column 7"), (["town"], "not a column"), ("some", "must be 'auto'"), ([True], "has 1 entries")],
)
def test_columns_that_are_not_there(wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MLPRegressor(categorical_features=wrong, **QUICK).fit(np.column_stack([NUMBER, CITY]), Y)


def test_gaps_in_numbers_are_named() -> None:
    X = np.column_stack([NUMBER, CITY.astype(float)])
    X[3, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        MLPRegressor(categorical_features=[1], **QUICK).fit(X, Y)


@pytest.mark.parametrize("text", [True, False])
def test_files_and_onnx_answer_the_same(tmp_path: Path, text: bool) -> None:
    table: Any = frame() if text else np.column_stack([NUMBER, CITY.astype(float)])
    model = MLPClassifier(categorical_features=[1], **QUICK).fit(table, np.where(Y > 0, "high", "low"))
    cf.save(model, tmp_path / "network.cfit")
    new: Any = frame([*CITY[:30], 99, 40], NUMBER[:32]) if text else np.vstack([table[:30], [[0.1, 99.0]]])
    np.testing.assert_array_equal(cf.load(tmp_path / "network.cfit").predict_proba(new), model.predict_proba(new))
    runtime = pytest.importorskip("onnxruntime")
    from certifit.onnx import to_onnx

    session = runtime.InferenceSession(to_onnx(model))
    if text:
        feed = {"number": new[["number"]].to_numpy(), "city": new[["city"]].to_numpy(dtype=object)}
    else:
        feed = {session.get_inputs()[0].name: new}
    names = [output.name for output in session.get_outputs()]
    found = session.run(["probabilities"] if "probabilities" in names else names[1:2], feed)[0]
    np.testing.assert_allclose(found, model.predict_proba(new), rtol=1e-4, atol=1e-6)
