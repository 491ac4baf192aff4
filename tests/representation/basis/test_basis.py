"""Basis expansion: values against scikit-learn and brute force, weights, layouts, extremes, messages."""

from __future__ import annotations

from math import comb

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist
from scipy.special import ndtri
from scipy.stats import norm
from sklearn import preprocessing as peer
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from tests.representation.basis.strategies import matrices, weighted_matrices

from certifit import (
    Discretizer,
    LogTransform,
    PolynomialFeatures,
    QuantileScaler,
    RBFFeatures,
    Saturation,
    SplineBasis,
    StandardScaler,
)
from certifit.representation.basis.columns import weighted_quantiles

EXPANSIONS = [
    PolynomialFeatures(),
    PolynomialFeatures(degree=3, interaction_only=True, include_bias=True, order="F"),
    LogTransform(),
    LogTransform(mode="signed"),
    Saturation(),
    Saturation(shape="tanh", half=2.0),
    QuantileScaler(),
    QuantileScaler("uniform", n_quantiles=3),
    Discretizer(),
    Discretizer(bins=4, strategy="uniform", encode="ordinal"),
    Discretizer(bins=[-1.0, 0.5]),
    SplineBasis(),
    SplineBasis(knots=4, degree=2, strategy="uniform", include_bias=True),
    RBFFeatures(centers=4),
    RBFFeatures(centers=4, gamma="median", spread=True),
]
LEARNING = [e for e in EXPANSIONS if not isinstance(e, (PolynomialFeatures, LogTransform))]
SPARSE = [e for e in EXPANSIONS if isinstance(e, (PolynomialFeatures, LogTransform, Saturation, RBFFeatures))]


# Polynomials


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("include_bias", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_monomials_agree_with_scikit_learn(degree, interaction_only, include_bias, order):
    X = np.asarray(np.random.default_rng(0).normal(size=(301, 4)), order=order)
    X.setflags(write=False)
    ours = PolynomialFeatures(degree, interaction_only, include_bias, order=order).fit(X)
    theirs = peer.PolynomialFeatures(degree, interaction_only=interaction_only, include_bias=include_bias).fit(X)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-13)
    assert ours.transform(X).flags[f"{order}_CONTIGUOUS"]
    np.testing.assert_array_equal(ours.powers_, theirs.powers_)
    np.testing.assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())


@given(d=st.integers(1, 6), degree=st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_number_of_monomials(d, degree):
    X = np.ones((2, d))
    expand = PolynomialFeatures(degree, include_bias=True).fit(X)
    assert expand.n_output_features_ == comb(d + degree, degree) == expand.transform(X).shape[1]
    inner = PolynomialFeatures(degree, interaction_only=True).fit(X)
    assert inner.n_output_features_ == sum(comb(d, k) for k in range(1, degree + 1)) == inner.transform(X).shape[1]


@given(X=matrices(1e3), degree=st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_monomials_are_products_of_powers_in_graded_order(X, degree):
    expand = PolynomialFeatures(degree).fit(X)
    powers = expand.powers_
    np.testing.assert_allclose(expand.transform(X), np.prod(X[:, None, :] ** powers, axis=2), rtol=1e-12)
    keys = [(row.sum(), *(-row)) for row in powers]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("interaction_only", [False, True])
def test_sparse_monomials_are_the_dense_ones(container, degree, interaction_only):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 7)) * (rng.random((60, 7)) < 0.3)
    X[3] = 0.0
    for include_bias in (False, True):
        expand = PolynomialFeatures(degree, interaction_only, include_bias).fit(container(X))
        got = expand.transform(container(X))
        assert isinstance(got, container)
        np.testing.assert_allclose(got.toarray(), expand.transform(X), rtol=1e-13)
        got.has_canonical_format = False
        nnz = got.nnz
        got.sum_duplicates()
        assert got.nnz == nnz


def test_sparse_monomials_of_many_chunks():
    X = sp.random_array((4000, 30), density=0.3, random_state=0, format="csr", dtype=np.float32)
    ours, theirs = PolynomialFeatures(3), peer.PolynomialFeatures(3, include_bias=False)
    got, expected = ours.fit_transform(X), theirs.fit_transform(X)
    assert got.dtype == np.float32
    assert got.indices.dtype == np.int32
    assert abs(got - expected).max() < 1e-6


