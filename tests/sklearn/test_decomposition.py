"""Components: scikit-learn's attributes and scales, from all rows, from blocks, and without a mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.decomposition as theirs
from numpy.testing import assert_allclose

from certifit.sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 7)) @ RNG.normal(size=(7, 7)) + 3.0
NAMES = ("explained_variance_", "explained_variance_ratio_", "singular_values_")


def agree(ours: Any, other: Any, *names: str) -> None:
    for name in (*NAMES, *names):
        assert_allclose(getattr(ours, name), getattr(other, name), rtol=1e-7, atol=1e-10)
    assert_allclose(np.abs(ours.components_), np.abs(other.components_), atol=1e-7)


@pytest.mark.parametrize("solver", ["auto", "full", "covariance_eigh", "arpack", "randomized"])
@pytest.mark.parametrize("whiten", [False, True])
def test_pca_is_theirs(solver: str, whiten: bool) -> None:
    settings: dict[str, Any] = {"n_components": 3, "svd_solver": solver, "whiten": whiten, "random_state": 0}
    ours, other = PCA(**settings).fit(X), theirs.PCA(**settings).fit(X)
    agree(ours, other, "mean_", "noise_variance_")
    assert_allclose(ours.transform(X), other.transform(X), atol=1e-7)
    assert_allclose(ours.fit_transform(X), other.transform(X), atol=1e-7)
    assert_allclose(ours.score(X), other.score(X))
    assert_allclose(ours.inverse_transform(ours.transform(X)), other.inverse_transform(other.transform(X)), atol=1e-7)
    assert ours.certificate_.kind == "eigen-residual"
    assert ours._fit_svd_solver == other._fit_svd_solver


def test_all_components_a_share_and_what_is_refused() -> None:
    agree(PCA().fit(X), theirs.PCA().fit(X))
    assert PCA(0.9).fit(X).n_components_ == theirs.PCA(0.9).fit(X).n_components_
    for wrong in ({"n_components": 8}, {"n_components": 7, "svd_solver": "arpack"}):
        with pytest.raises(ValueError, match=r"must be .*min\(n_samples, n_features\)=7"):
            PCA(**wrong).fit(X)
    agree(PCA("mle").fit(X), theirs.PCA("mle").fit(X))
    with pytest.raises(ValueError, match="only supported if n_samples >= n_features"):
        PCA("mle").fit(X[:6])
    with pytest.raises(NotImplementedError, match="n_components=0"):
        PCA(0).fit(X)


def test_blocks_are_all_rows() -> None:
    ours = IncrementalPCA(3, batch_size=20).fit(X)
    agree(ours, theirs.PCA(3).fit(X), "mean_", "noise_variance_")
    parts = IncrementalPCA(3).partial_fit(X[:30]).partial_fit(X[30:])
    agree(parts, ours)
    assert parts.n_samples_seen_ == 90
    assert_allclose(parts.var_, X.var(axis=0))
    with pytest.raises(ValueError, match="invalid for n_features=7"):
        IncrementalPCA(9).fit(X)
    with pytest.raises(ValueError, match="must be less or equal to the batch number of samples 2"):
        IncrementalPCA(3).partial_fit(X[:2])


def test_singular_vectors_of_sparse_rows() -> None:
    counts = sp.csr_array(RNG.poisson(0.5, size=(60, 20)).astype(float))
    ours = TruncatedSVD(4, random_state=0).fit(counts)
    other = theirs.TruncatedSVD(4, algorithm="arpack", random_state=0).fit(counts)
    agree(ours, other)
    assert_allclose(np.abs(ours.fit_transform(counts)), np.abs(other.transform(counts)), atol=1e-7)
    with pytest.raises(ValueError, match=r"n_components\(21\) must be <= n_features\(20\)"):
        TruncatedSVD(21).fit(counts)
