"""Stability under resampling: structure survives, a long cloud does not, and the numbers are what they say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClusterMixin

from certifit import KMeans, stability


class BySign(ClusterMixin, BaseEstimator):
    """Always the same answer."""

    def fit_predict(self, X: Any, y: Any = None) -> Any:
        return (np.asarray(X)[:, 0] > 0).astype(int)


class ByDice(ClusterMixin, BaseEstimator):
    """Never the same answer."""

    def fit_predict(self, X: Any, y: Any = None) -> Any:
        return np.random.default_rng(int(abs(np.asarray(X)).sum() * 1e6) % 2**32).integers(2, size=len(X))


def test_a_fixed_rule_agrees_fully_and_dice_do_not() -> None:
    X = np.random.default_rng(0).normal(size=(80, 2))
    same = stability(BySign(), X, random_state=0)
    assert (same.agreement, same.low, same.high, same.reference) == (1.0, 1.0, 1.0, 1.0)
    assert not same.survives
    dice = stability(ByDice(), X, n_resamples=40, reference=False, random_state=0)
    assert dice.low < 0.0 < dice.high or abs(dice.agreement) < 0.02
    assert len(dice.values) == 40
    assert "rows without clusters" not in str(dice)


def test_groups_survive_and_a_long_cloud_does_not() -> None:
    rng = np.random.default_rng(1)
    groups = np.concatenate([rng.normal(size=(50, 2)) + at for at in ([0, 0], [7, 0], [0, 7])])
    found = stability(KMeans(3, n_init=5, random_state=0, n_jobs=1), groups, n_resamples=12, random_state=0)
    assert found.survives
    assert found.low > 0.9
    assert str(found).endswith("survives resampling")
    cloud = rng.normal(size=(150, 2)) * [9.0, 1.0]
    long = stability(KMeans(2, random_state=0, n_jobs=1), cloud, n_resamples=8, random_state=0)
    assert long.agreement > 0.6  # everyone cuts it in the middle
    assert not long.survives
    assert long.separation < long.separation_high
    labels = KMeans(2, random_state=0, n_jobs=1).fit_predict(cloud)
    inside = sum(((cloud[labels == k] - cloud[labels == k].mean(axis=0)) ** 2).sum() for k in (0, 1))
    assert long.separation == pytest.approx(1.0 - inside / ((cloud - cloud.mean(axis=0)) ** 2).sum())
    halves = np.concatenate([rng.normal(size=(60, 2)), rng.normal(loc=[6.0, 0.0], size=(60, 2))])
    two = stability(KMeans(2, random_state=0, n_jobs=1), halves, n_resamples=8, random_state=0)
    assert two.separation > two.separation_high
    assert replace(two, reference_high=1.0).survives  # a long cloud may agree as well, but it is not as far apart
    assert not replace(two, reference_high=1.0, separation_high=two.separation).survives
    assert not replace(two, reference_high=1.0, low=0.7).survives
    again = stability(KMeans(2, random_state=0, n_jobs=1), cloud, n_resamples=8, random_state=0)
    assert again == long


@pytest.mark.parametrize(
    ("X", "options", "words"),
    [
        (np.ones((3, 2)), {}, "at least 4 rows"),
        (np.full((9, 2), np.nan), {}, "NaN"),
        (np.ones((9, 2)), {"n_resamples": 1}, "n_resamples"),
        (np.ones((9, 2)), {"fraction": 0.4}, "fraction"),
        (np.ones((9, 2)), {"level": 95}, "level"),
        (np.ones((9, 2)), {"reference": [np.ones((9, 2))]}, "reference must be True, False, or two tables"),
        (np.ones((9, 2)), {"reference": [np.ones(9), np.ones(9)]}, "reference must be True, False, or two tables"),
    ],
)
def test_bad_input(X: Any, options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        stability(BySign(), X, **options)


def test_the_reference_interval_is_that_of_a_single_cloud() -> None:
    """It must hold nearly all single clouds; that of their mean would hold few."""
    tables = np.random.default_rng(2).normal(size=(13, 60, 2)) * [5.0, 1.0]
    clusterer = KMeans(2, n_init=1, random_state=0, n_jobs=1)
    found = stability(clusterer, tables[0], n_resamples=12, random_state=0)
    single = np.array(
        [stability(clusterer, X, n_resamples=6, reference=False, random_state=0).agreement for X in tables]
    )
    inside = (found.reference_low <= single) & (single <= found.reference_high)
    assert inside.sum() >= 11
    half = 2.2 * single.std() / np.sqrt(12)
    assert (np.abs(single - found.reference) <= half).sum() < 11
    assert found.reference_low <= found.reference <= found.reference_high
    assert f"up to {found.reference_high:.2f}" in str(found)


def test_references_can_be_given() -> None:
    X = np.random.default_rng(3).normal(size=(6, 60, 2))
    found = stability(BySign(), X[0], n_resamples=3, reference=X[1:], random_state=0)
    assert (found.reference, found.reference_low, found.reference_high) == (1.0, 1.0, 1.0)
    shares = [
        1.0 - sum(t[m].var(axis=0).sum() * m.mean() for m in (t[:, 0] > 0, t[:, 0] <= 0)) / t.var(axis=0).sum()
        for t in X
    ]
    assert found.separation == pytest.approx(shares[0])
    assert np.mean(shares[1:]) < found.separation_high < 1.0
    wider = stability(BySign(), X[0], n_resamples=3, reference=X[1:], level=0.99, random_state=0)
    assert wider.separation_high > found.separation_high
