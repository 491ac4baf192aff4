"""Scaling: values against scikit-learn and exact arithmetic, weights, layouts, extremes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import preprocessing as peer
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from tests.representation.basis.strategies import matrices, weighted_matrices

from certifit import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler

SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler(),
    MinMaxScaler(feature_range=(-2.0, 3.0), clip=True),
    MaxAbsScaler(),
    RobustScaler(),
    Normalizer(),
    Normalizer(norm="l1"),
    Normalizer(norm="max"),
]
LEARNING = [s for s in SCALERS if not isinstance(s, Normalizer)]


@pytest.mark.parametrize("shape", [(3000, 7), (40, 900), (1, 3), (16, 1), (5000, 600)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_values_agree_with_scikit_learn(shape, dtype, order):
    rng = np.random.default_rng(0)
    X = np.asarray((rng.normal(size=shape) * 3 + 10 * rng.normal(size=shape[1])).astype(dtype), order=order)
    X.setflags(write=False)
    tolerance = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 1e-3, "atol": 1e-5}
    wide = X.astype(np.float64)
    pairs = [
        (StandardScaler(), peer.StandardScaler()),
        (StandardScaler(with_mean=False), peer.StandardScaler(with_mean=False)),
        (MinMaxScaler((-1.0, 2.0)), peer.MinMaxScaler((-1.0, 2.0))),
        (MaxAbsScaler(), peer.MaxAbsScaler()),
        *((Normalizer(norm), peer.Normalizer(norm)) for norm in ("l1", "l2", "max")),
    ]
    for ours, theirs in pairs:
        got = ours.fit_transform(X)
        assert got.dtype == dtype
        np.testing.assert_allclose(got, theirs.fit_transform(wide), **tolerance)


def test_strided_input():
    X = np.random.default_rng(0).normal(size=(60, 8))
    for scaler in SCALERS:
        np.testing.assert_allclose(
            clone(scaler).fit_transform(X[::2, ::3]),
            clone(scaler).fit_transform(X[::2, ::3].copy()),
            rtol=1e-12,
        )


def test_weighted_moments_agree_with_exact_arithmetic():
    rng = np.random.default_rng(1)
    X, weight = 1e6 + rng.normal(size=(37, 3)), rng.random(37)
    scaler = StandardScaler().fit(X, sample_weight=weight)
    w = [Fraction(v) for v in weight]
    for j in range(3):
        x = [Fraction(v) for v in X[:, j]]
        mean = sum(a * b for a, b in zip(w, x, strict=True)) / sum(w)
        variance = sum(a * (b - mean) ** 2 for a, b in zip(w, x, strict=True)) / sum(w)
        assert scaler.mean_[j] == pytest.approx(float(mean), rel=1e-15)
        assert scaler.var_[j] == pytest.approx(float(variance), rel=1e-9)


def test_a_small_spread_on_a_large_mean_is_not_lost():
    X = np.repeat([[1e9], [1e9 + 1e-6], [1e9 + 2e-6]], 1000, axis=0)
    x = [Fraction(v) for v in X[::1000, 0]]
    variance = sum((v - sum(x) / 3) ** 2 for v in x) / 3
    assert StandardScaler().fit(X).scale_[0] == pytest.approx(float(variance) ** 0.5, rel=1e-9)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_is_dense_without_the_zeros(container, dtype):
    rng = np.random.default_rng(2)
    X = (rng.normal(size=(50, 6)) * (rng.random((50, 6)) < 0.4)).astype(dtype)
    X[:, 2], X[:, 3], X[7] = 0.0, 5.0, 0.0
    weight = rng.integers(0, 3, size=50)
    scaler = StandardScaler(with_mean=False)
    sparse = scaler.fit(container(X), sample_weight=weight).transform(container(X))
    mean, scale, constant = scaler.mean_, scaler.scale_, scaler.constant_
    assert isinstance(sparse, container)
    assert sparse.dtype == dtype
    np.testing.assert_array_equal(constant, [False, False, True, False, False, False])
    dense = scaler.fit(X, sample_weight=weight).transform(X)
    np.testing.assert_allclose(scaler.mean_, mean, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(scaler.scale_, scale, rtol=1e-12)
    np.testing.assert_allclose(sparse.toarray(), dense, rtol=1e-6)
    np.testing.assert_allclose(scaler.inverse_transform(sparse).toarray(), X, rtol=1e-6)
    for norm in ("l2", "l1", "max"):
        np.testing.assert_allclose(
            Normalizer(norm).fit_transform(container(X)).toarray(),
            Normalizer(norm).fit_transform(X),
            rtol=1e-6,
        )


def test_sparse_duplicates_are_summed_and_the_input_is_left_alone():
    X = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert StandardScaler(with_mean=False).fit(X).mean_ == pytest.approx([1.5, 2.0])
    np.testing.assert_array_equal(Normalizer().fit_transform(X).toarray(), np.eye(2))
    assert X.nnz == 3


def test_sparse_centering_is_refused_with_a_cure():
    X = sp.eye_array(4, format="csr")
    with pytest.raises(ValueError, match=r"with_mean=True.*with_mean=False.*toarray"):
        StandardScaler().fit(X)
    with pytest.raises(ValueError, match="sparse"):
        StandardScaler().fit(X.toarray()).inverse_transform(X)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        MinMaxScaler().fit(X)


@pytest.mark.parametrize("magnitude", [1e-300, 1e-150, 1e150, 1e300])
def test_extreme_magnitudes(magnitude):
    rng = np.random.default_rng(3)
    base = rng.normal(size=(200, 3))
    with np.errstate(all="raise", under="ignore"):
        for scaler in SCALERS:
            if isinstance(scaler, StandardScaler) and not scaler.with_std:
                continue
            expected = clone(scaler).fit_transform(base)
            np.testing.assert_allclose(clone(scaler).fit_transform(base * magnitude), expected, rtol=1e-10, atol=1e-12)
    sparse = sp.csr_array(base * (base > 0))
    for scaler in (StandardScaler(with_mean=False), Normalizer(), Normalizer("l1")):
        expected = clone(scaler).fit_transform(sparse).toarray()
        got = clone(scaler).fit_transform(sparse * magnitude).toarray()
        np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_extreme_weights_do_not_matter():
    X = np.random.default_rng(4).normal(size=(30, 2))
    plain = StandardScaler().fit(X)
    for weight in (1e-300, 1e300):
        scaler = StandardScaler().fit(X, sample_weight=np.full(30, weight))
        np.testing.assert_allclose(scaler.scale_, plain.scale_, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e-320, -1e300, 1 / 3])
def test_constant_columns_become_zero_and_are_recorded(value):
    X = np.full((1001, 2), value)
    X[:, 1] = np.arange(1001)
    scaler = StandardScaler().fit(X, sample_weight=np.random.default_rng(0).random(1001))
    assert scaler.constant_.tolist() == [True, False]
    assert scaler.scale_[0] == 1.0
    assert scaler.mean_[0] == value
    assert not scaler.transform(X)[:, 0].any()
    ranged = MinMaxScaler((2.0, 3.0)).fit(X)
    assert ranged.constant_.tolist() == [True, False]
    assert (ranged.transform(X)[:, 0] == 2.0).all()


def test_min_max_reaches_both_ends_exactly_and_clips():
    X = np.random.default_rng(5).normal(size=(100, 5)) * 0.3
    Z = MinMaxScaler((0.1, 0.3)).fit_transform(X)
    assert (Z.min(axis=0) == 0.1).all()
    assert (Z.max(axis=0) == 0.3).all()
    clipped = MinMaxScaler(clip=True).fit(X).transform(X * 10)
    assert clipped.min() == 0.0
    assert clipped.max() == 1.0


@pytest.mark.parametrize("scaler", LEARNING, ids=repr)
@given(rows=weighted_matrices(1e6))
@settings(max_examples=25, deadline=None)
def test_weight_is_repetition(scaler, rows):
    X, weight = rows
    weighted = clone(scaler).fit(X, sample_weight=weight).transform(X)
    repeated = clone(scaler).fit(np.repeat(X, weight, axis=0)).transform(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scaler", [s for s in LEARNING if not getattr(s, "clip", False)], ids=repr)
@given(X=matrices(1e6))
@settings(max_examples=25, deadline=None)
def test_inverse_undoes_transform(scaler, X):
    fitted = clone(scaler).fit(X)
    back = fitted.inverse_transform(fitted.transform(X))
    np.testing.assert_allclose(back, X, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(X).max()))


@given(X=matrices(1e6), norm=st.sampled_from(["l2", "l1", "max"]))
@settings(max_examples=50, deadline=None)
def test_rows_have_norm_one_or_are_zero(X, norm):
    Z = Normalizer(norm).fit_transform(X)
    length = np.linalg.norm(Z, ord={"l2": 2, "l1": 1, "max": np.inf}[norm], axis=1)
    np.testing.assert_allclose(length, X.any(axis=1).astype(float), rtol=1e-12)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_their_names(frame, recwarn):
    X = frame({"age": [1.0, 2.0, 4.0], "income": [3.0, 1.0, 0.0]})
    library = "pandas" if frame is pd.DataFrame else "polars"
    for scaler in SCALERS:
        fitted = clone(scaler).set_output(transform=library).fit(X)
        Z = fitted.transform(X)
        assert isinstance(Z, frame)
        assert list(Z.columns) == ["age", "income"]
        if hasattr(fitted, "inverse_transform") and not getattr(fitted, "clip", False):
            np.testing.assert_allclose(fitted.inverse_transform(Z), X.to_numpy(), atol=1e-12)
            np.testing.assert_allclose(fitted.inverse_transform(Z.to_numpy()), X.to_numpy(), atol=1e-12)
    assert not recwarn.list


def test_errors_name_argument_and_cure():
    X = pd.DataFrame({"age": [1.0, 2.0], "income": [np.nan, 1.0]})
    with pytest.raises(ValueError, match="income"):
        StandardScaler().fit(X)
    with pytest.raises(ValueError, match=r"feature_range must be .* low < high; got \(1.0, 0.0\)"):
        MinMaxScaler(feature_range=(1.0, 0.0)).fit([[1.0]])
    with pytest.raises(ValueError, match="norm must be one of"):
        Normalizer(norm="l3").transform([[1.0]])
    with pytest.raises(TypeError, match="with_mean must be True or False; got 'yes'"):
        StandardScaler(with_mean="yes").fit([[1.0]])
    with pytest.raises(ValueError, match=r"overflows float64: column 0 .*unit"):
        MinMaxScaler().fit([[-1.7e308], [1.7e308]])
    with pytest.raises(ValueError, match="X has 2 features, but StandardScaler is expecting 1"):
        StandardScaler().fit([[1.0]]).inverse_transform([[1.0, 2.0]])
    with pytest.raises(ValueError, match="sample_weight"):
        StandardScaler().fit([[1.0]], sample_weight=[-1.0])


def test_pipeline():
    X = np.random.default_rng(0).normal(size=(20, 3))
    Z = make_pipeline(StandardScaler(), Normalizer(), MinMaxScaler()).fit_transform(X)
    assert Z.shape == X.shape


def test_the_ends_of_the_interval_under_their_old_names():
    X = [[0.0], [4.0]]
    with pytest.warns(FutureWarning, match="feature_range"):
        old = MinMaxScaler(low=-1.0, high=3.0).fit(X)
    np.testing.assert_array_equal(old.transform(X), MinMaxScaler(feature_range=(-1.0, 3.0)).fit_transform(X))
    del old.feature_range  # as a file of an earlier release
    np.testing.assert_array_equal(old.inverse_transform(old.transform(X)), X)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), MaxAbsScaler()], ids=str)
def test_blocks_are_all_rows_and_nan_stays(scaler):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4)) * 3.0 + 5.0
    X[rng.random(X.shape) < 0.1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clone(scaler).fit(X)
    whole, parts = clone(scaler).set_params(missing="keep").fit(X), clone(scaler).set_params(missing="keep")
    for rows in (slice(0, 1), slice(1, 40), slice(40, 90)):
        parts.partial_fit(X[rows])
    np.testing.assert_allclose(parts.transform(X), whole.transform(X), rtol=1e-12)
    np.testing.assert_array_equal(np.isnan(whole.transform(X)), np.isnan(X))
    np.testing.assert_allclose(whole.inverse_transform(whole.transform(X)), X, rtol=1e-12)


def test_largest_entries_of_sparse_rows_and_clipping():
    X = np.array([[0.0, -4.0], [2.0, 0.0], [0.0, 1.0]])
    scaler = MaxAbsScaler(clip=True).fit(sp.csr_array(X))
    np.testing.assert_array_equal(scaler.max_abs_, [2.0, 4.0])
    np.testing.assert_array_equal(scaler.transform(sp.csc_array(2 * X)).toarray(), np.clip(2 * X / [2.0, 4.0], -1, 1))
    np.testing.assert_array_equal(scaler.inverse_transform(sp.csr_array(X)).toarray(), X * [2.0, 4.0])


def test_a_file_of_an_earlier_release_cannot_go_on():
    scaler = StandardScaler().fit([[1.0], [2.0]])
    del scaler.moments_
    assert scaler.transform([[1.5]])[0, 0] == 0.0
    with pytest.raises(ValueError, match="earlier release"):
        scaler.partial_fit([[3.0]])


def test_an_interval_beyond_single_precision_is_refused():
    X = np.eye(3)
    scaler = MinMaxScaler(feature_range=(0.0, 1e150))
    with pytest.raises(ValueError, match=r"feature_range=\(0, 1e\+150\) is beyond single precision"):
        scaler.fit(X.astype(np.float32))
    assert scaler.fit_transform(X).max() == 1e150
    with pytest.raises(ValueError, match="beyond single precision"):
        scaler.transform(X.astype(np.float32))
    assert MinMaxScaler(feature_range=(0.0, 1e30)).fit_transform(X.astype(np.float32)).dtype == np.float32
