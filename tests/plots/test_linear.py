"""Pictures of linear models show their numbers."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.linear_model
from numpy.testing import assert_allclose

from certifit import Lasso, LinearRegression
from certifit.plots import plot_coefficients, plot_influence, plot_path, plot_residuals

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ [2.0, -1.0, 0.0] + RNG.normal(size=60)
MODEL = LinearRegression().fit(X, Y)


def test_path_of_ours_and_of_scikit_learn() -> None:
    path = Lasso.path(X, Y, n_alphas=12)
    ax = path.plot(names=["a", "b", "c"], chosen=0.1)
    largest = int(np.abs(path.coefs).max(axis=0).argmax())
    assert_allclose(ax.lines[1].get_ydata(), path.coefs[:, largest])
    assert ax.lines[1].get_label() == "abc"[largest]
    assert ax.get_xlim()[0] > ax.get_xlim()[1]
    assert ax.get_legend().get_texts()[-1].get_text() == "chosen: 0.1"
    alphas, coefs, _ = sklearn.linear_model.lasso_path(X, Y, alphas=np.geomspace(1, 1e-3, 12))
    assert_allclose(plot_path((alphas, coefs)).lines[1].get_ydata(), coefs[np.abs(coefs).max(axis=1).argmax()])
    with pytest.raises(ValueError, match="names must be 3"):
        plot_path(path, names=["a"])
    with pytest.raises(ValueError, match="a row of coefficients for each alpha"):
        plot_path((np.ones(3), np.ones((4, 4))))


def test_coefficients_with_and_without_intervals() -> None:
    table = MODEL.summary(level=0.9)
    ax = plot_coefficients(MODEL, level=0.9)
    order = np.argsort(-np.abs(MODEL.coef_))[::-1]
    segments = np.array(ax.containers[0].lines[2][0].get_segments())
    assert_allclose(segments[:, :, 0], np.column_stack([table.lower[1:], table.upper[1:]])[order])
    foreign = sklearn.linear_model.Ridge().fit(X, Y)
    plain = plot_coefficients(foreign, names=["a", "b", "c"], most=2)
    assert not plain.containers
    assert len(plain.get_yticklabels()) == 2
    assert not plot_coefficients(Lasso(alpha=0.1).fit(X, Y)).containers
    with pytest.raises(ValueError, match="names must be 3"):
        plot_coefficients(MODEL, names=["a"])


def test_residuals_of_any_regressor() -> None:
    drawn = plot_residuals(sklearn.linear_model.Ridge().fit(X, Y), X, Y)
    predicted = sklearn.linear_model.Ridge().fit(X, Y).predict(X)
    assert_allclose(drawn[0].lines[1].get_xydata(), np.column_stack([predicted, Y - predicted]))
    assert np.all(np.diff(drawn[1].lines[0].get_ydata()) >= 0)
    with pytest.raises(ValueError, match="axes must be three"):
        plot_residuals(MODEL, X, Y, axes=drawn[:2])


def test_the_legend_of_influence_touches_no_label() -> None:
    rows, target = X.copy(), Y.copy()
    for row, corner in enumerate([(6.0, 30.0), (6.0, -30.0), (0.0, 30.0), (0.0, -30.0)]):  # a label near every corner
        rows[row, 0], target[row] = corner
    ax = plot_influence(LinearRegression().fit(rows, target), rows, target, most=60)
    ax.figure.canvas.draw()
    legend = ax.get_legend().get_window_extent()
    assert len(ax.texts) == 60
    assert not any(legend.overlaps(text.get_window_extent()) for text in ax.texts)


def test_influence_is_that_of_the_model() -> None:
    ax = plot_influence(MODEL, X, Y, most=3)
    shown = np.asarray(ax.collections[0].get_offsets())
    assert_allclose(shown[:, 0], MODEL.leverage(X), rtol=1e-9)
    assert_allclose(shown[:, 1], MODEL.studentized_residuals(X, Y), rtol=1e-9)
    cook = MODEL.cooks_distance(X, Y)
    assert [int(text.get_text()) for text in ax.texts] == np.argsort(-cook)[:3].tolist()
    assert_allclose(ax.collections[0].get_sizes(), 8 + 300 * np.minimum(cook, 2.0))
    with pytest.raises(ValueError, match="more rows than columns"):
        plot_influence(MODEL, X[:4], Y[:4])