def test_sparse_input_that_is_not_canonical():
    X = sp.csr_array((np.array([4.0, 1.0, 2.0]), np.array([1, 0, 0]), np.array([0, 3, 3])), shape=(2, 2))
    for expand in (PolynomialFeatures(), LogTransform(), Saturation(half=1.0)):
        np.testing.assert_allclose(expand.fit_transform(X).toarray(), expand.fit_transform(X.toarray()))
    assert X.nnz == 3


def test_absurd_sizes_are_refused_before_they_are_made():
    X = np.zeros((10, 2000))
    with pytest.raises(ValueError, match=r"1,337,337,000 columns; 1 rows of them need 10 GiB.*Lower the degree"):
        PolynomialFeatures(3, max_gib=5.0).fit(X)
    expand = PolynomialFeatures(2).fit(X)
    with pytest.raises(ValueError, match=r"2,003,000 columns; 5,000 rows of them need 75 GiB.*max_gib=16"):
        expand.transform(np.zeros((5000, 2000)))
    assert expand.transform(sp.csr_array((5000, 2000))).shape == (5000, 2_003_000)
    for sample in (X, sp.csr_array(X)):
        with pytest.raises(ValueError, match=r"some 10\^1202 columns"):
            PolynomialFeatures(2000).fit(sample)
    with pytest.raises(ValueError, match=r"3 rows of them need .* GiB"):
        PolynomialFeatures(10).fit_transform(sp.csr_array(np.ones((3, 80))))


def test_sparse_rows_may_have_billions_of_columns():
    X = sp.csr_array(([2.0, 3.0], ([0, 0], [1, 1999])), shape=(1, 2000))
    got = PolynomialFeatures(3).fit_transform(X)
    assert got.shape == (1, 1_337_337_000)
    assert got.data.tolist() == [2.0, 3.0, 4.0, 6.0, 9.0, 8.0, 12.0, 18.0, 27.0]
    assert got.indices[-1] == 1_337_336_999
    wide = PolynomialFeatures(4, include_bias=True).fit_transform(X)
    assert wide.indices.dtype == np.int64
    assert wide.indices[-1] == comb(2004, 4) - 1


def test_overflow_is_an_error_that_names_the_monomial():
    X = pd.DataFrame({"age": [1.0, 2.0], "income": [1e200, 2.0]})
    with pytest.raises(ValueError, match=r"'income\^2' overflows float64.*Scale"):
        PolynomialFeatures().fit_transform(X)
    with pytest.raises(ValueError, match=r"'x1\^2' overflows"):
        PolynomialFeatures().fit_transform(sp.csr_array(X.to_numpy()))
    assert PolynomialFeatures(interaction_only=True).fit_transform(X)[0, 2] == 1e200


# One column to one column


def test_logarithms():
    X = np.array([[0.0, 1.0], [10.0, 1e300]])
    np.testing.assert_array_equal(LogTransform().fit_transform(X), np.log1p(X))
    np.testing.assert_array_equal(LogTransform(mode="signed").fit_transform(-X), -np.log1p(X))
    with pytest.raises(ValueError, match=r"'debt' \(and 0 more\) has -3.*mode='signed'"):
        LogTransform().fit(pd.DataFrame({"age": [1.0], "debt": [-3.0]}))
    with pytest.raises(ValueError, match="column 1 "):
        LogTransform().transform(sp.csr_array([[1.0, -1.0]]))


@pytest.mark.parametrize("shape", ["hyperbolic", "tanh"])
def test_saturation_is_half_at_half_odd_bounded_and_increasing(shape):
    x = np.array([[-1e308], [-3.0], [-1e-3], [0.0], [1e-3], [3.0], [1e308]])
    z = Saturation(shape, half=3.0).fit_transform(x).ravel()
    np.testing.assert_allclose(z + z[::-1], 0.0)
    assert z[5] == pytest.approx(0.5)
    assert z[-1] == pytest.approx(1.0)
    assert (np.diff(z) > 0).all()
    if shape == "hyperbolic":
        assert z[4] == pytest.approx(1e-3 / 3.001)


