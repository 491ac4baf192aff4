"""Pictures of importance and dependence show the numbers that were found."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.ensemble import RandomForestRegressor

from certifit import partial_dependence, permutation_importance
from certifit.plots import plot_dependence, plot_importance

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = X[:, 1] + 0.2 * X[:, 0]
MODEL = RandomForestRegressor(10, random_state=0).fit(X, Y)


def test_importance() -> None:
    found = permutation_importance(MODEL, X, Y, "mse")
    ax = plot_importance(found, most=2)
    bars = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(bars, [found[1].mean, found[0].mean])
    assert ax.get_yticklabels()[-1].get_text() == "column 1"
    with pytest.raises(ValueError, match="empty"):
        plot_importance([])


def test_dependence_with_the_curves_of_rows() -> None:
    found = partial_dependence(MODEL, X, 1, grid=7, lines=5)
    assert len(found.lines) == 5
    every = partial_dependence(MODEL, X, 1, grid=7, lines=1000)
    np.testing.assert_allclose(np.mean(every.lines, axis=0), every.mean)
    ax = found.plot()
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), found.mean)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), found.lines[0])
    assert not partial_dependence(MODEL, X, 1).lines
    with pytest.raises(ValueError, match="lines"):
        partial_dependence(MODEL, X, 1, lines=-1)


def test_dependence_on_levels() -> None:
    frame = pl.DataFrame({"kind": ["a", "b", "c", "a"] * 10, "x": np.arange(40.0)})

    def predict(table: pl.DataFrame) -> np.ndarray:
        return (table["kind"] == "a").to_numpy().astype(float) + table["x"].to_numpy()

    ax = plot_dependence(partial_dependence(predict, frame, "kind"))
    assert sorted(tick.get_text() for tick in ax.get_xticklabels()) == ["a", "b", "c"]
    assert ax.get_xlabel() == "kind"
