"""Strength of association of columns against SciPy, and that chance is not taken for one."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2_contingency, f_oneway, rankdata, spearmanr

from certifit import Dissimilarity
from certifit.exploration.association import Association, associations, coded
from certifit.representation.table.frames import Columns

RNG = np.random.default_rng(4)


def pair(a: object, b: object, kinds: tuple[str, str]) -> Association:
    frame = pl.DataFrame({"a": a, "b": b})
    table = Columns(Dissimilarity(), frame, reset=True)
    return associations(coded(table, {"a": kinds[0], "b": kinds[1]}))[0]


def test_numbers_are_spearmans() -> None:
    x = RNG.normal(size=100).round(1)
    y = (-x + RNG.normal(size=100)).round(1)
    found = pair(x, y, ("numeric", "numeric"))
    expected = spearmanr(x, y)
    assert found.strength == pytest.approx(-expected.statistic)
    assert found.sign == -1
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6)


def test_a_number_and_a_category_are_the_analysis_of_variance_of_ranks() -> None:
    code = RNG.integers(0, 3, size=150)
    x = RNG.normal(size=150) + code
    found = pair(x, np.array(["u", "v", "w"])[code], ("numeric", "category"))
    ranks = rankdata(x)
    assert found.p_value == pytest.approx(f_oneway(*(ranks[code == c] for c in range(3))).pvalue, rel=1e-6)
    between = sum((code == c).sum() * (ranks[code == c].mean() - ranks.mean()) ** 2 for c in range(3))
    share = between / ((ranks - ranks.mean()) ** 2).sum()
    assert found.strength**2 == pytest.approx(1 - (1 - share) * 149 / 147)
    assert found.measure == "eta"


def test_categories_are_cramers_and_their_chi_square() -> None:
    a = RNG.integers(0, 3, size=200)
    b = np.where(RNG.random(200) < 0.6, a, RNG.integers(0, 3, size=200))
    found = pair(a.astype(str), b.astype(str), ("category", "category"))
    table = np.array([[((a == i) & (b == j)).sum() for j in range(3)] for i in range(3)])
    expected = chi2_contingency(table, correction=False)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6)
    plain = np.sqrt(expected.statistic / 200 / 2)
    assert plain - 0.1 < found.strength < plain  # less what chance gives
    assert pair(a.astype(str), a.astype(str), ("category", "category")).strength == pytest.approx(1.0)


def test_chance_is_rarely_clear_and_never_strong() -> None:
    clear = 0
    for _ in range(60):
        found = pair(RNG.normal(size=80), RNG.choice(list("abcdefgh"), size=80), ("numeric", "category"))
        clear += found.clear(1)
        assert found.strength < 0.5
    assert clear <= 4


def test_missing_values_leave_the_pair_to_the_rows_that_have_both() -> None:
    x, y = RNG.normal(size=50), RNG.normal(size=50)
    x[::5], y[1::5] = np.nan, np.nan
    both = ~np.isnan(x) & ~np.isnan(y)
    found = pair(x, y, ("numeric", "numeric"))
    assert found.rows == both.sum()
    assert found.strength == pytest.approx(abs(spearmanr(x[both], y[both]).statistic))
    assert pair(np.full(50, 3.0), y, ("numeric", "numeric")).strength == 0.0


def test_rare_levels_are_pooled() -> None:
    table = Columns(Dissimilarity(), pl.DataFrame({"a": [str(k) for k in range(80)] + ["0"] * 9}), reset=True)
    found = coded(table, {"a": "category"})[0]
    assert found.levels[0] == "0"
    assert found.levels[-1] == "(other)"
    assert int(found.values.max()) == len(found.levels) - 1 == 49
