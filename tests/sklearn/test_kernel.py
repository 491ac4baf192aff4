"""Kernel ridge and features of kernels: the same functions as scikit-learn's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import sklearn.kernel_approximation
import sklearn.kernel_ridge
from numpy.testing import assert_allclose, assert_array_equal

from certifit.sklearn.kernel_approximation import Nystroem, RBFSampler
from certifit.sklearn.kernel_ridge import KernelRidge

RNG = np.random.default_rng(0)
X, QUERIES = RNG.normal(size=(50, 3)), RNG.normal(size=(20, 3))
y = np.column_stack([X @ [1.0, -2.0, 0.5], X[:, 0] ** 2])
WEIGHT = RNG.uniform(0.2, 2.0, 50)
WEIGHT[7] = 0.0
KERNELS: list[dict[str, Any]] = [
    {},
    {"kernel": "rbf", "gamma": 0.4},
    {"kernel": "poly", "degree": 2, "coef0": 0.5},
    {"kernel": "laplacian"},
    {"kernel": "cosine"},
    {"kernel": lambda a, b, scale: scale * float(a @ b) + 1.0, "kernel_params": {"scale": 2.0}},
]


@pytest.mark.parametrize("settings", KERNELS)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_kernel_ridge(settings: dict[str, Any], weight: Any) -> None:
    theirs, ours = (
        cls(alpha=0.3, **settings).fit(X, y, weight) for cls in (sklearn.kernel_ridge.KernelRidge, KernelRidge)
    )
    assert_allclose(ours.predict(QUERIES), theirs.predict(QUERIES), rtol=1e-7, atol=1e-9)
    assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-7, atol=1e-7)
    assert_array_equal(ours.X_fit_, theirs.X_fit_)
    assert ours.certificate_.certified


def test_equal_rows_and_given_similarities() -> None:
    twice = np.vstack([X, X[:10]])
    target = np.concatenate([y[:, 0], y[:10, 0] + 1.0])
    theirs, ours = (cls(kernel="rbf").fit(twice, target) for cls in (sklearn.kernel_ridge.KernelRidge, KernelRidge))
    assert_allclose(ours.predict(QUERIES), theirs.predict(QUERIES))
    assert ours.dual_coef_.shape == theirs.dual_coef_.shape
    assert_allclose(np.exp(-((QUERIES[:, None] - twice) ** 2).sum(axis=2) / 3) @ ours.dual_coef_, ours.predict(QUERIES))
    gram, new = X @ X.T, QUERIES @ X.T
    theirs, ours = (cls(kernel="precomputed").fit(gram, y) for cls in (sklearn.kernel_ridge.KernelRidge, KernelRidge))
    assert_allclose(ours.predict(new), theirs.predict(new))
    with pytest.raises(NotImplementedError, match="one number"):
        KernelRidge(alpha=[1.0, 2.0]).fit(X, y)


@pytest.mark.parametrize("settings", [{}, {"kernel": "poly", "degree": 2}, {"kernel": "laplacian", "gamma": 0.2}])
def test_products_of_nystroems_features(settings: dict[str, Any]) -> None:
    theirs, ours = (
        cls(n_components=50, **settings).fit(X) for cls in (sklearn.kernel_approximation.Nystroem, Nystroem)
    )
    a, b = (model.transform(QUERIES) for model in (ours, theirs))
    assert_allclose(a @ a.T, b @ b.T, atol=1e-7)
    assert ours.get_feature_names_out().shape == (a.shape[1],)


def test_nystroem_of_a_given_matrix_and_of_no_kernel() -> None:
    gram = X @ X.T
    model = Nystroem(kernel="precomputed", n_components=50).fit(gram)
    assert_allclose(model.transform(gram) @ model.transform(gram).T, gram, atol=1e-8)
    assert_allclose(model.components_, gram[model.component_indices_])
    drawn = Nystroem(n_components=7, random_state=0).fit(X)
    assert_allclose(drawn.components_, X[drawn.component_indices_])
    for settings in ({"kernel": "precomputed", "gamma": 1.0}, {"kernel": lambda a, b: float(a @ b), "degree": 2}):
        with pytest.raises(ValueError, match="Don't pass gamma, coef0 or degree"):
            Nystroem(**settings).fit(gram)
    counts = np.abs(X)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        ours = Nystroem(kernel="additive_chi2", n_components=8, random_state=0).fit(counts)
    theirs = sklearn.kernel_approximation.Nystroem(kernel="additive_chi2", n_components=8, random_state=0).fit(counts)
    a, b = (part.transform(np.abs(QUERIES)) for part in (ours, theirs))
    assert_array_equal(np.sort(ours.component_indices_), np.sort(theirs.component_indices_))
    assert_allclose(a @ a.T, b @ b.T, rtol=1e-7)


def test_kernel_ridge_without_penalty() -> None:
    for kernel in ("linear", "rbf", "precomputed"):
        rows, new = (X @ X.T, QUERIES @ X.T) if kernel == "precomputed" else (X, QUERIES)
        ours = KernelRidge(kernel=kernel, alpha=0).fit(rows, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            theirs = sklearn.kernel_ridge.KernelRidge(kernel=kernel, alpha=0).fit(rows, y)
        assert_allclose(ours.predict(new), theirs.predict(new), rtol=1e-4, atol=1e-4)


def test_the_same_waves() -> None:
    theirs, ours = (
        cls(gamma=0.3, random_state=5).fit(X) for cls in (sklearn.kernel_approximation.RBFSampler, RBFSampler)
    )
    assert_allclose(ours.transform(QUERIES), theirs.transform(QUERIES))
    assert_array_equal(ours.random_weights_, theirs.random_weights_)
    pandas = pytest.importorskip("pandas")
    framed = RBFSampler(n_components=3).set_output(transform="pandas").fit_transform(pandas.DataFrame(X))
    assert list(framed.columns) == ["rbfsampler0", "rbfsampler1", "rbfsampler2"]
