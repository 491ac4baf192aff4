"""The default run of a product holds every pair of choices, and is small."""

from __future__ import annotations

import itertools

import pytest
from tests.grids import covering, grid, pairs


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
