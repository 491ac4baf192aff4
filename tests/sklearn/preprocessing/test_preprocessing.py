"""Columns scaled, cut, or made of columns: the same numbers as scikit-learn's."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import sklearn.preprocessing
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, issparse

import certifit.sklearn.preprocessing
from certifit.sklearn.preprocessing import KBinsDiscretizer, PolynomialFeatures, SplineTransformer, StandardScaler

X = np.random.default_rng(0).normal(size=(30, 3))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"degree": 3, "include_bias": False},
        {"degree": (1, 2), "interaction_only": True},
        {"degree": (0, 3), "order": "F"},
        {"degree": (2, 3)},
        {"degree": (2, 2), "include_bias": False, "interaction_only": True, "order": "F"},
        {"degree": 0},
    ],
)
def test_monomials(settings: dict[str, Any]) -> None:
    theirs, ours = (cls(**settings).fit(X) for cls in (sklearn.preprocessing.PolynomialFeatures, PolynomialFeatures))
    assert_allclose(ours.transform(X), theirs.transform(X))
    assert ours.transform(X).flags.f_contiguous == theirs.transform(X).flags.f_contiguous
    assert_allclose(ours.transform(csr_array(X)).toarray(), theirs.transform(X))
    assert_array_equal(ours.powers_, theirs.powers_)
    assert_array_equal(ours.get_feature_names_out(list("abc")), theirs.get_feature_names_out(list("abc")))
    assert ours.n_output_features_ == theirs.n_output_features_


def test_degrees_that_are_none() -> None:
    with pytest.raises(ValueError, match="min_degree <= max_degree"):
        PolynomialFeatures((3, 2)).fit(X)
    with pytest.raises(ValueError, match=r"int or tuple \(min_degree, max_degree\)"):
        PolynomialFeatures((0, 1, 2)).fit(X)
    with pytest.raises(ValueError, match="empty output array"):
        PolynomialFeatures(0, include_bias=False).fit(X)


BOTH = (True, False)
SETTINGS = 50
DRAWN: dict[str, Mapping[str, Sequence[Any]]] = {
    "StandardScaler": {"with_mean": BOTH, "with_std": BOTH},
    "MinMaxScaler": {"feature_range": ((0, 1), (-2.0, 0.5)), "clip": BOTH},
    "MaxAbsScaler": {"clip": BOTH},
    "RobustScaler": {
        "with_centering": BOTH, "with_scaling": BOTH, "quantile_range": ((25.0, 75.0), (5.0, 80.0)), "unit_variance": BOTH,
    },
    "SplineTransformer": {
        "n_knots": (4, 6), "degree": (1, 2, 3), "knots": ("uniform", "quantile"), "include_bias": BOTH, "order": ("C", "F"),
        "extrapolation": ("constant", "linear", "continue", "periodic"), "handle_missing": ("zeros",), "sparse_output": BOTH,
    },
    "KBinsDiscretizer": {
        "n_bins": (2, 5, [2, 3, 4]), "encode": ("onehot", "onehot-dense", "ordinal"),
        "strategy": ("uniform", "quantile", "kmeans"), "quantile_method": ("averaged_inverted_cdf", "inverted_cdf"),
    },
}  # fmt: skip


def dense(found: Any) -> Any:
    return found.toarray() if issparse(found) else found


@pytest.mark.parametrize("name", DRAWN)
def test_random_settings_give_the_same_numbers(name: str) -> None:
    rng = np.random.default_rng(len(name))
    for _ in range(SETTINGS):
        settings = {key: values[int(rng.integers(len(values)))] for key, values in DRAWN[name].items()}
        rows, new = rng.normal(size=(40, 3)) * 3.0 + 1.0, rng.normal(size=(7, 3)) * 4.0
        if name != "KBinsDiscretizer":
            rows[rng.random(rows.shape) < 0.05] = np.nan
        taken = name in ("StandardScaler", "SplineTransformer", "KBinsDiscretizer")
        weight = rng.uniform(0.5, 2.0, size=40) if taken and rng.random() < 0.5 else None
        given = {} if weight is None else {"sample_weight": weight}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs, ours = (
                getattr(home, name)(**settings).fit(rows, **given)
                for home in (sklearn.preprocessing, certifit.sklearn.preprocessing)
            )
            found, expected = ours.transform(new), theirs.transform(new)
            assert issparse(found) == issparse(expected)
            assert_allclose(dense(found), dense(expected), rtol=1e-9, atol=1e-9, err_msg=str(settings))
            assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())
            if hasattr(theirs, "inverse_transform"):
                assert_allclose(ours.inverse_transform(found), theirs.inverse_transform(expected), rtol=1e-9, atol=1e-9)
        told = {key for key in vars(theirs) if key.endswith("_") and not key.startswith("_")}
        assert all(hasattr(ours, key) for key in told)


def test_our_own_models_say_the_same() -> None:
    splines = SplineTransformer(knots="uniform", extrapolation="periodic").fit(X)
    assert_allclose(splines.model_.transform(X), splines.transform(X), atol=1e-12)
    bins = KBinsDiscretizer(4).fit(X)
    assert_array_equal(bins.model_.transform(X).toarray(), bins.transform(X).toarray())
    parts = StandardScaler().partial_fit(X[:10]).partial_fit(X[10:])
    assert_allclose(parts.model_.transform(X), StandardScaler().fit_transform(X))
    assert parts.n_samples_seen_ == 30
