"""Mixtures: the same steps from the same start, to the same Gaussians."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import sklearn.mixture as theirs
from numpy.testing import assert_allclose, assert_array_equal

from certifit.sklearn.mixture import GaussianMixture

KINDS = ("full", "tied", "diag", "spherical")
SETTINGS = 50
NAMES = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_", "lower_bounds_")


def rows(rng: np.random.Generator) -> Any:
    return np.concatenate(
        [rng.normal(size=(50, 3)) * [1.0, 2.0, 0.5], rng.normal(size=(30, 3)) + np.array([2.0, -1.0, 4.0])]
    )


def test_random_settings_from_the_same_start() -> None:
    rng = np.random.default_rng(0)
    for i in range(SETTINGS):
        kind, K, X = KINDS[i % 4], int(rng.integers(1, 4)), rows(rng)
        width = {"full": (K, 3, 3), "tied": (3, 3), "diag": (K, 3), "spherical": (K,)}[kind]
        settings = {
            "covariance_type": kind,
            "reg_covar": (1e-6, 1e-2, 0.3)[int(rng.integers(3))],
            "tol": (1e-3, 1e-7)[int(rng.integers(2))],
            "max_iter": (1, 2, 3, 200)[int(rng.integers(4))],
            "weights_init": np.full(K, 1 / K),
            "means_init": X[rng.choice(80, size=K, replace=False)],
            "precisions_init": np.broadcast_to(np.eye(3), width).copy() if kind in ("full", "tied") else np.ones(width),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other, ours = (cls(K, **settings).fit(X) for cls in (theirs.GaussianMixture, GaussianMixture))
        for name in NAMES:
            assert_allclose(
                getattr(ours, name), getattr(other, name), rtol=1e-7, atol=1e-9, err_msg=f"{name} {settings}"
            )
        assert (ours.n_iter_, ours.converged_, ours.lower_bound_) == (
            other.n_iter_,
            other.converged_,
            pytest.approx(other.lower_bound_),
        )
        assert_allclose(ours.predict_proba(X), other.predict_proba(X), atol=1e-7)
        assert ours.bic(X) == pytest.approx(other.bic(X))


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "random_from_data"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_groups_are_found_from_any_start(init: str, dtype: type) -> None:
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(40, 2)) + 12.0]).astype(dtype)
    model = GaussianMixture(2, init_params=init, n_init=5, random_state=0)
    labels = model.fit_predict(X)
    assert_array_equal(np.sort(np.bincount(labels)), [40, 60])
    assert_array_equal(labels, model.predict(X))
    assert model.means_.dtype == dtype
    assert not model.certificate_.certified
    drawn, of = model.sample(20)
    assert (drawn.shape, of.shape) == ((20, 2), (20,))


def test_going_on_is_one_fit() -> None:
    X = rows(np.random.default_rng(2))
    start = {"means_init": X[[0, 79]], "tol": 1e-9, "random_state": 0}
    steps = GaussianMixture(2, max_iter=3, warm_start=True, **start)
    with pytest.warns(UserWarning, match="did not converge"):
        steps.fit(X)
    for _ in range(40):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            steps.fit(X)
    assert_allclose(GaussianMixture(2, max_iter=0, **start).fit(X).means_, X[[0, 79]])
    whole = GaussianMixture(2, max_iter=500, **start).fit(X)
    assert_allclose(steps.means_, whole.means_, rtol=1e-4)
    with pytest.raises(ValueError, match="ill-defined empirical covariance"):
        GaussianMixture(2, reg_covar=0.0, random_state=0).fit(np.repeat(X[:2], 10, axis=0))
    with pytest.raises(ValueError, match="Expected n_samples >= n_components"):
        GaussianMixture(5).fit(X[:3])


def test_starts_that_do_not_fit() -> None:
    X = rows(np.random.default_rng(3))
    wrong: dict[str, tuple[str, dict[str, Any]]] = {
        "shape": ("'weights' should have the shape of", {"weights_init": [1.0]}),
        "range": (r"max value 1.50000, min value -0.50000", {"weights_init": [1.5, -0.5]}),
        "sum": ("should be normalized", {"weights_init": [0.5, 0.4]}),
        "means": ("'means' should have the shape of", {"means_init": X[:3]}),
        "sign": (
            "'diag precision' should be positive",
            {"precisions_init": -np.ones((2, 3)), "covariance_type": "diag"},
        ),
        "form": ("should be symmetric, positive-definite", {"precisions_init": -np.eye(3), "covariance_type": "tied"}),
    }
    for message, settings in wrong.values():
        with pytest.raises(ValueError, match=message):
            GaussianMixture(2, **settings).fit(X)
