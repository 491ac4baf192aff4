"""The picture of a local fit shows what the model says."""

from __future__ import annotations

import numpy as np
import pytest

from certifit import KernelRidge, LocallyWeightedRegression
from certifit.plots import plot_local_fit

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 6, size=(120, 1))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=120)


def test_curve_band_and_rows() -> None:
    model = LocallyWeightedRegression(bandwidth=0.4).fit(X, Y)
    ax = plot_local_fit(model, level=0.9, points=50)
    at, curve = ax.lines[0].get_data()
    mean, error = model.predict(np.asarray(at)[:, None], return_std=True)
    np.testing.assert_allclose(curve, mean)
    rows, band = ax.collections[0].get_offsets(), ax.collections[1].get_paths()[0].vertices
    order = np.argsort(X[:, 0])
    np.testing.assert_allclose(rows, np.column_stack([X[:, 0], Y])[order], rtol=1e-12)
    assert band[:, 1].max() == pytest.approx((mean + 1.6448536 * error).max(), rel=1e-6)
    assert plot_local_fit(model, ax=ax) is ax


def test_what_has_no_curve_is_refused() -> None:
    with pytest.raises(ValueError, match="one column and one target"):
        plot_local_fit(LocallyWeightedRegression(bandwidth=1.0).fit(np.hstack([X, X]), Y))
    with pytest.raises(ValueError, match="level"):
        plot_local_fit(LocallyWeightedRegression(bandwidth=1.0).fit(X, Y), level=1.0)
    with pytest.raises(TypeError, match="LocallyWeightedRegression; got KernelRidge"):
        plot_local_fit(KernelRidge().fit(X, Y))
