"""What the pictures of trees and forests show is what the models say."""

from __future__ import annotations

import re
from collections.abc import Iterator

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest

from certifit import DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier, plots


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def rows(n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, np.where(X[:, 0] > 0.2, "up", np.where(X[:, 1] > 0, "left", "right"))


def test_a_tree_shows_every_node_with_its_question() -> None:
    X, y = rows()
    model = DecisionTreeClassifier().fit(X, y)
    ax = plots.plot_tree(model)
    assert len(ax.patches) == 2 * model.n_leaves_ - 1
    shown = "\n".join(text.get_text() for text in ax.texts)
    # The questions are those of the rules: the same columns, the same thresholds to the digits shown.
    asked = re.findall(r"(x\d) <= (-?[\d.]+)", model.rules())
    drawn = re.findall(r"(x\d) ≤\s(-?[\d.]+)", shown)
    assert sorted(drawn) == sorted((column, f"{float(threshold):.3g}") for column, threshold in asked)
    for label in ("up", "left", "right"):
        assert label in shown


def test_depth_and_axes_are_those_asked_for() -> None:
    X, _ = rows()
    model = DecisionTreeRegressor().fit(X, X[:, 0] + X[:, 1])
    _, given = plt.subplots()
    ax = plots.plot_tree(model, ax=given, max_depth=1)
    assert ax is given
    assert len(ax.patches) == 3  # a question and two answers
    deeper = plots.plot_tree(model, max_depth=2)
    assert 3 < len(deeper.patches) <= 7


def test_the_curve_of_a_forest_is_its_out_of_bag_error() -> None:
    X, y = rows(200)
    forest = RandomForestClassifier(n_estimators=15, oob_score=True, random_state=0).fit(X, y)
    ax = plots.plot_oob_curve(forest)
    (line,) = ax.get_lines()
    np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 16))
    np.testing.assert_array_equal(line.get_ydata(), forest.oob_curve_)
    if hasattr(forest, "oob_interval_"):
        (band,) = ax.patches
        low, high = forest.oob_interval_
        corners = band.get_extents().transformed(ax.transData.inverted())
        assert (corners.y0, corners.y1) == pytest.approx((low, high))
    assert ax.get_ylim()[0] == 0.0


def test_a_forest_without_out_of_bag_rows_says_how_to_get_them() -> None:
    X, y = rows()
    forest = RandomForestClassifier(n_estimators=3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="oob_score=True"):
        plots.plot_oob_curve(forest)
