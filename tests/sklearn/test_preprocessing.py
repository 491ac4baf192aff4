"""Columns made of columns: the same numbers as scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.preprocessing
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from certifit.sklearn.preprocessing import PolynomialFeatures

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