def test_saturation_learns_the_median_size():
    X = np.array([[1.0, 0.0, 0.0], [-2.0, 0.0, 0.0], [3.0, 0.0, 0.0], [-40.0, 7.0, 0.0]])
    assert Saturation().fit(X).half_.tolist() == [2.5, 7.0, 1.0]
    for container in (sp.csr_array, sp.csc_array):
        assert Saturation().fit(container(X)).half_.tolist() == [2.5, 7.0, 1.0]
    assert Saturation().fit(X, sample_weight=[1, 1, 0, 3]).half_.tolist() == [40.0, 7.0, 1.0]
    assert Saturation(half=[1.0, 2.0, 3.0]).fit(X).half_.tolist() == [1.0, 2.0, 3.0]
    for magnitude in (1e-150, 1e150):
        np.testing.assert_allclose(
            Saturation().fit_transform(X[:, :2] * magnitude), Saturation().fit_transform(X[:, :2])
        )


@pytest.mark.parametrize(
    "expansion",
    [LogTransform(), LogTransform("signed"), Saturation(), Saturation("tanh", half=400.0)],
    ids=repr,
)
@given(X=matrices(1e3))
@settings(max_examples=30, deadline=None)
def test_inverse_undoes_transform(expansion, X):
    if expansion == LogTransform() or getattr(expansion, "mode", "") == "positive":
        X = np.abs(X)
    fitted = clone(expansion).fit(X)
    Z = fitted.transform(X)
    if (np.abs(Z) > 0.999).any() and isinstance(fitted, Saturation):
        return  # too saturated for the digits to come back
    np.testing.assert_allclose(fitted.inverse_transform(Z), X, rtol=1e-9, atol=1e-9)


@given(X=matrices(1e300), shares=st.sampled_from([2, 5, 100]))
@settings(max_examples=50, deadline=None)
def test_quantile_levels_are_mean_ranks_and_keep_the_order(X, shares):
    for output in ("uniform", "normal"):
        scaler = QuantileScaler(output, n_quantiles=shares).fit(X)
        Z = scaler.transform(X)
        for x, z, knots, levels in zip(X.T, Z.T, scaler.knots_, scaler.levels_, strict=True):
            expected = np.array([((x < v).mean() + (x <= v).mean()) / 2 for v in knots])
            np.testing.assert_allclose(levels, expected if output == "uniform" else norm.ppf(expected), atol=1e-12)
            assert (np.diff(z[np.argsort(x)]) >= -1e-12).all()
            assert (levels[0] <= z).all()
            assert (z <= levels[-1]).all()


def test_quantile_levels_of_few_values_and_beyond_the_ends():
    X = np.array([[1.0, 7.0, 0.0], [2.0, 7.0, 0.0], [3.0, 7.0, 1.0], [1e6, 7.0, 0.0]])
    scaler = QuantileScaler("uniform").fit(X)
    np.testing.assert_allclose(scaler.transform(X)[:, 0], [0.125, 0.375, 0.625, 0.875])
    np.testing.assert_array_equal(scaler.transform(X)[:, 1], 0.5)
    np.testing.assert_allclose(scaler.transform(X)[:, 2], [0.375, 0.375, 0.875, 0.375])
    np.testing.assert_allclose(scaler.transform([[-9.0, 8.0, 2.0]]), [[0.125, 0.5, 0.875]])
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(X)), X)
    with pytest.raises(ValueError, match="n_quantiles"):
        QuantileScaler(n_quantiles=1).fit(X)
    with pytest.raises(TypeError, match="Sparse"):
        QuantileScaler().fit(sp.csr_array(X))


# Bins and splines


@given(X=arrays(np.float64, st.integers(1, 30), elements=st.floats(-5, 5)), data=st.data())
@settings(max_examples=100, deadline=None)
def test_weighted_quantiles_are_those_of_the_repeated_values(X, data):
    weight = data.draw(arrays(np.int64, X.size, elements=st.integers(1, 4)))
    fractions = np.arange(1, 7) / 7
    repeated = np.repeat(X, weight)
    expected = np.quantile(repeated, fractions, method="averaged_inverted_cdf")
    for scale in (1.0, 0.1):  # sums of tenths are rounded
        got = weighted_quantiles(X, scale * weight, fractions)
        np.testing.assert_array_equal(got, weighted_quantiles(repeated, np.ones(repeated.size), fractions))
    np.testing.assert_allclose(weighted_quantiles(X, 1.0 * weight, np.array([0.5])), np.median(repeated))
    on_edge = np.isclose(fractions * repeated.size, np.round(fractions * repeated.size))
    np.testing.assert_allclose(got[~on_edge], expected[~on_edge])


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bins_agree_with_scikit_learn(strategy, dtype):
    X = np.random.default_rng(2).normal(size=(503, 3)).astype(dtype)
    theirs = peer.KBinsDiscretizer(6, strategy=strategy, encode="ordinal", quantile_method="averaged_inverted_cdf")
    ours = Discretizer(6, strategy=strategy, encode="ordinal")
    expected = theirs.fit_transform(X.astype(np.float64))
    np.testing.assert_array_equal(ours.fit_transform(X), expected)
    dense = Discretizer(6, strategy=strategy).fit(X)
    hot = dense.transform(X)
    assert hot.dtype == dtype
    assert (hot.sum(axis=1) == 3).all()
    np.testing.assert_array_equal(hot, peer.OneHotEncoder(sparse_output=False).fit_transform(expected))
    sparse = Discretizer(6, strategy=strategy, sparse_output=True).fit_transform(X)
    assert sp.issparse(sparse)
    np.testing.assert_array_equal(sparse.toarray(), hot)


