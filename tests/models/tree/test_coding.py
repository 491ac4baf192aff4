"""Text categories in ensembles: the same fits as on numbers in their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from certifit import (
    AdaBoostClassifier,
    AdditiveModel,
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ForwardStagewise,
    load,
    save,
)

LEVELS = ["black", "green", "red", "white"]


def classes(told: Any) -> Any:
    return DecisionTreeClassifier(max_depth=2, categorical_features=told)


def numbers(told: Any) -> Any:
    return DecisionTreeRegressor(max_depth=2, categorical_features=told)


ENSEMBLES = {
    "bagging": lambda told: BaggingClassifier(classes(told), n_estimators=5, oob_score=True, random_state=0),
    "bagging of features": lambda told: BaggingClassifier(
        classes(told), n_estimators=8, max_features=2, random_state=0
    ),
    "bagging of numbers": lambda told: BaggingRegressor(numbers(told), n_estimators=5, random_state=0),
    "adaboost": lambda told: AdaBoostClassifier(classes(told), n_estimators=5),
    "stagewise": lambda told: ForwardStagewise(estimator=numbers(told), n_estimators=5),
    "stagewise classes": lambda told: ForwardStagewise("exponential", classes(told), n_estimators=5),
    "any loss": lambda told: AdditiveModel("absolute", numbers(told), n_estimators=5),
}


def table() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """A frame with text and gaps, the same in numbers, and a target."""
    rng = np.random.default_rng(0)
    color = rng.integers(0, 4, 200).astype(float)
    color[::13] = np.nan
    X = np.column_stack([rng.normal(size=200), color, rng.normal(size=200)])
    words = [None if np.isnan(c) else LEVELS[int(c)] for c in color]
    y = ((np.isin(color, [0, 2]) * 2 + X[:, 0] + 0.3 * rng.normal(size=200)) > 1).astype(float)
    return pd.DataFrame({"size": X[:, 0], "color": words, "age": X[:, 2]}), X, y


@pytest.mark.parametrize("name", ENSEMBLES)
def test_text_is_as_good_as_numbers(name: str, tmp_path: Path) -> None:
    frame, X, y = table()
    plain = ENSEMBLES[name]([1]).fit(X, y)
    wanted = plain.predict(X)
    assert (wanted.round() == y).mean() > 0.8
    for given in (frame, frame.to_numpy(), pl.from_pandas(frame)):
        told = ["color"] if hasattr(given, "columns") else [1]
        model = ENSEMBLES[name](told).fit(given, y)
        assert np.array_equal(model.predict(given), wanted)
    # Unseen and missing categories: as numbers that were not seen, and NaN.
    new, other = frame.assign(color="violet"), X.copy()
    other[:, 1] = 77
    assert np.array_equal(model.predict(pl.from_pandas(new)), plain.predict(other))
    model = ENSEMBLES[name]("auto").fit(frame, y)
    assert np.array_equal(model.predict(frame), wanted)
    assert list(model.feature_names_in_) == ["size", "color", "age"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"age": "year"}))
    save(model, tmp_path / "model.cfit")
    assert np.array_equal(load(tmp_path / "model.cfit").predict(frame), wanted)


@pytest.mark.parametrize("name", ENSEMBLES)
def test_text_without_a_word_about_it_is_refused(name: str) -> None:
    frame, _, y = table()
    with pytest.raises(ValueError, match="not numeric"):
        ENSEMBLES[name](None).fit(frame, y)


def test_rows_of_weight_zero_and_importance() -> None:
    frame, X, y = table()
    w = np.ones(200)
    w[:40] = 0
    model = ENSEMBLES["bagging"]("auto").fit(frame, y, w)
    assert np.array_equal(model.predict(frame), ENSEMBLES["bagging"]([1]).fit(X[40:], y[40:]).predict(X))
    rise = model.oob_permutation_importance(frame, y, w)["importances_mean"]
    assert rise.argmax() == 1
