"""The default run of a product holds every pair of choices, and is small."""

from __future__ import annotations

import functools
import itertools

import pytest
from tests.grids import covering, each, grid, pairs


@pytest.mark.parametrize("lengths", [(3, 4), (2, 2, 2), (12, 6, 5), (8, 4, 3, 11), (1, 5, 1)])
def test_every_pair_is_held(lengths: tuple[int, ...]) -> None:
    chosen = covering(lengths)
    wanted = set().union(*map(pairs, itertools.product(*map(range, lengths))))
    assert set().union(*map(pairs, chosen)) == wanted
    first, second = sorted(lengths)[-2:]
    assert first * second <= len(chosen) <= 1.4 * first * second + 3


def test_the_rest_is_exhaustive() -> None:
    (params,) = (mark.args[1] for mark in [grid(a=[1, 2], b=[3, 4], c=[5, 6]).mark])
    assert len(params) == 8
    assert sum(not param.marks for param in params) == 4
    assert params[0].id == "1-3-5"


def test_all_points_that_failed_are_told() -> None:
    asked = []

    def ask(value: int) -> None:
        asked.append(value)
        assert value != 2
        with pytest.raises(ValueError, match="small"):
            raise ValueError("small" if value < 4 else "large")
        if value == 3:
            pytest.fail("three")

    each((str(value), functools.partial(ask, value)) for value in (0, 1))
    with pytest.raises(AssertionError) as one:
        each((str(value), functools.partial(ask, value)) for value in (1, 2, 1))
    assert one.value.__notes__ == ["At 2."]
    with pytest.raises(BaseExceptionGroup) as several:
        each((f"point {value}", functools.partial(ask, value)) for value in range(5))
    assert [type(failure) for failure in several.value.exceptions] == [
        AssertionError,
        pytest.fail.Exception,
        AssertionError,
    ]
    assert [failure.__notes__ for failure in several.value.exceptions] == [
        ["At point 2."],
        ["At point 3."],
        ["At point 4."],
    ]
    assert asked == [0, 1, 1, 2, 1, 0, 1, 2, 3, 4]
