"""Knockoffs: the correlations that copies must have, and the promise on false discoveries by simulation."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from certifit import Knockoffs
from certifit.models.selection.knockoffs import knockoff_threshold

mpl.use("Agg")


def test_false_discoveries_by_simulation() -> None:
    """The mean share over many draws of noise and copies is below q, by more than three standard errors never above it."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(150, 30))
    X = base + 0.5 * np.roll(base, 1, axis=1)
    beta = np.zeros(30)
    beta[:12] = 0.4
    shares, power = [], []
    for seed in range(100):
        y = X @ beta + rng.normal(size=150)
        chosen = Knockoffs(q=0.2, random_state=seed).fit(X, y).support_
        shares.append(chosen[12:].sum() / max(chosen.sum(), 1))
        power.append(chosen[:12].mean())
    assert np.mean(shares) <= 0.2 + 3 * np.std(shares) / 10
    assert np.mean(power) > 0.5


def test_without_any_effect_mostly_nothing_is_selected() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 20))
    found = [Knockoffs(q=0.2, random_state=s).fit(X, rng.normal(size=100)).support_.any() for s in range(60)]
    assert np.mean(found) <= 0.2 + 3 * np.sqrt(0.16 / 60)


def test_threshold_by_definition() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        w = rng.normal(size=25).round(1) + 0.4
        t = knockoff_threshold(w, 0.3)
        fits = [s for s in np.abs(w[w != 0]) if (1 + (w <= -s).sum()) / max((w >= s).sum(), 1) <= 0.3]
        assert t == (min(fits) if fits else np.inf)


def test_weights_are_repetitions_and_rows_are_counted() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 10))
    y = X[:, :6].sum(axis=1) + rng.normal(size=80)
    weight = rng.integers(1, 4, 80)
    one = Knockoffs(random_state=0).fit(X, y, weight)
    many = Knockoffs(random_state=0).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(one.statistics_, many.statistics_, atol=1e-9)
    assert one.statistics_[:6].min() > one.statistics_[6:].max()
    assert len(one.plot().patches) == 10


def test_what_cannot_be_told_apart_is_not_selected() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 4))
    with pytest.warns(UserWarning, match="combinations of others"):
        assert not Knockoffs().fit(np.column_stack([X, X[:, 0] + X[:, 1]]), X[:, 0]).support_.any()
    with pytest.warns(UserWarning, match="twice as many rows"):
        assert not Knockoffs().fit(rng.normal(size=(8, 4)), rng.normal(size=8)).support_.any()
    constant = Knockoffs().fit(np.column_stack([X, np.ones(30)]), X[:, 0])
    assert constant.statistics_[4] == 0
    assert not Knockoffs().fit(X, np.ones(30)).support_.any()


def test_false_discoveries_of_gaussian_rows_and_classes_by_simulation() -> None:
    """Rows are drawn anew each time, and y is a class that no linear model has made."""
    rng = np.random.default_rng(5)
    shares, power = [], []
    for seed in range(60):
        base = rng.normal(size=(400, 25))
        X = base + 0.7 * np.roll(base, 1, axis=1)
        y = np.sign(X[:, :10]).sum(axis=1) + rng.normal(size=400) > 1
        chosen = Knockoffs(q=0.2, copies="model", random_state=seed).fit(X, y).support_
        shares.append(chosen[10:].sum() / max(chosen.sum(), 1))
        power.append(chosen[:10].mean())
    assert np.mean(shares) <= 0.2 + 3 * np.std(shares) / np.sqrt(60)
    assert np.mean(power) > 0.5


@pytest.mark.parametrize("copies", ["fixed", "model"])
def test_two_columns_that_are_alike_hold_back_equal_distances_only(copies: str) -> None:
    rng = np.random.default_rng(6)
    found: dict[str, list[float]] = {"equal": [], "largest": []}
    shares = []
    for seed in range(20):
        X = rng.normal(size=(300, 16))
        X[:, 15] = X[:, 14] + 0.05 * rng.normal(size=300)
        y = 0.3 * X[:, :8].sum(axis=1) + rng.normal(size=300)
        for distance, power in found.items():
            chosen = Knockoffs(q=0.2, copies=copies, distance=distance, random_state=seed).fit(X, y).support_
            power.append(chosen[:8].mean())
        shares.append(chosen[8:].sum() / max(chosen.sum(), 1))
    assert np.mean(found["largest"]) > np.mean(found["equal"]) + 0.3
    assert np.mean(shares) <= 0.2 + 3 * np.std(shares) / np.sqrt(20)


def test_nothing_selected_is_a_frame_without_columns() -> None:
    X = np.random.default_rng(0).normal(size=(50, 4))
    model = Knockoffs(random_state=0).set_output(transform="polars").fit(X, np.arange(50.0) % 7)
    assert not model.support_.any()
    assert model.transform(X).columns == []
