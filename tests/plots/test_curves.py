"""Pictures of learning and validation curves show the numbers that were found."""

from __future__ import annotations

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from certifit import Ridge, learning_curve, validation_curve
from certifit.axes import axes_of
from certifit.plots import plot_learning_curve, plot_validation_curve

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = X[:, 0] + 0.5 * RNG.normal(size=120)


def test_learning_curve() -> None:
    curve = learning_curve(Ridge(alpha=0.01), X, Y, "mse", sizes=4)
    ax = axes_of()
    assert curve.plot(ax, until=400) is ax
    train, unseen, ahead = ax.lines
    np.testing.assert_allclose(train.get_xydata(), np.column_stack([curve.rows, curve.train]))
    np.testing.assert_allclose(unseen.get_ydata(), curve.validation)
    assert ahead.get_xdata()[-1] == 400
    np.testing.assert_allclose(ahead.get_ydata()[-1], curve.expected(400)[0])
    assert ax.get_title().replace("\n", " ") == curve.reading
    assert len(plot_learning_curve(curve).lines) == 2


def test_validation_curve_of_numbers_and_of_names() -> None:
    curve = validation_curve(DecisionTreeRegressor(random_state=0), X, Y, "mse", "max_depth", [1, 2, 3])
    ax = curve.plot()
    assert ax.get_xscale() == "linear"
    assert ax.lines[2].get_xdata()[0] == curve.best
    names = validation_curve(
        DecisionTreeRegressor(random_state=0), X, Y, "mse", "criterion", ["squared_error", "absolute_error"]
    )
    drawn = plot_validation_curve(names)
    assert [tick.get_text() for tick in drawn.get_xticklabels()] == ["squared_error", "absolute_error"]
    assert validation_curve(Ridge(), X, Y, "mse", "alpha", [1e-3, 1.0]).plot().get_xscale() == "log"
