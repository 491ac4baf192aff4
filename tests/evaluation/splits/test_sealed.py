"""The sealed part and the folds: proportions, groups, time, copies, determinism."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certifit.evaluation.splits.sealed import folds, sealed_split


def labels(n: int = 1000, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).choice(["a", "b", "c"], size=n, p=[0.7, 0.25, 0.05])


def test_every_class_is_in_proportion() -> None:
    y = labels()
    split = sealed_split(y, task="multiclass", seed=3)
    assert split.kind == "stratified"
    assert len(split.test) == 200
    assert np.array_equal(np.sort(np.concatenate([split.train, split.test])), np.arange(1000))
    for c in "abc":
        assert abs((y[split.test] == c).sum() - 0.2 * (y == c).sum()) < 1


def test_a_numeric_target_is_in_proportion() -> None:
    y = np.random.default_rng(0).lognormal(size=500)
    split = sealed_split(y, task="regression", test_size=0.3)
    assert len(split.test) == 150
    for q in (0.1, 0.5, 0.9):
        assert abs((y[split.test] <= np.quantile(y, q)).mean() - q) < 0.02


def test_the_seed_decides() -> None:
    y = labels()
    one, same, other = (sealed_split(y, task="multiclass", seed=s).test for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    assert 0.1 < np.isin(one, other).mean() < 0.35  # two independent draws share a fifth


def test_every_row_is_sealed_equally_often() -> None:
    y = labels(60)
    counts = np.zeros(60)
    for seed in range(1000):
        counts[sealed_split(y, task="multiclass", seed=seed).test] += 1
    common = np.isin(y, ["a", "b"])
    assert np.abs(counts[common] / 1000 - 0.2).max() < 0.08


def test_a_class_with_one_row_is_trained_on() -> None:
    y = np.array(["a"] * 50 + ["b"] * 49 + ["rare"])
    for seed in range(30):
        assert 99 in sealed_split(y, task="multiclass", seed=seed).train
        for train, validation in folds(y, 5, task="multiclass", seed=seed):
            assert 99 in train
            assert 99 not in validation


@given(st.lists(st.integers(0, 12), min_size=12, max_size=80), st.integers(0, 1000))
def test_groups_stay_whole(groups: list[int], seed: int) -> None:
    if len(set(groups)) < 2:
        return
    y = np.arange(len(groups)) % 2
    split = sealed_split(y, task="binary", groups=groups, seed=seed)
    sides = [set(np.asarray(groups)[rows]) for rows in (split.train, split.test)]
    assert not sides[0] & sides[1]
    assert sides[0]
    assert sides[1]
    seen = np.zeros(len(groups))
    for train, validation in folds(y, 4, task="binary", groups=groups, seed=seed):
        assert not set(np.asarray(groups)[train]) & set(np.asarray(groups)[validation])
        seen[validation] += 1
    assert (seen <= 1).all()


def test_groups_keep_size_and_proportions() -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 80, size=2000)
    y = (rng.random(2000) < 0.1 + 0.3 * (groups % 3 == 0)).astype(int)
    split = sealed_split(y, task="binary", groups=groups)
    assert abs(len(split.test) - 400) < 30
    assert abs(y[split.test].mean() - y.mean()) < 0.03
    for _, validation in folds(y, 5, task="binary", groups=groups):
        assert abs(len(validation) - 400) < 40
        assert abs(y[validation].mean() - y.mean()) < 0.04


def test_the_latest_rows_are_sealed_and_moments_stay_together() -> None:
    time = np.random.default_rng(0).integers(0, 50, size=300).astype(float)
    time[:3] = np.nan
    split = sealed_split(np.zeros(300), task="regression", time=time)
    assert np.nanmax(time[split.train]) < time[split.test].min()
    assert {0, 1, 2} <= set(split.train)
    assert abs(len(split.test) - 60) < 15
    dates = np.datetime64("2020-01-01") + np.arange(300).astype("timedelta64[D]")
    np.testing.assert_array_equal(sealed_split(np.zeros(300), task="regression", time=dates).test, np.arange(240, 300))


def test_folds_in_time_look_forward() -> None:
    time = np.random.default_rng(1).permutation(100)
    pairs = folds(np.zeros(100), 4, task="regression", time=time)
    assert len(pairs) == 4
    for train, validation in pairs:
        assert time[train].max() < time[validation].min()


@given(st.lists(st.integers(0, 40), min_size=10, max_size=120), st.integers(0, 100))
def test_copies_stay_on_one_side(codes: list[int], seed: int) -> None:
    content = np.asarray(codes)
    y = content % 2
    if len(set(codes)) < 4 or len(set(y)) < 2:
        return
    split = sealed_split(y, task="binary", codes=content, seed=seed)
    assert not set(content[split.train]) & set(content[split.test])
    for train, validation in folds(y, 3, task="binary", codes=content, seed=seed):
        assert not set(content[train]) & set(content[validation])


def test_only_the_equality_of_codes_matters() -> None:
    rng = np.random.default_rng(0)
    y, codes = labels(), rng.integers(0, 700, size=1000)
    relabel = rng.permutation(700).astype(np.uint64) << np.uint64(40)
    one, other = (sealed_split(y, task="multiclass", codes=c) for c in (codes, relabel[codes]))
    np.testing.assert_array_equal(one.test, other.test)
    assert one.moved > 0
    assert "copies" in one.text
    for a, b in zip(
        folds(y, task="multiclass", codes=codes), folds(y, task="multiclass", codes=relabel[codes]), strict=True
    ):
        np.testing.assert_array_equal(a[1], b[1])


def test_copies_do_not_change_the_size_much() -> None:
    codes = np.repeat(np.arange(200), 5)
    split = sealed_split(np.arange(1000) % 2, task="binary", codes=codes)
    assert 150 < len(split.test) < 250
    few = sealed_split(np.arange(1000) // 500, task="binary", codes=np.arange(1000) // 100)
    assert len(few.test) == 200


def test_without_copies_nothing_moves() -> None:
    y = labels()
    one, other = sealed_split(y, task="multiclass", codes=np.arange(1000)), sealed_split(y, task="multiclass")
    np.testing.assert_array_equal(one.test, other.test)
    assert one.moved == 0


def test_folds_cover_every_row_once_in_proportion() -> None:
    y = labels()
    seen = np.zeros(1000)
    for train, validation in folds(y, 5, task="multiclass", seed=2):
        seen[validation] += 1
        assert np.intersect1d(train, validation).size == 0
        assert len(train) + len(validation) == 1000
        for c in "abc":
            assert abs((y[validation] == c).sum() - 0.2 * (y == c).sum()) < 2
    assert (seen == 1).all()


@pytest.mark.parametrize("n", [2, 3, 5, 11])
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_few_rows(n: int, task: str) -> None:
    split = sealed_split(np.arange(n) % 2, task=task)
    assert len(split.train) >= 1
    assert len(split.test) >= 1


BAD: list[tuple[dict[str, Any], str]] = [
    ({"test_size": 0.0}, "test_size"),
    ({"test_size": 1.5}, "test_size"),
    ({"task": "ranking"}, "task"),
    ({"groups": [1, 2]}, "groups"),
    ({"time": [1, 2]}, "time"),
    ({"codes": [1, 2]}, "codes"),
    ({"groups": np.zeros(10)}, "groups"),
    ({"time": np.zeros(10)}, "time"),
    ({"groups": np.arange(10), "time": np.arange(10)}, "groups and time"),
    ({"y": np.zeros((5, 2))}, "y must be"),
    ({"y": [np.nan] * 10, "task": "regression"}, "NaN"),
    ({"y": [1]}, "at least 2"),
]


@pytest.mark.parametrize(("options", "word"), BAD)
def test_bad_input_is_named(options: dict[str, Any], word: str) -> None:
    with pytest.raises((ValueError, TypeError), match=word):
        sealed_split(**{"y": np.arange(10) % 2, "task": "binary", **options})
    if "test_size" not in options:
        with pytest.raises((ValueError, TypeError), match=word):
            folds(**{"y": np.arange(10) % 2, "task": "binary", "k": 3, **options})


def test_words_are_no_target_of_a_regression() -> None:
    with pytest.raises(ValueError, match="y must be numbers; got array"):
        folds(["a", "b"] * 10, 2, task="regression")
