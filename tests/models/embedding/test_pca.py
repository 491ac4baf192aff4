"""Principal components: scikit-learn's numbers by every solver, and an error that is the discarded variance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import gammaln
from sklearn import decomposition
from sklearn.exceptions import ConvergenceWarning

from certifit import PCA, IncrementalPCA
from certifit.models.embedding.dimension import log_evidence

SOLVERS = ["covariance", "svd", "gram", "power", "randomized"]
RNG = np.random.default_rng(0)


def table(n: int, d: int) -> Any:
    decay = 0.6 ** np.arange(min(n, d))
    left, right = (np.linalg.qr(RNG.normal(size=(size, min(n, d))))[0] for size in (n, d))
    return (left * decay * 40.0) @ right.T + np.linspace(-2.0, 5.0, d)


def assert_like(model: Any, peer: Any, tolerance: float = 1e-6) -> None:
    for name in ("components_", "mean_", "explained_variance_", "explained_variance_ratio_", "singular_values_"):
        np.testing.assert_allclose(
            getattr(model, name), getattr(peer, name), rtol=tolerance, atol=tolerance, err_msg=name
        )
    assert model.noise_variance_ == pytest.approx(peer.noise_variance_, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(60, 8), (9, 40), (30, 30)])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_solver_gives_the_components_of_scikit_learn(solver: str, shape: tuple[int, int], sparse: bool) -> None:
    X = table(*shape)
    peer = decomposition.PCA(3, svd_solver="full").fit(X)
    model = PCA(3, solver=solver, random_state=0, tol=1e-9, max_iter=5000).fit(sp.csr_array(X) if sparse else X)
    assert_like(model, peer)
    assert model.certificate_.certified
    np.testing.assert_allclose(model.transform(X), peer.transform(X), atol=1e-5)
    np.testing.assert_allclose(model.transform(sp.csr_array(X)), peer.transform(X), atol=1e-5)
    np.testing.assert_allclose(
        model.inverse_transform(model.transform(X)), peer.inverse_transform(peer.transform(X)), atol=1e-5
    )


def test_the_error_of_the_reconstruction_is_the_discarded_variance_and_no_plane_has_less() -> None:
    X, weight = table(40, 6), RNG.uniform(0.5, 2.0, size=40)
    for k in range(1, 7):
        model = PCA(k).fit(X, sample_weight=weight)
        error = float(weight @ model.reconstruction_error(X) / weight.sum())
        assert model.certificate_.objective == pytest.approx(error, abs=1e-10)
        assert model.certificate_.bound <= error + 1e-10
        for _ in range(20):  # any other plane, and small turns of this one
            turned = model.components_.T + RNG.choice([1e-3, 1.0]) * RNG.normal(size=(6, k))
            V = np.linalg.qr(turned)[0]
            Z = X - model.mean_
            other = float(weight @ ((Z - Z @ V @ V.T) ** 2).sum(axis=1) / weight.sum())
            assert other >= model.certificate_.bound - 1e-10


@pytest.mark.parametrize(("wanted", "kept"), [(None, 6), (3, 3), (0.9, 2), (0.999, 5), ("kink", 2), ("mle", 5)])
def test_the_number_of_components(wanted: Any, kept: int) -> None:
    X = RNG.normal(size=(500, 6)) * [10.0, 6.0, 1.0, 0.8, 0.5, 0.3]
    assert PCA(wanted).fit(X).n_components_ == kept
    if isinstance(wanted, float) or wanted == "mle":
        assert decomposition.PCA(wanted).fit(X).n_components_ == kept


def test_the_likeliest_number_of_components() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        n, d, k = 150, 8, 1 + seed % 6
        X = rng.normal(size=(n, k)) @ rng.normal(size=(k, d)) * 3.0 + rng.normal(size=(n, d))
        model = PCA("mle").fit(X)
        assert model.n_components_ == decomposition.PCA("mle", svd_solver="full").fit(X).n_components_
        assert (
            model.n_components_ == PCA("mle").fit(1e-40 * X).n_components_ == IncrementalPCA("mle").fit(X).n_components_
        )
        twice = PCA("mle").fit(X, sample_weight=np.full(n, 2.0)).n_components_
        assert twice == PCA("mle").fit(np.vstack([X, X])).n_components_
    flat = np.eye(4)[np.arange(40) % 4]  # three equal variances, and none
    assert PCA("mle").fit(flat).n_components_ == 3
    assert PCA("mle").fit(X[:, :1]).n_components_ == 1
    with pytest.raises(ValueError, match="only supported if n_samples >= n_features; got 5 and 8"):
        PCA("mle").fit(X[:5])


def test_the_evidence_is_that_of_the_sums_written_out() -> None:
    rng = np.random.default_rng(0)
    variances, n = np.sort(rng.gamma(1.0, size=7))[::-1], 60.0
    d = variances.shape[0]
    found = log_evidence(variances, n)
    for k in range(1, d):
        v = variances[k:].mean()
        hat = np.where(np.arange(d) < k, variances, v)
        frames = sum(gammaln((d - i) / 2) - (d - i) / 2 * np.log(np.pi) - np.log(2.0) for i in range(k))
        curvature = sum(
            np.log((variances[i] - variances[j]) * (1 / hat[j] - 1 / hat[i]) * n)
            for i in range(k)
            for j in range(i + 1, d)
        )
        parameters = d * k - k * (k + 1) / 2
        wanted = frames - n / 2 * np.log(hat / variances[0]).sum() + (parameters + k) / 2 * np.log(2 * np.pi)
        assert found[k - 1] == pytest.approx(wanted - curvature / 2 - k / 2 * np.log(n))


def test_whitened_coordinates_have_unit_variance() -> None:
    X = table(200, 5) + RNG.normal(size=(200, 5))
    model = PCA(3, whiten=True).fit(X)
    np.testing.assert_allclose(np.cov(model.transform(X).T), np.eye(3), atol=1e-9)
    full = PCA(whiten=True).fit(X)
    np.testing.assert_allclose(full.inverse_transform(full.transform(X)), X, atol=1e-9)
    flat = PCA(whiten=True).fit(np.ones((5, 2)))
    assert np.isfinite(flat.transform(np.ones((5, 2)))).all()
    assert flat.certificate_.certified


def test_blocks_of_rows_are_all_rows() -> None:
    X, weight = table(300, 7) + RNG.normal(size=(300, 7)), RNG.integers(0, 3, size=300).astype(float)
    whole = PCA(4).fit(np.repeat(X, weight.astype(int), axis=0))
    parts = IncrementalPCA(4)
    for rows in np.array_split(np.arange(300), 5):
        parts.partial_fit(X[rows], sample_weight=weight[rows])
    for model in (
        parts,
        IncrementalPCA(4, batch_size=50).fit(X, sample_weight=weight),
        IncrementalPCA(4).fit(sp.csr_array(X), None, weight),
    ):
        np.testing.assert_allclose(model.components_, whole.components_, atol=1e-9)
        np.testing.assert_allclose(model.explained_variance_, whole.explained_variance_)
    assert parts.n_samples_seen_ == weight.sum()


def test_a_block_that_is_refused_was_not_seen() -> None:
    X = table(40, 5)
    parts = IncrementalPCA(4).partial_fit(X[:20])
    with pytest.raises(ValueError, match="beyond double precision"):
        parts.partial_fit(1e160 * X)
    np.testing.assert_allclose(parts.partial_fit(X[20:]).components_, PCA(4).fit(X).components_, atol=1e-9)
    begun = IncrementalPCA(4)
    with pytest.raises(ValueError, match=r"min\(n_samples, n_features\) = 2; got 4"):
        begun.partial_fit(X[:2])
    assert begun.partial_fit(X).n_samples_seen_ == 40


@pytest.mark.parametrize("solver", ["covariance", "svd", "gram", "power", "randomized"])
def test_units_change_nothing_but_units(solver: str) -> None:
    X = table(40, 5)
    one = PCA(2).fit(X)
    for exponent in (-150, -100, -80, -60, 60, 80, 100, 150):
        other = PCA(2, solver=solver, tol=1e-9, random_state=0).fit(X * 10.0**exponent)
        np.testing.assert_allclose(other.components_, one.components_, atol=1e-5)
        np.testing.assert_allclose(other.explained_variance_ratio_, one.explained_variance_ratio_, rtol=1e-6)
    with pytest.raises(ValueError, match="squares are beyond double precision"):
        PCA(2, solver=solver).fit(X * 1e160)
    with pytest.raises(ValueError, match=r"squares are beyond single precision.*or as float64"):
        PCA(2, solver=solver).fit((X * 1e25).astype(np.float32))


def test_far_from_zero_no_digits_are_lost() -> None:
    X = RNG.normal(size=(2000, 3)) * [3.0, 2.0, 1.0]
    near, far = PCA().fit(X), PCA().fit(X + 1e7)
    np.testing.assert_allclose(far.explained_variance_, near.explained_variance_, rtol=1e-7)


def test_an_iteration_that_stops_early_says_so() -> None:
    X = RNG.normal(size=(300, 200))
    for solver in ("power", "randomized"):
        with pytest.warns(ConvergenceWarning, match="PCA: Not certified"):
            PCA(5, solver=solver, max_iter=1, tol=1e-12, random_state=0).fit(X)
    assert "cannot tell" in PCA(2, solver="randomized", random_state=0).fit(X).certificate_.claim


def test_wrong_numbers_of_components_are_named() -> None:
    X = table(10, 4)
    with pytest.raises(ValueError, match=r"n_components must be at most min\(n_samples, n_features\) = 4; got 5"):
        PCA(5).fit(X)
    with pytest.raises(ValueError, match="X must have 2 columns, one for each component"):
        PCA(2).fit(X).inverse_transform(X)
    with pytest.raises(ValueError, match="components must be two different numbers"):
        PCA(2).fit(X).biplot(X, (0, 2))


def test_pictures() -> None:
    X = table(30, 4)
    model = PCA().fit(X)
    ax = model.plot_scree()
    assert len(ax.patches) == 4
    drawn = model.biplot(X)
    assert [text.get_text() for text in drawn.texts if text.get_text()] == ["x0", "x1", "x2", "x3"]
    assert drawn.get_xlabel().startswith("component 1 (")
    assert "%" in drawn.get_xlabel()
    assert all(float(place).is_integer() for place in ax.get_xticks())


def test_every_arrow_of_a_biplot_is_in_the_picture() -> None:
    X = np.repeat(RNG.normal(size=(60, 1)), 50, axis=1)
    X = np.column_stack([X, 0.9 * np.sqrt(50.0) * RNG.uniform(-1.0, 1.0, size=60)])
    ax = PCA(2).fit(X).biplot(X)
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    for text in ax.texts:
        assert left <= text.get_position()[0] <= right
        assert low <= text.get_position()[1] <= high


@pytest.mark.parametrize(("unit", "kind"), [(1e-165, float), (1e-300, float), (1e-25, np.float32)])
def test_variances_that_vanish_are_refused(unit: float, kind: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(30, 4))
    for solver in ("covariance", "svd", "power"):
        with pytest.raises(ValueError, match=r"squares are below (double|single) precision: give small columns"):
            PCA(2, solver=solver, random_state=0).fit((unit * rows).astype(kind))
    constant = PCA(2).fit(np.full((30, 4), unit / 3, dtype=kind))
    assert not constant.explained_variance_.any()
