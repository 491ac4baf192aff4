"""Curves over all thresholds, and their bands."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from certifit.plots import plot_confusion, plot_precision_recall, plot_roc
from certifit.plots.ranking import roc_band

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = np.where(X[:, 0] + RNG.normal(size=300) > 0, "yes", "no")
MODEL = LogisticRegression().fit(X, Y)
FOREST = RandomForestClassifier(10, max_depth=2, random_state=0).fit(X, Y)


def test_the_curves_are_those_of_scikit_learn() -> None:
    score = MODEL.decision_function(X)
    ax = plot_roc({"line": MODEL, "trees": FOREST}, X, Y)
    fpr, tpr, _ = sklearn.metrics.roc_curve(Y, score, pos_label="yes", drop_intermediate=False)
    np.testing.assert_allclose(ax.lines[1].get_xydata(), np.column_stack([fpr, tpr]))
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts[1] == f"line: area {sklearn.metrics.roc_auc_score(Y, score):.3f}"
    assert len(texts) == 3
    pr = plot_precision_recall(MODEL, X, Y)
    expected = sklearn.metrics.average_precision_score(Y, score, pos_label="yes")
    assert pr.get_legend().get_texts()[1].get_text() == f"average precision {expected:.3f}"
    assert pr.get_legend().get_texts()[0].get_text() == f"share of yes: {np.mean(Y == 'yes'):.3g}"
    assert not plot_roc(MODEL, X, Y, level=None).collections


def test_the_band_holds_the_whole_curve_as_often_as_it_says() -> None:
    """Scores of two normal distributions, whose curve is known: tpr = Φ(1 + Φ⁻¹(fpr))."""
    from scipy.stats import norm

    inside, rounds, draw = 0, 400, np.random.default_rng(1)
    for _ in range(rounds):
        y = np.repeat([0, 1], [60, 90])
        grid, low, high = roc_band(y, draw.normal(size=150) + y, 0.8)
        truth = norm.cdf(1.0 + norm.ppf(grid))
        inside += bool(((low <= truth + 1e-9) & (truth <= high + 1e-9)).all())
    assert inside / rounds >= 0.8 - 2 * np.sqrt(0.16 / rounds)


def test_the_band_surrounds_the_curve_and_narrows() -> None:
    score = MODEL.decision_function(X)
    fpr, tpr, _ = sklearn.metrics.roc_curve(Y, score, pos_label="yes")
    grid, low, high = roc_band(Y, score)
    at = np.interp(grid, fpr, tpr)
    assert (low <= at + 1e-9).all()
    assert (high >= at - 1e-9).all()
    many = roc_band(np.tile(Y, 20), np.tile(score, 20))
    assert (many[2] - many[1]).mean() < 0.5 * (high - low).mean()
    band = plot_precision_recall(MODEL, X, Y).collections[0].get_paths()[0].vertices
    assert band[:, 1].min() >= 0.0
    assert band[:, 1].max() <= 1.0


def test_confusion() -> None:
    ax = plot_confusion(FOREST, X, Y)
    wanted = sklearn.metrics.confusion_matrix(Y, FOREST.predict(X))
    shown = [int(text.get_text().split("\n")[0]) for text in ax.texts]
    assert shown == wanted.ravel().tolist()
    assert ax.texts[0].get_text().split("\n")[1] == f"{100 * wanted[0, 0] / wanted[0].sum():.0f} %"
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["no", "yes"]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="model is empty"):
        plot_roc({}, X, Y)
    with pytest.raises(ValueError, match="level"):
        plot_roc(MODEL, X, Y, level=2.0)
