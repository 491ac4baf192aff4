"""Scales by quantiles: NumPy's own, weights as repetitions, wild values without effect."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from certifit import RobustScaler

RNG = np.random.default_rng(0)
X = RNG.normal(size=(61, 3)) * np.array([1.0, 5.0, 0.1]) + 2.0
X[:, 2] = np.round(X[:, 2], 1)
WEIGHT = RNG.integers(0, 4, size=61)


@pytest.mark.parametrize(("quantiles", "method"), [("averaged", "averaged_inverted_cdf"), ("linear", "linear")])
@pytest.mark.parametrize("quantile_range", [(25.0, 75.0), (10.0, 95.0), (0.0, 100.0)])
def test_quantiles_are_those_of_the_repeated_rows(
    quantiles: str, method: str, quantile_range: tuple[float, float]
) -> None:
    scaler = RobustScaler(quantile_range=quantile_range, quantiles=quantiles).fit(X, sample_weight=WEIGHT)
    repeated = np.repeat(X, WEIGHT, axis=0)
    low, high = np.percentile(repeated, quantile_range, axis=0, method=method)  # type: ignore[call-overload]
    assert_allclose(scaler.center_, np.median(repeated, axis=0))
    assert_allclose(scaler.scale_, high - low)
    assert_allclose(scaler.transform(X), (X - scaler.center_) / scaler.scale_)
    assert_allclose(scaler.inverse_transform(scaler.transform(X)), X)


def test_wild_values_do_not_matter() -> None:
    wild = X.copy()
    wild[np.argmax(X[:, 0]), 0] = 1e300
    assert_array_equal(RobustScaler().fit(wild).scale_, RobustScaler().fit(X).scale_)


def test_normal_columns_get_variance_one() -> None:
    normal = np.random.default_rng(1).normal(scale=7.0, size=(20_000, 1))
    assert RobustScaler(unit_variance=True).fit_transform(normal).std() == pytest.approx(1.0, rel=0.02)
    with pytest.raises(ValueError, match="without 0 and 100 if unit_variance"):
        RobustScaler(unit_variance=True, quantile_range=(0.0, 100.0)).fit(normal)


def test_sparse_rows_keep_their_zeros() -> None:
    rows = sp.csr_array(np.where(np.abs(X - 2.0) > 0.3, X, 0.0))
    with pytest.raises(ValueError, match=r"X is sparse and with_centering=True"):
        RobustScaler().fit(rows)
    sparse, dense = (RobustScaler(with_centering=False).fit(one) for one in (rows, rows.toarray()))
    assert_allclose(sparse.scale_, dense.scale_)
    assert_allclose(sparse.transform(rows).toarray(), dense.transform(rows.toarray()))
    assert_allclose(sparse.inverse_transform(sparse.transform(rows)).toarray(), rows.toarray())


def test_missing_values_and_constant_columns() -> None:
    holes = X.copy()
    holes[::7, 1] = np.nan
    holes[:, 2] = 4.0
    with pytest.raises(ValueError, match="NaN"):
        RobustScaler().fit(holes)
    scaler = RobustScaler(missing="keep").fit(holes)
    assert scaler.center_[1] == pytest.approx(np.nanmedian(holes[:, 1]))
    assert scaler.scale_[2] == 1.0
    assert_array_equal(np.isnan(scaler.transform(holes)), np.isnan(holes))
    with pytest.raises(ValueError, match="quantiles differ by more than float64 can hold"):
        RobustScaler().fit([[-1.5e308], [1.5e308], [-1.5e308], [1.5e308]])