def test_bins_of_few_values_and_given_edges():
    X = np.array([[1.0, 5.0], [1.0, 5.0], [1.0, 5.0], [2.0, 5.0]])
    cut = Discretizer(4).fit(X)
    assert cut.n_bins_.tolist() == [2, 1]
    assert cut.get_feature_names_out().tolist() == ["x0_0", "x0_1", "x1_0"]
    np.testing.assert_array_equal(cut.transform(X), [[1, 0, 1]] * 3 + [[0, 1, 1]])
    given_edges = Discretizer([[1.5], [0.0, 5.0]], encode="ordinal").fit(X)
    np.testing.assert_array_equal(given_edges.transform(X), [[0, 2]] * 3 + [[1, 2]])
    with pytest.raises(ValueError, match=r"bins\[1\] must be finite and increasing"):
        Discretizer([[1.5], [3.0, 1.0]]).fit(X)
    with pytest.raises(ValueError, match="bins has edges for 3 columns, but X has 2"):
        Discretizer([[1.5], [3.0], [4.0]]).fit(X)
    with pytest.raises(ValueError, match="bins must be an integer in"):
        Discretizer(1).fit(X)
    with pytest.raises(TypeError, match=r"bins must be an integer.*2\.5"):
        Discretizer(2.5).fit(X)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        Discretizer().fit(sp.csr_array(X))


def test_splines_sum_to_one_and_contain_all_polynomials_of_their_degree():
    x = np.random.default_rng(3).normal(size=(200, 1))
    for degree in (0, 1, 2, 3):
        basis = SplineBasis(knots=6, degree=degree, include_bias=True).fit(x)
        B = basis.transform(x)
        assert B.shape[1] == 6 + degree - 1
        assert (B >= 0).all()
        np.testing.assert_allclose(B.sum(axis=1), 1.0, rtol=1e-13)
        target = x.ravel() ** degree
        fit = B @ np.linalg.lstsq(B, target)[0]
        np.testing.assert_allclose(fit, target, atol=1e-10)
        outside = basis.transform([[-100.0], [100.0]])
        np.testing.assert_array_equal(outside, basis.transform(basis.knots_[0][[0, -1], None]))
    short = SplineBasis(knots=6).fit(x)
    assert short.transform(x).shape[1] == 7 == len(short.get_feature_names_out())


def test_splines_agree_with_scikit_learn_where_the_knots_do():
    X = np.linspace(0.0, 1.0, 50)[:, None]
    ours = SplineBasis(knots=5, degree=1, strategy="uniform", include_bias=True).fit_transform(X)
    theirs = peer.SplineTransformer(5, degree=1).fit_transform(X)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    constant = SplineBasis().fit_transform(np.full((4, 1), 7.0))
    assert np.isfinite(constant).all()
    with pytest.raises(ValueError, match="at least two"):
        SplineBasis(knots=[1.0]).fit(X)


# Radial basis functions


