"""Groups where there are groups, none where there are none, and single columns told from structure between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.exploration.tables import groups, record

from certifit.evaluation.metrics.clusters import adjusted_rand
from certifit.exploration.apart import outlying, traits
from certifit.exploration.association import Coded
from certifit.exploration.structure import Structure, grouped, is_steady, mapped_rows
from certifit.exploration.table import read


def test_groups_between_columns_are_found_and_told_apart() -> None:
    found = record("groups")["structure"]
    assert (found["verdict"], found["k"]) == ("groups", 3)
    assert found["label_agreement"] > 0.95
    assert found["stability"]["3"]["survives"]
    own, shuffled = found["stability"]["3"], found["shuffled"]
    assert own["low"] > shuffled["high"] or own["separation"] > shuffled["separation_high"]
    told = [{trait["column"] for trait in group["traits"]} for group in found["groups"]]
    assert all("colour" in columns for columns in told)
    assert set.union(*told) == {"width", "weight", "colour"}  # and no column that knows nothing of the groups


def test_a_cloud_has_no_structure_that_survives() -> None:
    found = record("cloud")["structure"]
    assert (found["verdict"], found["k"], found["groups"]) == ("none", 1, [])
    assert not any(row["survives"] for row in found["stability"].values())


SHAPES = {
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "uniform": lambda rng, n, d: rng.uniform(size=(n, d)),
    "t": lambda rng, n, d: rng.standard_t(3, size=(n, d)),
    "exponential": lambda rng, n, d: rng.exponential(size=(n, d)),
    "lognormal": lambda rng, n, d: rng.lognormal(size=(n, d)),
    "correlated": lambda rng, n, d: rng.normal(size=(n, d)) @ rng.normal(size=(d, d)),
    "one factor": lambda rng, n, d: rng.normal(size=(n, 1)) + 0.7 * rng.normal(size=(n, d)),
    "even factor": lambda rng, n, d: rng.uniform(size=(n, 1)) + 0.5 * rng.uniform(size=(n, d)),
    "steps": lambda rng, n, d: rng.integers(0, 5, size=(n, d)).astype(float),
}
"""Tables of one cloud."""


def verdict(X: Any, categories: int = 0) -> Structure:
    """What is said of a table whose last columns are categories."""
    names = [f"x{j}" for j in range(X.shape[1])]
    kinds = {name: "category" if j >= X.shape[1] - categories else "numeric" for j, name in enumerate(names)}
    frame = pl.DataFrame(
        [
            pl.Series(n, x.astype(int).astype(str) if kinds[n] == "category" else x)
            for n, x in zip(names, X.T, strict=True)
        ]
    )
    return grouped(mapped_rows(frame, kinds, np.arange(X.shape[0]), 0), frame, kinds, 0)


def test_one_factor_behind_all_columns_is_a_cloud() -> None:
    """Its map is a bow, which is cut apart more easily than a cloud of the same covariance."""
    X = SHAPES["one factor"](np.random.default_rng(0), 400, 8)
    assert verdict(X).verdict == "none"
    assert verdict(np.where(X[:, :1] > 0, X + 4, X)).verdict == "groups"


@pytest.mark.parametrize(("shares", "seed"), [([1 / 3, 1 / 3, 1 / 3], 0), ([0.6, 0.3, 0.1], 1)])
def test_a_group_that_is_cut_in_two_is_no_further_group(shares: list[float], seed: int) -> None:
    """Four are as steady as needed, and farther apart than those of one cloud: but so are those of three clouds."""
    rng = np.random.default_rng(seed)
    which = rng.choice(3, 300, p=shares)
    found = verdict(6.0 * np.eye(3, 4)[which] + rng.normal(size=(300, 4)))
    assert is_steady(found.stabilities[4])
    assert found.fewer[4][0] == 3
    assert (found.verdict, found.k, [k for k in found.steady if k > 3]) == ("groups", 3, [])


@pytest.mark.exhaustive
@pytest.mark.parametrize("d", [2, 8])
def test_clouds_of_every_shape_are_rarely_taken_for_groups(d: int) -> None:
    """Three tables of each of nine shapes, and with categories: of 30 at most 3 have groups, which is rarer than 1 in 100
    where the chance is one in twenty each.
    """
    rng, found = np.random.default_rng(d), []
    for shape in SHAPES.values():
        found += [verdict(shape(rng, 300, d)).verdict for _ in range(3)]
    mixed = (np.hstack([rng.normal(size=(300, d // 2)), rng.integers(0, 4, size=(300, d // 2))]) for _ in range(3))
    found += [verdict(X, categories=d // 2).verdict for X in mixed]
    assert len(found) == 30
    assert found.count("none") >= 27, found


@pytest.mark.exhaustive
@pytest.mark.parametrize(("k", "d"), [(2, 4), (3, 4), (4, 8), (6, 8)])
def test_groups_apart_are_found(k: int, d: int) -> None:
    rng = np.random.default_rng(k)
    for _ in range(4):
        centers = (
            8.0 * np.eye(d)[rng.choice(d, size=k, replace=False)] / np.sqrt(2.0)
        )  # eight standard deviations apart
        which = rng.integers(k, size=400)
        found = verdict(centers[which] + rng.normal(size=(400, d)))
        assert (found.verdict, found.k) == ("groups", k)
        assert adjusted_rand(found.labels, which) > 0.95


def test_columns_that_know_nothing_of_each_other_are_no_structure_between_them() -> None:
    found = record("shares")["structure"]
    assert found["verdict"] in ("columns", "none")
    if found["verdict"] == "columns":
        own = found["stability"][str(found["k"])]
        assert own["low"] <= found["shuffled"]["high"]
        assert 1 - own["separation"] > 0.95 * (1 - found["shuffled"]["separation_high"])


def test_two_groups_in_both_of_two_columns_lie_between_them() -> None:
    """Shuffled, columns of two modes make groups as steady, but not as far apart; one such column makes them alone."""
    rng = np.random.default_rng(0)
    which = np.repeat([0.0, 6.0], 60)
    first, second, third = which + rng.normal(size=(3, 120))
    assert verdict(np.column_stack([first, second])).verdict == "groups"
    assert verdict(np.column_stack([first, rng.permutation(third)])).verdict in ("columns", "none")


def test_the_label_does_not_make_the_map() -> None:
    frame = groups()
    with_label = read(frame, "kind", None, (), rows=20_000, seed=0)
    without = read(frame.drop("kind"), None, None, (), rows=20_000, seed=0)
    one, two = (mapped_rows(t.features, t.kinds, t.sample, 0) for t in (with_label, without))
    np.testing.assert_array_equal(one.points, two.points)


def test_one_row_far_out_is_an_outlier_and_no_axis() -> None:
    found = record("groups")
    assert found["outliers"] == [] or found["outliers"][0]["row"] == 8
    assert max(np.abs(found["map"]["x"])) < 5 * np.std(found["map"]["x"])


def test_outliers_are_beyond_three_interquartile_ranges() -> None:
    near = np.concatenate([np.linspace(1, 2, 50), [9.0, 7.0]])
    assert outlying(near).tolist() == [50, 51]
    assert outlying(np.linspace(1, 2, 50)).size == 0


def test_traits_are_differences_of_ranks_and_shares() -> None:
    member = np.repeat([True, False], 50)
    number = Coded("x", True, np.where(member, 5.0, 1.0) + np.arange(100) / 1000)
    category = Coded("k", False, np.where(np.arange(100) < 40, 0.0, 1.0), ("a", "b"))
    dull = Coded("z", True, np.tile([1.0, 2.0], 50))
    found = traits([number, category, dull], member)
    assert [trait.column for trait in found] == ["x", "k"]
    assert found[0].strength == pytest.approx(1.0)
    assert found[0].higher
    assert (found[1].level, found[1].inside, found[1].outside) == ("a", [0.8], [0.0])


def test_a_sample_is_of_different_rows_and_seeded() -> None:
    one, two, other = (read(groups(), None, None, (), rows=100, seed=seed).sample for seed in (0, 0, 1))
    assert one.shape == (100,)
    assert np.unique(one).size == 100
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()
