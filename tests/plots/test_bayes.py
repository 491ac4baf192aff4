"""What the pictures of distributions show is what the models say."""

from __future__ import annotations

import numpy as np
import pytest

from certifit import (
    LDA,
    QDA,
    BayesianLinearRegression,
    BetaBernoulli,
    DecisionTreeClassifier,
    DirichletCategorical,
    GammaPoisson,
    GaussianNB,
    NormalInverseGamma,
    Ridge,
)
from certifit.plots import plot_band, plot_classes, plot_updates

RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(size=(40, 3)), RNG.normal([3.0, 1.0, 0.0], [1.0, 2.0, 0.5], size=(40, 3))])
Y = np.repeat(["a", "b"], 40)


@pytest.mark.parametrize("model", [LDA(), QDA(), GaussianNB()], ids=repr)
def test_ellipses_lie_at_one_and_two_standard_deviations(model: object) -> None:
    fitted = model.fit(X, Y)  # type: ignore[attr-defined]
    ax = plot_classes(fitted, X, Y, columns=(0, 2))
    drawn = {line.get_label(): line for line in ax.get_lines()}
    np.testing.assert_array_equal(drawn["a"].get_xydata(), X[:40, [0, 2]])
    curves = [line.get_xydata() for line in ax.get_lines() if len(line.get_xdata()) == 200]
    assert len(curves) == 4
    for k, own in enumerate((X[:40], X[40:])):
        mean = own.mean(axis=0)[[0, 2]]
        spread = np.cov(own[:, [0, 2]].T, bias=True)
        if isinstance(model, LDA):
            spread = 0.5 * (np.cov(X[:40, [0, 2]].T, bias=True) + np.cov(X[40:, [0, 2]].T, bias=True))
        if isinstance(model, GaussianNB):
            spread = np.diag(np.diag(spread))
        for radius, curve in zip((1.0, 2.0), curves[2 * k : 2 * k + 2], strict=True):
            off = curve - mean
            np.testing.assert_allclose(np.einsum("ij,ij->i", off @ np.linalg.inv(spread), off), radius**2, rtol=1e-6)


def test_any_classifier_has_rows_and_regions() -> None:
    ax = plot_classes(DecisionTreeClassifier(max_depth=1).fit(X, Y), X, Y)
    assert len(ax.collections) >= 2
    assert not [line for line in ax.get_lines() if len(line.get_xdata()) == 200]


def test_panels_show_the_posterior_after_each_number_of_observations() -> None:
    seen = [1, 1, 0, 1, 1]
    panels = plot_updates(BetaBernoulli(2, 2), seen, steps=(0, 2, 5, 99))
    assert [ax.get_title() for ax in panels] == ["prior", "after 2", "after 5"]
    for ax, n in zip(panels, (0, 2, 5), strict=True):
        known = BetaBernoulli(2, 2).update(seen[:n])
        x, density = ax.get_lines()[0].get_data()
        np.testing.assert_allclose(density, known.distribution.pdf(x))
        assert ax.get_lines()[1].get_xdata()[0] == pytest.approx(known.mean)
    for prior in (GammaPoisson(), NormalInverseGamma(), BetaBernoulli(0.5, 0.5)):
        assert len(plot_updates(prior, [1.0, 0.0], steps=(0, 2))) == 2


def test_bands_are_those_of_the_model() -> None:
    x = np.linspace(-1, 1, 15)[:, None]
    y = 1 + 2 * x[:, 0] + 0.3 * RNG.normal(size=15)
    model, grid = BayesianLinearRegression().fit(x, y), np.linspace(-2, 2, 7)
    ax = plot_band(model, x, y, level=0.8, lines=3, grid=grid)
    outer, inner = (band.get_paths()[0].vertices[:, 1] for band in ax.collections)
    low, high = model.predict_interval(grid[:, None], 0.8)
    assert (outer.min(), outer.max()) == pytest.approx((low.min(), high.max()))
    low, high = model.predict_interval(grid[:, None], 0.8, of="line")
    assert (inner.min(), inner.max()) == pytest.approx((low.min(), high.max()))
    assert len(ax.get_lines()) == 3 + 1 + 1
    assert len(plot_band(model).collections) == 2


BAD = {
    "columns": (lambda: plot_classes(LDA().fit(X, Y), X, Y, columns=(0, 9)), ValueError, "columns must be distinct"),
    "no classes": (lambda: plot_classes(Ridge().fit(X, X[:, 0]), X, Y), TypeError, "Ridge has no classes"),
    "not fitted": (lambda: plot_classes(LDA(), X, Y), ValueError, "not fitted yet"),
    "same": (lambda: plot_classes(LDA().fit(X, Y), X, Y, columns=(1, 1)), ValueError, "columns must be distinct"),
    "labels": (lambda: plot_classes(LDA().fit(X, Y), X, Y[:3]), ValueError, "a label for each of the 80 rows"),
    "rows": (lambda: plot_classes(LDA().fit(X, Y), X[0], Y), ValueError, "rows and columns"),
    "steps": (lambda: plot_updates(BetaBernoulli(), [1, 0], steps=(5,)), ValueError, "from 0 to 2"),
    "panels": (lambda: plot_updates(BetaBernoulli(), [1, 0], steps=(0, 1), axes=[None]), ValueError, "must be 2"),
    "prior": (lambda: plot_updates(DirichletCategorical([1, 1]), [0]), TypeError, "one number"),
    "no posterior": (
        lambda: plot_band(Ridge().fit(X[:, :1], X[:, 0])),
        TypeError,
        "BayesianLinearRegression.*Ridge is fitted but",
    ),
    "not fitted band": (lambda: plot_band(BayesianLinearRegression()), ValueError, "not fitted yet"),
    "several columns": (lambda: plot_band(BayesianLinearRegression().fit(X, X[:, 0])), ValueError, "one column"),
}


@pytest.mark.parametrize(("call", "kind", "words"), BAD.values(), ids=BAD)
def test_bad_input_is_named(call, kind: type[Exception], words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(kind, match=words):
        call()