@pytest.mark.parametrize("gamma", ["scale", "median", 0.3, 1e5])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bumps_agree_with_brute_force(gamma, container, dtype):
    rng = np.random.default_rng(4)
    X = (rng.normal(size=(200, 5)) * (rng.random((200, 5)) < 0.7)).astype(dtype)
    rbf = RBFFeatures(centers=20, gamma=gamma, random_state=0).fit(container(X))
    got = rbf.transform(container(X))
    wide = X.astype(np.float64)
    if gamma == "scale":
        assert rbf.gamma_ == pytest.approx(1 / (5 * wide.var()), rel=1e-9)
    if gamma == "median":
        distances = cdist(rbf.centers_, rbf.centers_, "sqeuclidean")[np.triu_indices(20, 1)]
        assert rbf.gamma_ == pytest.approx(1 / np.median(distances))
    assert got.dtype == dtype
    expected = np.exp(-rbf.gamma_ * cdist(wide, rbf.centers_, "sqeuclidean"))
    np.testing.assert_allclose(got, expected, rtol=1e-6 if dtype == np.float32 else 1e-10, atol=1e-35)
    rows = {tuple(row) for row in wide}
    assert all(tuple(center) in rows for center in rbf.centers_)
    assert len({tuple(center) for center in rbf.centers_}) == 20


def test_a_row_is_at_distance_zero_of_itself_far_from_the_origin():
    X = 1e8 + np.random.default_rng(5).normal(size=(30, 3))
    Z = RBFFeatures(centers=X, gamma=1.0).fit_transform(X)
    np.testing.assert_allclose(np.diag(Z), 1.0, rtol=1e-12)


@pytest.mark.parametrize("magnitude", [1e-150, 1e150])
@pytest.mark.parametrize("gamma", ["scale", "median"])
def test_bumps_do_not_depend_on_the_unit(magnitude, gamma):
    X = np.random.default_rng(6).normal(size=(50, 3))
    for spread in (False, True):
        rbf = RBFFeatures(centers=50, gamma=gamma, spread=spread, random_state=0)
        a, b = np.sort(rbf.fit_transform(X), axis=1), np.sort(rbf.fit_transform(X * magnitude), axis=1)
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-12)


def test_centers_are_drawn_in_proportion_to_weight():
    X, weight = np.arange(4.0)[:, None], np.array([1.0, 2.0, 3.0, 4.0])
    draws = [
        RBFFeatures(centers=1, random_state=seed).fit(X, sample_weight=weight).centers_[0, 0] for seed in range(1000)
    ]
    counts = np.bincount(np.array(draws, dtype=int), minlength=4)
    expected = 100.0 * weight
    # χ² with 3 degrees of freedom: beyond 16.3 once in a thousand, and the seeds are fixed
    assert ((counts - expected) ** 2 / expected).sum() < 16.3


def test_spread_covers_far_groups():
    rng = np.random.default_rng(7)
    X = np.concatenate([rng.normal(size=(500, 2)), 1e4 + rng.normal(size=(3, 2)), [[-1e4, 0.0]]])
    for seed in range(20):
        centers = RBFFeatures(centers=3, spread=True, random_state=seed).fit(X).centers_
        assert {tuple(np.round(c / 1e4)) for c in centers} == {(0.0, 0.0), (1.0, 1.0), (-1.0, 0.0)}


def test_too_many_centers_are_reported():
    with pytest.warns(UserWarning, match=r"centers=9, but X has only 2 different rows"):
        rbf = RBFFeatures(centers=9).fit([[1.0], [2.0], [1.0], [-0.0], [0.0]], sample_weight=[1, 1, 1, 0, 0])
    assert sorted(rbf.centers_.ravel()) == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"centers must have shape \(n_centers, 1\)"):
        RBFFeatures(centers=[[1.0, 2.0]]).fit([[1.0]])
    with pytest.raises(ValueError, match="gamma must be"):
        RBFFeatures(centers=1, gamma=0.0).fit([[1.0]])
    with pytest.raises(ValueError, match="gamma must be one of"):
        RBFFeatures(centers=1, gamma="auto").fit([[1.0]])
    with pytest.raises(ValueError, match=r"half must be .*a number in \(0, inf\).*got -1.0"):
        Saturation(half=-1.0).fit([[1.0]])


# All of them


