"""Tables without groups: one mode a column, the correlations and the steps of the table they are like, no gap."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import ks_2samp, spearmanr

from certifit.evaluation.risk.clouds import Cloud, of_one_mode

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("draw", [RNG.normal, RNG.uniform, RNG.exponential, RNG.lognormal], ids=lambda f: f.__name__)
def test_a_table_of_one_cloud_is_drawn_as_it_is(draw: object) -> None:
    x = draw(size=(1500, 1))  # type: ignore[operator]
    X = np.hstack([x, x + draw(size=(1500, 1))])  # type: ignore[operator]
    drawn = Cloud(X).draw(RNG)
    for own, new in zip(X.T, drawn.T, strict=True):
        assert ks_2samp(own, new).pvalue > 1e-3
    assert spearmanr(drawn).statistic == pytest.approx(spearmanr(X).statistic, abs=0.08)


def test_a_gap_is_filled_and_a_falling_pair_falls() -> None:
    x = np.where(RNG.random(600) < 0.5, -5.0, 5.0) + RNG.normal(size=600)
    X = np.column_stack([x, -x + RNG.normal(size=600)])
    drawn = Cloud(X).draw(RNG)
    assert (np.abs(X[:, 0]) < 2).mean() < 0.01
    assert (np.abs(drawn[:, 0]) < 2).mean() > 0.2
    assert spearmanr(drawn).statistic < -0.7
    assert X.min() - 1 < drawn.min() < drawn.max() < X.max() + 1


def test_steps_holes_and_single_values_stay() -> None:
    X = RNG.integers(3, 8, size=(400, 3)).astype(np.float64)
    X[:, 1] *= 0.25
    X[:, 2] = 7.0
    X[RNG.random((400, 3)) < 0.2] = np.nan
    X = np.column_stack([X, np.full(400, np.nan)])
    drawn = Cloud(X).draw(RNG)
    np.testing.assert_array_equal(np.isnan(drawn), np.isnan(X))
    for own, new in zip(X.T[:3], drawn.T[:3], strict=True):
        assert set(new[~np.isnan(new)]) == set(own[~np.isnan(own)])


def test_draws_differ_as_samples_do_and_follow_the_seed() -> None:
    X = RNG.normal(size=(500, 2))
    cloud = Cloud(X)
    means = np.array([cloud.draw(np.random.default_rng(k)).mean(axis=0) for k in range(60)])
    assert means.std(axis=0) == pytest.approx([1 / np.sqrt(500)] * 2, rel=0.4)
    np.testing.assert_array_equal(cloud.draw(np.random.default_rng(1)), Cloud(X).draw(np.random.default_rng(1)))


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_magnitudes(scale: float) -> None:
    X = RNG.normal(size=(200, 2))
    one, other = (Cloud(table).draw(np.random.default_rng(0)) for table in (X, X * scale))
    np.testing.assert_allclose(other / scale, one, rtol=1e-9, atol=1e-12)


def test_the_likeliest_density_of_one_mode_by_trying_all() -> None:
    """Every density of one mode on a grid of masses, for four cells of unequal width."""
    wide = np.array([1.0, 2.0, 1.0, 0.5])
    for mass in RNG.dirichlet(np.ones(4), size=5):
        found = of_one_mode(mass / wide, wide)
        assert found @ wide == pytest.approx(1.0)
        peak = int(np.argmax(found))
        assert (np.diff(found[: peak + 1]) >= -1e-12).all()
        assert (np.diff(found[peak:]) <= 1e-12).all()
        best = -np.inf
        for parts in product(range(1, 19), repeat=3):
            if sum(parts) < 20:
                density = np.array([*parts, 20 - sum(parts)]) / 20 / wide
                top = int(np.argmax(density))
                if (np.diff(density[: top + 1]) >= 0).all() and (np.diff(density[top:]) <= 0).all():
                    best = max(best, float(mass @ np.log(density)))
        assert mass @ np.log(found) >= best - 1e-12
