"""The truncated singular value decomposition against NumPy's, on sparse and dense rows, wide and tall."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD as Peer

from certifit import TruncatedSVD

RNG = np.random.default_rng(1)


@pytest.mark.parametrize("solver", ["auto", "covariance", "svd", "gram", "power", "randomized"])
@pytest.mark.parametrize("shape", [(80, 15), (12, 60)])
def test_singular_values_and_vectors(solver: str, shape: tuple[int, int]) -> None:
    X = RNG.poisson(0.4, size=shape) * RNG.exponential(size=shape)
    model = TruncatedSVD(3, solver=solver, random_state=0, tol=1e-10, max_iter=5000).fit(sp.csr_array(X))
    left, strength, right = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(model.singular_values_, strength[:3], rtol=1e-6)
    np.testing.assert_allclose(np.abs((model.components_ * right[:3]).sum(axis=1)), 1.0, atol=1e-6)
    peer = Peer(3, algorithm="arpack", random_state=0).fit(X)
    np.testing.assert_allclose(model.explained_variance_, peer.explained_variance_, rtol=1e-5)
    np.testing.assert_allclose(model.explained_variance_ratio_, peer.explained_variance_ratio_, rtol=1e-5)
    np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(left[:, :3] * strength[:3]), atol=1e-5)
    assert model.certificate_.certified
    assert model.certificate_.objective == pytest.approx((strength[3:] ** 2).sum() / shape[0], abs=1e-8)


def test_a_weight_is_a_repetition() -> None:
    X, weight = RNG.normal(size=(30, 6)) + 1, RNG.integers(0, 4, size=30)
    one, other = TruncatedSVD(2).fit(X, sample_weight=weight), TruncatedSVD(2).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-9)
    np.testing.assert_allclose(one.singular_values_, other.singular_values_)


def test_more_components_than_columns_are_refused_and_than_rows_are_not() -> None:
    X = RNG.normal(size=(3, 5))
    with pytest.raises(ValueError, match="n_components must be at most the number of columns of X, 5; got 6"):
        TruncatedSVD(6).fit(X)
    assert TruncatedSVD(4).fit(X).singular_values_[3] == pytest.approx(0.0, abs=1e-7)