@pytest.mark.filterwarnings("ignore:RBFFeatures. centers=4:UserWarning")
@pytest.mark.parametrize("expansion", LEARNING, ids=repr)
@given(rows=weighted_matrices(1e3), data=st.data())
@settings(max_examples=25, deadline=None)
def test_weight_is_repetition(expansion, rows, data):
    X, weight = rows
    if "random_state" in expansion.get_params():
        expansion = clone(expansion).set_params(random_state=0)
    weighted = clone(expansion).fit(X, sample_weight=weight).transform(X)
    order = data.draw(st.permutations(range(int(weight.sum()))))
    repeated = clone(expansion).fit(np.repeat(X, weight, axis=0)[order]).transform(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("expansion", EXPANSIONS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_layouts_and_types(expansion, dtype):
    X = np.abs(np.random.default_rng(8).normal(size=(40, 3))).astype(dtype)
    if "random_state" in expansion.get_params():
        expansion = clone(expansion).set_params(random_state=0)
    expected = clone(expansion).fit_transform(X)
    assert expected.dtype == dtype
    variants = [np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]]
    if any(isinstance(expansion, type(e)) for e in SPARSE):
        variants += [sp.csr_array(X), sp.csc_array(X), sp.coo_array(X)]
    for variant in variants:
        if not sp.issparse(variant):
            variant.setflags(write=False)
        got = clone(expansion).fit_transform(variant)
        got = got.toarray() if sp.issparse(got) else got
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("expansion", EXPANSIONS, ids=repr)
@pytest.mark.filterwarnings("ignore:RBFFeatures. centers=4:UserWarning")
def test_frames_in_and_out(frame, expansion):
    X = frame({"age": [1.0, 2.0, 4.0], "income": [3.0, 1.0, 0.0]})
    library = "pandas" if frame is pd.DataFrame else "polars"
    Z = clone(expansion).set_output(transform=library).fit(X).transform(X)
    assert isinstance(Z, frame)
    assert list(Z.columns) == list(clone(expansion).fit(X).get_feature_names_out())


def test_names():
    X = pd.DataFrame({"age": [1.0, 2.0], "income": [3.0, 1.0]})
    names = PolynomialFeatures(3).fit(X).get_feature_names_out()
    assert names.tolist()[:6] == ["age", "income", "age^2", "age income", "income^2", "age^3"]
    assert names[6] == "age^2 income"
    assert RBFFeatures(centers=2).fit(X).get_feature_names_out().tolist() == ["rbf0", "rbf1"]
    assert SplineBasis(knots=2, degree=1).fit(X).get_feature_names_out().tolist() == ["age_sp0", "income_sp0"]


def test_pipeline_of_scaling_and_expansion():
    X = np.random.default_rng(9).normal(size=(30, 3))
    Z = make_pipeline(StandardScaler(), PolynomialFeatures(2), RBFFeatures(5, random_state=0)).fit_transform(X)
    assert Z.shape == (30, 5)


def test_splines_of_extended_and_periodic_knots_are_scikit_learns():
    X = np.random.default_rng(0).uniform(0.0, 6.0, size=(50, 2))
    new = np.random.default_rng(1).uniform(-8.0, 14.0, size=(20, 2))
    knots = [[0.0, 1.0, 2.5, 4.0, 6.0], [0.0, 2.0, 3.0, 5.0, 6.0]]
    for boundary, beyond in (("extended", "constant"), ("periodic", "periodic")):
        ours = SplineBasis(knots, boundary=boundary, include_bias=True).fit(X)
        theirs = peer.SplineTransformer(knots=np.array(knots).T, extrapolation=beyond).fit(X)
        np.testing.assert_allclose(ours.transform(new), theirs.transform(new), atol=1e-12)
    np.testing.assert_allclose(ours.transform(new), ours.transform(new + 6.0), atol=1e-12)
    with pytest.raises(ValueError, match="Periodic splines require degree < number of knots"):
        SplineBasis(3, boundary="periodic").fit(X)


def test_splines_of_nothing_are_zero():
    X = np.array([[0.0, np.nan], [1.0, np.nan], [np.nan, np.nan], [3.0, np.nan]])
    with pytest.raises(ValueError, match="NaN"):
        SplineBasis().fit(X)
    found = SplineBasis(3, degree=1, missing="zeros", include_bias=True).fit(X).transform(X)
    np.testing.assert_array_equal(found.sum(axis=1), [1.0, 1.0, 0.0, 1.0])


def test_a_row_of_next_to_no_weight_has_a_level_at_either_end() -> None:
    X = np.array([[-1.0], [0.0], [1.0]])
    levels = [QuantileScaler().fit(X, sample_weight=w).transform(X).ravel() for w in ([1e-18, 1, 1], [1, 1, 1e-18])]
    np.testing.assert_allclose(levels[0], -levels[1][::-1])
    assert ndtri(0.25e-18) <= levels[0][0] <= ndtri(0.5e-18) + 1e-12  # half of its weight lies below it, or all of it
