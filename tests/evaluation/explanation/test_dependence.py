"""Partial dependence against setting the column by hand."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.inspection import partial_dependence as reference

from certifit import LogisticRegression, Ridge
from certifit.evaluation.explanation.dependence import partial_dependence

RNG = np.random.default_rng(0)
N = 200
X = RNG.normal(size=(N, 3))
Y = X[:, 0] ** 2 + X[:, 1] + 0.1 * RNG.normal(size=N)


def predict(X: np.ndarray) -> np.ndarray:
    return np.asarray(X[:, 0] ** 2 * (1 + X[:, 2]) + X[:, 1])


def test_each_value_by_hand() -> None:
    found = partial_dependence(predict, X, 0, max_rows=None)
    assert found.kind == "numeric"
    assert len(found.grid) == 20
    assert set(found.grid) <= set(X[:, 0].tolist())
    for value, mean, low, high in zip(found.grid, found.mean, found.low, found.high, strict=True):
        changed = X.copy()
        changed[:, 0] = value
        each = predict(changed)
        assert mean == pytest.approx(each.mean())
        assert (low, high) == pytest.approx(tuple(np.quantile(each, [0.1, 0.9], method="inverted_cdf")))


def test_against_the_reference() -> None:
    model = Ridge().fit(X, Y)
    theirs = reference(model, X, [1], percentiles=(0, 1), grid_resolution=5, kind="average", method="brute")
    grid = theirs["grid_values"][0]
    found = partial_dependence(model, X, 1, grid=grid, max_rows=None)
    np.testing.assert_allclose(found.mean, theirs["average"][0])
    assert found.grid == tuple(grid)


def test_a_classifier_is_asked_for_the_second_class() -> None:
    y = np.where(Y > 1, "high", "low")
    model = LogisticRegression().fit(X, y)
    found = partial_dependence(model, X, 1, grid=[0.5])
    changed = X.copy()
    changed[:, 1] = 0.5
    assert found.mean[0] == pytest.approx(model.predict_proba(changed)[:, 1].mean())


def frame(kind: str):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(1)
    columns = {
        "age": rng.integers(20, 60, size=N),
        "color": rng.choice(["red", "green", "blue"], p=[0.5, 0.3, 0.2], size=N),
        "member": rng.random(N) < 0.5,
        "since": np.array(["2020-01-01"], dtype="datetime64[D]") + rng.integers(0, 1000, size=N),
        "income": np.where(rng.random(N) < 0.2, np.nan, rng.gamma(2.0, size=N)),
    }
    if kind == "polars":
        return pl.DataFrame(columns).with_columns(pl.col("color").cast(pl.Categorical))
    made = pd.DataFrame(columns, index=rng.permutation(N))
    made["color"] = made["color"].astype("category")
    made["since"] = made["since"].astype("datetime64[ns]")
    return made


def score(rows) -> np.ndarray:  # type: ignore[no-untyped-def]
    color = pd.Series(np.asarray(rows["color"])).map({"red": 1.0, "green": 2.0, "blue": 3.0}).to_numpy(dtype=float)
    days = np.asarray(rows["since"]).astype("datetime64[D]").astype(int)
    income = np.nan_to_num(np.asarray(rows["income"], dtype=float))
    return np.asarray(rows["age"]) + 100 * color + 0.001 * days + income + 7 * np.asarray(rows["member"])


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_frames(kind: str) -> None:
    table = frame(kind)
    color = partial_dependence(score, table, "color", max_rows=None)
    assert (color.kind, color.grid) == ("category", ("red", "green", "blue"))
    np.testing.assert_allclose(np.diff(color.mean), 100)
    age = partial_dependence(score, table, "age", max_rows=None)
    assert age.kind == "numeric"
    np.testing.assert_allclose(np.diff(age.mean), np.diff(age.grid))
    since = partial_dependence(score, table, "since", grid=6)
    assert (since.kind, len(since.grid)) == ("date", 6)
    assert all(isinstance(value, datetime.date) for value in since.grid)
    assert list(since.grid) == sorted(since.grid)
    days = np.array([value.toordinal() for value in since.grid])
    np.testing.assert_allclose(np.diff(since.mean), 0.001 * np.diff(days))
    income = partial_dependence(score, table, "income")
    assert np.isfinite(income.grid).all()
    np.testing.assert_allclose(np.diff(income.mean), np.diff(income.grid))
    member = partial_dependence(score, table, "member")
    assert member.kind == "category"
    assert abs(member.mean[1] - member.mean[0]) == pytest.approx(7)
    own = partial_dependence(score, table, "age", grid=[30.5, 40.0])
    assert own.mean[1] - own.mean[0] == pytest.approx(9.5)
    levels = partial_dependence(score, table, "color", grid=["blue", "red"])
    assert levels.mean[0] - levels.mean[1] == pytest.approx(200)


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_everything_goes_into_json(kind: str) -> None:
    for feature in ("age", "color", "member", "since", "income"):
        made = partial_dependence(score, frame(kind), feature).as_dict()
        back = json.loads(json.dumps(made))
        assert back["feature"] == feature
        assert len(back["grid"]) == len(back["mean"]) == len(back["low"]) == len(back["high"])
    since = partial_dependence(score, frame(kind), "since").as_dict()
    assert since["grid"][0].startswith("202")


def test_at_most_twelve_levels_the_most_frequent_first() -> None:
    rng = np.random.default_rng(2)
    letters = rng.choice(list("abcdefghijklmnopqrst"), p=np.arange(20, 0, -1) / 210, size=4000)
    table = pl.DataFrame({"letter": letters})
    found = partial_dependence(lambda rows: np.zeros(rows.height), table, "letter")
    values, counts = np.unique(letters, return_counts=True)
    assert list(found.grid) == values[np.argsort(-counts, kind="stable")][:12].tolist()


def test_arrays_of_objects() -> None:
    table = np.array([[1.0, "a"], [2.0, "b"], [4.0, "b"], [None, "b"]], dtype=object)
    numbers = partial_dependence(lambda rows: np.array([float(v) for v in rows[:, 0]]), table, 0)
    assert (numbers.kind, numbers.grid, numbers.mean) == ("numeric", (1.0, 2.0, 4.0), (1.0, 2.0, 4.0))
    letters = partial_dependence(lambda rows: (rows[:, 1] == "b").astype(float), table, 1)
    assert (letters.kind, letters.grid, letters.mean) == ("category", ("b", "a"), (1.0, 0.0))


def test_frames_whose_columns_are_numbered() -> None:
    frame = pd.DataFrame(X)
    for grid in (5, [0.0, 1.5]):
        a = partial_dependence(predict, X, 1, grid=grid)
        b = partial_dependence(lambda rows: predict(rows.to_numpy()), frame, 1, grid=grid)
        assert a == b


def test_sparse_is_dense() -> None:
    model = Ridge().fit(X, Y)
    for grid in (5, [0.0, 1.5]):
        dense, sparse = (partial_dependence(model, table, 0, grid=grid) for table in (X, sp.csc_matrix(X)))
        np.testing.assert_allclose(dense.mean, sparse.mean)


def test_weight_is_repetition() -> None:
    weight = np.random.default_rng(3).integers(0, 3, size=N)
    a = partial_dependence(predict, X, 0, sample_weight=weight, max_rows=None)
    b = partial_dependence(predict, np.repeat(X, weight, axis=0), 0, max_rows=None)
    assert a.grid == b.grid
    np.testing.assert_allclose([a.mean, a.low, a.high], [b.mean, b.low, b.high])


def test_few_rows_are_drawn_the_same_way_each_time() -> None:
    a = partial_dependence(predict, X, 0, max_rows=20)
    assert a == partial_dependence(predict, X, 0, max_rows=20)
    assert a.mean != partial_dependence(predict, X, 0, max_rows=20, random_state=1).mean


BAD = {
    "feature": (lambda: partial_dependence(predict, X, "age"), "no column 'age'"),
    "kind": (lambda: partial_dependence(predict, X, 0, kind="text"), "kind must be one of"),
    "grid": (lambda: partial_dependence(predict, X, 0, grid=[]), "grid must not be empty"),
    "no values": (lambda: partial_dependence(predict, X * np.nan, 0), "pass grid="),
    "shape": (lambda: partial_dependence(lambda X: X, X, 0), "one value for each row"),
    "nan": (lambda: partial_dependence(lambda X: X[:, 0] * np.nan, X, 0), "finite"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        call()
