"""Every estimator with every pair of bad things: rows, their kind, target, weights, a parameter, two of one sort included.

Drawn cases meet a given pair of bad things in a given setting of a given estimator once in some millions. Here each triple is
one case, and the cases are walked in an order that the seed shuffles: what is not drawn from the pair (the numbers, their
shape, the value of the parameter) comes from the seed too, so that another walk is another sweep.
"""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import numpy as np
from tests.contract.discovery import ESTIMATORS, Case, variants
from tests.fuzz.fits import KINDS, ROWS, SPARSE, WEIGHTS, argument, arguments_of, targets_of, written
from tests.fuzz.mutation import chosen

__all__ = ["Triple", "code", "order", "triples"]

Thing = tuple[str, str]
"""Where it belongs and what it is: a line, or the name of a parameter."""
SHAPES = [(1, 2), (2, 3), (3, 1), (5, 2), (12, 3), (12, 80), (40, 5), (60, 12)]


class Triple(NamedTuple):
    """A setting of an estimator and two bad things."""

    case: Case
    things: tuple[Thing, Thing]

    def of(self, sort: str) -> list[str]:
        """Those of the things that belong there."""
        return [what for where, what in self.things if where == sort]


@functools.cache
def triples() -> list[Triple]:
    """All of them."""
    return [
        Triple(case, pair)
        for cls in ESTIMATORS
        for case in (Case(cls, params) for params in variants(cls))
        for pair in itertools.combinations(_things(case), 2)
        if _together(*pair)
    ]


def _things(case: Case) -> list[Thing]:
    sorts = {
        "rows": ROWS,
        "kind": KINDS + SPARSE,
        "target": targets_of(case),
        "weights": WEIGHTS if case.takes_weights else [],
        "argument": arguments_of(case.cls),
    }
    return [(sort, what) for sort, all_of in sorts.items() for what in all_of]


def _together(one: Thing, other: Thing) -> bool:
    """Of rows and parameters there may be two; two kinds of one matrix, or of weights, would be one of them."""
    return one[0] != other[0] or one[0] in ("rows", "argument")


def order(seed: int, number: int) -> int:
    """Which of the triples is met at this number in the walk of this seed."""
    return int(_shuffled(seed)[number % len(triples())])


def code(seed: int, number: int) -> str:
    """The case at this number in the walk of this seed."""
    triple = triples()[order(seed, number)]
    rng = np.random.default_rng([seed, number])
    cls, n_d = triple.case.cls, chosen(rng, SHAPES)
    texts = {name: argument(cls, name, rng) for name in triple.of("argument")}
    arguments = {name: text for name, text in texts.items() if text is not None}
    rows = triple.of("rows") + triple.of("kind")
    return written(rng, triple.case, *n_d, rows, triple.of("target"), triple.of("weights"), arguments)


@functools.lru_cache(maxsize=1)
def _shuffled(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(len(triples()))
