"""Stability selection: who is named again and again, and the bound by simulation."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from certifit import RandomForestClassifier, StabilitySelection
from certifit.models.selection.stability import halved

mpl.use("Agg")


def test_expected_false_columns_by_simulation() -> None:
    """Of columns that say nothing, exchangeable, fewer are selected on average than the bound says."""
    rng = np.random.default_rng(0)
    counts, bound = [], 0.0
    for seed in range(15):
        X = rng.normal(size=(60, 25))
        model = StabilitySelection(n_features=5, threshold=0.6, n_pairs=15, random_state=seed)
        model.fit(X, X[:, 0] + rng.normal(size=60))
        counts.append(model.support_[1:].sum())
        bound = model.error_bound_
    assert bound == pytest.approx(25 / (0.2 * 25))
    assert np.mean(counts) <= bound
    assert np.mean(counts) < 2


def test_the_useful_ones_are_named_by_all() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 12))
    model = StabilitySelection(n_features=2, n_pairs=10, random_state=0).fit(X, 3 * X[:, 2] - 3 * X[:, 5])
    np.testing.assert_array_equal(model.get_support(indices=True), [2, 5])
    assert model.frequencies_[[2, 5]].tolist() == [1.0, 1.0]
    assert model.frequencies_.sum() == pytest.approx(2.0)
    assert len(model.plot().patches) == 12


def test_any_estimator_with_importances() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 5))
    y = np.where(X[:, 3] > 0, "yes", "no")
    forest = RandomForestClassifier(n_estimators=5, random_state=0)
    model = StabilitySelection(forest, n_features=1, n_pairs=5, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.get_support(indices=True), [3])


def test_halves_of_weights() -> None:
    rng = np.random.default_rng(3)
    weight = np.array([4.0, 1.0, 0.0, 3.0])
    halves = np.array([halved(weight, rng) for _ in range(400)])
    assert ((halves >= 0) & (halves <= weight) & (halves == np.rint(halves))).all()
    np.testing.assert_allclose(halves.mean(axis=0), weight / 2, atol=0.25)
    relative = halved(np.array([0.3, 0.7]), rng)
    assert set(relative.tolist()) <= {0.0, 0.3, 0.7}
