"""Permutation importance against its definition, on arrays, sparse matrices and frames of several kinds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from certifit import LogisticRegression, Ridge
from certifit.evaluation.explanation.importance import Importance, permutation_importance
from certifit.evaluation.metrics.registry import METRICS


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    return X, 3 * X[:, 1] - X[:, 3] + 0.5 * rng.normal(size=400)


def by_feature(found: list[Importance]) -> dict[object, Importance]:
    return {one.feature: one for one in found}


def test_shuffling_a_linear_term_costs_twice_its_variance(data) -> None:  # type: ignore[no-untyped-def]
    X, y = data
    model = Ridge(alpha=1e-6).fit(X, y)
    found = permutation_importance(model, X, y, "mse", n_repeats=10)
    assert [one.feature for one in found[:2]] == [1, 3]
    for one in found:
        exact = 2 * model.coef_[one.feature] ** 2 * X[:, one.feature].var()
        assert one.low <= exact <= one.high or one.mean == pytest.approx(exact, rel=0.1)
    assert by_feature(found)[0].high < 0.05


def test_a_column_the_model_ignores_has_none(data) -> None:  # type: ignore[no-untyped-def]
    X, y = data
    found = by_feature(permutation_importance(lambda X: 3 * X[:, 1], X, y, "rmse"))
    for column in (0, 2, 3):
        assert (found[column].mean, found[column].low, found[column].high) == pytest.approx((0, 0, 0))


@pytest.mark.parametrize("name", ["mse", "rmse", "r2", "mae", "median_absolute_error"])
def test_intervals_of_regression_metrics_cover(name: str) -> None:
    """The truth from many rows; the share of small samples whose interval has it."""
    rng = np.random.default_rng(1)

    def sample(n: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.normal(size=(n, 2))
        return X, X[:, 0] + rng.normal(size=n)

    def predict(X: np.ndarray) -> np.ndarray:
        return np.asarray(X[:, 0])

    X, y = sample(100_000)
    shuffled = X.copy()
    shuffled[:, 0] = rng.permutation(X[:, 0])
    sign = 1 if METRICS[name].lower_is_better else -1
    truth = sign * (METRICS[name](y, predict(shuffled)) - METRICS[name](y, predict(X)))
    hits = []
    for seed in range(60):
        one = permutation_importance(predict, *sample(120), name, n_repeats=3, columns=[0], random_state=seed)[0]
        hits.append(one.low <= truth <= one.high)
    assert np.mean(hits) >= 0.85


@pytest.mark.parametrize("name", ["roc_auc", "average_precision", "log_loss", "accuracy", "f1", "brier"])
def test_classification_metrics(name: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 2] + 0.5 * rng.normal(size=300) > 0, "yes", "no")
    model = LogisticRegression().fit(X, y)
    found = permutation_importance(model, X, y, name)
    assert found[0].feature == 2
    assert found[0].low > 0
    assert found[0].low < found[0].mean < found[0].high
    assert all(abs(one.mean) < 0.1 * found[0].mean for one in found[1:])


FRAMES = {
    "pandas": lambda table: pd.DataFrame(table, index=np.arange(300) // 2 + 7),
    "polars": pl.DataFrame,
    "arrow": pa.table,
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_frames_keep_the_types_of_their_columns(make) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(3)
    size, color = rng.integers(0, 5, size=300), rng.choice(["red", "blue"], size=300)
    frame = make({"size": size, "color": color, "noise": rng.normal(size=300)})
    if isinstance(frame, pd.DataFrame):
        frame["color"] = frame["color"].astype("category")
    types = str(getattr(frame, "dtypes", getattr(frame, "schema", None)))

    def predict(rows) -> np.ndarray:  # type: ignore[no-untyped-def]
        assert type(rows) is type(frame)
        assert str(getattr(rows, "dtypes", getattr(rows, "schema", None))) == types
        return np.asarray(rows["size"]) + 10.0 * (np.asarray(rows["color"]) == "red")

    y = size + 10.0 * (color == "red")
    found = permutation_importance(predict, frame, y, "mse", n_repeats=2)
    assert [one.feature for one in found] == ["color", "size", "noise"]
    assert found[0].mean == pytest.approx(2 * 100 * 0.25, rel=0.2)
    assert found[1].mean == pytest.approx(2 * size.var(), rel=0.2)
    assert found[2].mean == 0.0


def test_sparse_is_dense(data) -> None:  # type: ignore[no-untyped-def]
    X, y = data
    model = Ridge(alpha=0.1).fit(X, y)
    dense = permutation_importance(model, X, y, "mse")
    sparse = permutation_importance(model, sp.csr_matrix(X), y, "mse")
    for a, b in zip(dense, sparse, strict=True):
        assert a.feature == b.feature
        assert (a.mean, a.low, a.high) == pytest.approx((b.mean, b.low, b.high), abs=1e-9)


def test_options(data) -> None:  # type: ignore[no-untyped-def]
    X, y = data
    model = Ridge().fit(X, y)
    before = X.copy()
    few = permutation_importance(model, X, y, "mse", columns=[3, 0], max_rows=50)
    assert {one.feature for one in few} == {0, 3}
    assert few[0].as_dict()["feature"] == 3
    np.testing.assert_array_equal(X, before)
    assert permutation_importance(model, X, y, "mse") == permutation_importance(model, X, y, "mse")
    assert permutation_importance(model, X, y, "mse") != permutation_importance(model, X, y, "mse", random_state=1)
    narrow, wide = (permutation_importance(model, X, y, "mse", level=level)[0] for level in (0.5, 0.99))
    assert wide.high - wide.low > narrow.high - narrow.low
    weight = np.r_[np.ones(200), np.zeros(200)]
    halved = permutation_importance(model, X, y, "mse", sample_weight=weight)
    assert halved == permutation_importance(model, X[:200], y[:200], "mse")


BAD = {
    "metric": (lambda X, y: permutation_importance(len, X, y, "best"), "metric must be one of"),
    "column": (lambda X, y: permutation_importance(len, X, y, "mse", columns=[9]), "no column 9; its columns are 0, 1"),
    "rows": (lambda X, y: permutation_importance(len, X, y[:5], "mse"), "X has 400, y has 5"),
    "shape": (lambda X, y: permutation_importance(len, X[:, 0], y, "mse"), "two-dimensional"),
    "nan": (lambda X, y: permutation_importance(lambda X: X[:, 0] * np.nan, X, y, "mse"), "prediction must be finite"),
    "repeats": (lambda X, y: permutation_importance(len, X, y, "mse", n_repeats=0), "n_repeats"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named(data, call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        call(*data)


def test_scikit_learns_names_and_arrays(data) -> None:  # type: ignore[no-untyped-def]
    X, y = data
    model = Ridge(alpha=1e-3).fit(X, y)
    found = permutation_importance(model, X, y, scoring="neg_mean_absolute_error", n_repeats=4)
    assert found == permutation_importance(model, X, y, "mae", n_repeats=4)
    assert found.importances.shape == (4, 4)
    assert int(np.argmax(found.importances_mean)) == found[0].feature == 1
    assert found.importances_mean[1] == pytest.approx(found[0].mean)
    assert (found.importances_std >= 0).all()
    few = permutation_importance(model, X, y, max_samples=0.5)
    assert few == permutation_importance(model, X, y, "r2", max_rows=200)
