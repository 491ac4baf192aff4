"""Products of grids, met pairwise in the default run.

A fault that depends on one choice, or on two together, shows itself when every pair of choices has been met; more than two are
rarely needed. So a test over `grid(loss=…, penalty=…, constraint=…)` runs by default on few points of the product that hold every
pair of values, and on the rest of it in `make test-all`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

exhaustive = pytest.mark.exhaustive


def pairs(point: tuple[int, ...]) -> set[tuple[int, int, int, int]]:
    """The pairs of choices that a point of the product holds: two axes and the place on each."""
    return {(i, point[i], j, point[j]) for i, j in itertools.combinations(range(len(point)), 2)}


def covering(lengths: Sequence[int]) -> set[tuple[int, ...]]:
    """Points of a product that hold every pair, by the greedy rule: always the one with most pairs not yet held."""
    waiting = {point: pairs(point) for point in itertools.product(*map(range, lengths))}
    missing = set().union(*waiting.values())
    chosen = set()
    while missing:
        best = max(waiting, key=lambda point: len(waiting[point] & missing))
        missing -= waiting.pop(best)
        chosen.add(best)
    return chosen


def grid(label: Callable[[Any], str] = repr, **axes: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrize a test by a product of axes: pairwise by default, the rest of the product marked `exhaustive`."""
    named = [[(value, label(value)) for value in axis] for axis in axes.values()]
    chosen = covering([len(axis) for axis in named])
    params = []
    for point in itertools.product(*(range(len(axis)) for axis in named)):
        values, names = zip(*(axis[k] for axis, k in zip(named, point, strict=True)), strict=True)
        params.append(pytest.param(*values, marks=() if point in chosen else exhaustive, id="-".join(names)))
    return pytest.mark.parametrize(tuple(axes), params)


def each(points: Iterable[tuple[str, Callable[[], None]]]) -> None:
    """Ask at all points, by their names, and tell every one that failed: many questions in one item."""
    failures: dict[str, BaseException] = {}
    for name, ask in points:
        try:
            ask()
        except (Exception, pytest.fail.Exception) as failure:
            failures[name] = failure
    tell(failures)


def tell(failures: dict[str, BaseException]) -> None:
    """Raise all failures, each with the name of its point; nothing if there are none."""
    for name, failure in failures.items():
        failure.add_note(f"At {name}.")
    if len(failures) == 1:
        raise failures.popitem()[1]
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} points failed", list(failures.values()))
