"""Sixty small tables, and what a contest must and must not say of each.

The table says what the trouble is; `says` and `silent` are codes of the registry of alarms. Only the stages that speak are run:
reading, splitting and the alarms; no model is fitted. Costs speak when the scores are in: for those of `COSTS` a contest is held,
and `says` and `silent` are words of its summary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

__all__ = ["CASES", "COSTS", "Case"]

N = 400
Frame = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A table, its options, and what is to be said of it."""

    make: Callable[[np.random.Generator], Frame]
    says: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    task: str | None = None
    options: Frame = field(default_factory=dict)


LEAKS = ("leak", "leak of several", "leak of two", "leak of three", "leak in an identifier")
ALL = (
    *LEAKS,
    "one group",
    "class not sealed",
    "class not trained",
    "copies",
    "copies across",
    "repeats",
    "sorted",
    "trend",
    "order",
    "drift",
)


def honest(rng: np.random.Generator, n: int = N) -> Frame:
    """Three columns that help a little."""
    return {"a": rng.normal(size=n), "b": rng.uniform(1, 5, n), "k": rng.choice(["u", "v", "w"], n)}


def number(rng: np.random.Generator, n: int = N) -> Frame:
    d = honest(rng, n)
    return d | {"y": 10 + d["a"] + rng.normal(size=n)}


def binary(rng: np.random.Generator, n: int = N) -> Frame:
    d = honest(rng, n)
    return d | {"y": np.where(d["a"] + rng.normal(size=n) > 0, "yes", "no")}


def several(rng: np.random.Generator, n: int = N) -> Frame:
    d = honest(rng, n)
    return d | {"y": np.array(["red", "green", "blue"])[np.digitize(d["a"] + 0.7 * rng.normal(size=n), [-0.5, 0.5])]}


def plus(base: Callable[..., Frame], **columns: Callable[[Frame, np.random.Generator], Any]) -> Callable[..., Frame]:
    """A table with further columns, each made from those before it."""

    def make(rng: np.random.Generator) -> Frame:
        d = base(rng)
        for name, column in columns.items():
            d[name] = column(d, rng)
        return d

    return make


def yes(d: Frame) -> Any:
    return (np.asarray(d["y"]) == "yes").astype(float)


def days(n: int = N) -> pl.Series:
    return pl.date_range(pl.date(2020, 1, 1), pl.date(2026, 1, 1), eager=True)[:n]


def target(base: Callable[..., Frame], change: Callable[[Frame, np.random.Generator], Any]) -> Callable[..., Frame]:
    """A table with another target."""
    return plus(base, y=change)


def repeated(base: Callable[..., Frame], times: int) -> Callable[..., Frame]:
    """Every row several times."""

    def make(rng: np.random.Generator) -> Frame:
        return {name: np.tile(np.asarray(column), times) for name, column in base(rng, N // times).items()}

    return make


def by_class(d: Frame, rng: np.random.Generator) -> Any:
    """Groups that hold one class each, three of them a class."""
    return np.char.add(np.asarray(d["y"], dtype=str), rng.integers(0, 3, len(d["y"])).astype(str))


def ruled(rule: Callable[..., Any], columns: int = 2, others: int = 3) -> Callable[..., Frame]:
    """Normal columns, of which the last ones give the target."""

    def make(rng: np.random.Generator) -> Frame:
        X = rng.normal(size=(N, columns + others))
        return {**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "y": rule(*X.T[others:])}

    return make


def bands(values: Any, *cuts: float) -> Any:
    return np.array(["low", "middle", "high", "top"])[np.digitize(values, cuts)]


def clouds(rng: np.random.Generator) -> Frame:
    """Three classes that are apart by nature, in two columns."""
    k = rng.integers(0, 3, N)
    center = np.array([[0.0, 0.0], [7.0, 0.0], [0.0, 7.0]])[k]
    return {"a": center[:, 0] + rng.normal(size=N), "b": center[:, 1] + rng.normal(size=N), "y": bands(k, 1, 2)}


CASES: dict[str, Case] = {
    # nothing wrong
    "honest number": Case(number, silent=ALL),
    "honest classes": Case(binary, silent=ALL),
    "honest several": Case(several, silent=ALL),
    # leaks of one column
    "copy of a number": Case(plus(number, c=lambda d, r: 2 * d["y"] + 1), ("leak",), ("leak of several",)),
    "curve of a number": Case(plus(number, c=lambda d, r: np.exp(d["y"] / 3)), ("leak",)),
    "copy of a class": Case(plus(binary, c=lambda d, r: np.where(yes(d) > 0, "paid", "open")), ("leak",)),
    "number of a class": Case(plus(binary, c=lambda d, r: yes(d) + 0.2 * r.random(N)), ("leak",)),
    "class by a middle range": Case(
        plus(binary, c=lambda d, r: np.where(yes(d) > 0, r.random(N), r.choice([-2.0, 2.0], N) + 0.1 * r.random(N))),
        ("leak",),
    ),
    "class by missing": Case(
        plus(binary, c=lambda d, r: pl.Series([None if v else 1.0 for v in yes(d)])), ("leak", "missing tells")
    ),
    "bands of a number": Case(
        plus(several, c=lambda d, r: r.normal(size=N), y=lambda d, r: bands(d["c"], -1, 0, 1)), ("leak",)
    ),
    "label of three": Case(plus(several, c=lambda d, r: np.char.add("is ", d["y"])), ("leak",)),
    "strong but honest": Case(plus(number, c=lambda d, r: d["y"] + 0.3 * r.normal(size=N)), silent=LEAKS),
    "many rare labels": Case(plus(binary, c=lambda d, r: [f"k{i // 2}" for i in range(N)]), silent=LEAKS),
    # leaks of several columns
    "sum of two": Case(
        plus(number, c=lambda d, r: r.uniform(0, 9, N), e=lambda d, r: d["y"] - d["c"]), ("leak of several",), ("leak",)
    ),
    "difference of two": Case(
        plus(number, c=lambda d, r: 50 * r.normal(size=N), e=lambda d, r: d["c"] - d["y"]), ("leak of several",)
    ),
    "weighted sum of three": Case(
        plus(
            number,
            c=lambda d, r: r.normal(size=N),
            e=lambda d, r: r.normal(size=N),
            f=lambda d, r: (d["y"] - 3 * d["c"] + d["e"]) / 7,
        ),
        ("leak of several",),
    ),
    "sum of five": Case(
        lambda r: (lambda X: {**{f"x{j}": X[:, j] for j in range(5)}, "y": X.sum(axis=1)})(r.normal(size=(N, 5))),
        ("leak of several",),
    ),
    "product of two": Case(
        target(number, lambda d, r: np.exp(d["a"]) * 0 + d["b"] * (d.setdefault("q", r.uniform(1, 9, N)))),
        ("leak of several",),
    ),
    "quotient of two": Case(
        target(number, lambda d, r: d["b"] / d.setdefault("q", r.uniform(1, 9, N))), ("leak of several",)
    ),
    "nearly a sum": Case(
        plus(number, c=lambda d, r: r.uniform(0, 9, N), e=lambda d, r: d["y"] - d["c"] + 0.3 * r.normal(size=N)),
        silent=LEAKS,
    ),
    "class by a difference": Case(
        lambda r: (lambda a, b: {"a": a, "b": b, "y": np.where(a > b, "yes", "no")})(*r.normal(size=(2, N))),
        ("leak of two",),
        ("leak",),
    ),
    "class by a product": Case(
        lambda r: (lambda a, b: {"a": a, "b": b, "y": np.where(a * b > 0, "yes", "no")})(*r.normal(size=(2, N))),
        ("leak of two",),
        ("leak",),
    ),
    "product of any signs": Case(ruled(lambda a, b: a * b), ("leak of several",)),
    "quotient of any signs": Case(ruled(lambda a, b: a / b), ("leak of several",)),
    "line in a product": Case(ruled(lambda a, b: 5 - 3 * a * b), ("leak of several",)),
    "curve of a difference": Case(ruled(lambda a, b: np.exp(a - b)), ("leak of several",)),
    "nearly a product": Case(
        plus(ruled(lambda a, b: a * b), y=lambda d, r: d["y"] + 0.1 * r.normal(size=N)), silent=LEAKS
    ),
    "days between dates": Case(
        plus(
            number,
            asked=lambda d, r: days().sample(N, shuffle=True, seed=1),
            y=lambda d, r: r.integers(1, 60, N).astype(float),
            came=lambda d, r: d["asked"] + pl.Series(1e6 * 86_400 * d["y"]).cast(pl.Duration("us")),
        ),
        ("leak of several",),
    ),
    "late by dates": Case(
        plus(
            honest,
            due=lambda d, r: days().sample(N, shuffle=True, seed=1),
            came=lambda d, r: d["due"] + pl.Series(86_400_000_000 * r.integers(-30, 30, N)).cast(pl.Duration("us")),
            y=lambda d, r: np.where((d["came"] > d["due"]).to_numpy(), "late", "in time"),
        ),
        ("leak of two",),
    ),
    "class by a quotient": Case(
        lambda r: (lambda a, b: {"a": a, "b": b, "y": np.where(a > 1.7 * b, "yes", "no")})(*r.uniform(1, 9, (2, N))),
        ("leak of two",),
    ),
    "class by a match": Case(
        plus(
            honest,
            c=lambda d, r: r.integers(0, 5, N),
            e=lambda d, r: r.integers(0, 5, N),
            y=lambda d, r: np.where(d["c"] == d["e"], "yes", "no"),
        ),
        ("leak of two",),
    ),
    "class by a sum of three": Case(
        ruled(lambda a, b, c: np.where(a + b + c > 0.5, "yes", "no"), 3), ("leak of three",)
    ),
    "bands of a sum": Case(ruled(lambda a, b: bands(a + b, -1, 1)), ("leak of two",)),
    "bands of a product": Case(ruled(lambda a, b: bands(a * b, -1, 0, 1)), ("leak of two",)),
    "bands of a quotient": Case(
        lambda r: (lambda a, b: {"kg": a, "m": b, "y": bands(a / b, 35, 50)})(
            r.uniform(50, 110, N), r.uniform(1, 3, N)
        ),
        ("leak of two",),
    ),
    "bands of a sum of three": Case(ruled(lambda a, b, c: bands(a - b + c, -1, 1), 3), ("leak of three",)),
    "a rare band": Case(ruled(lambda a, b: bands(a - b, -0.5, 2.8)), ("leak of two",)),
    "bands of a noisy sum": Case(
        plus(ruled(lambda a, b: a + b), y=lambda d, r: bands(d["y"] + 0.3 * r.normal(size=N), -1, 1)), silent=LEAKS
    ),
    "clouds apart": Case(clouds, silent=LEAKS),
    "class by a noisy sum": Case(
        lambda r: (lambda a, b: {"a": a, "b": b, "y": np.where(a + b + r.normal(size=N) > 0, "yes", "no")})(
            *r.normal(size=(2, N))
        ),
        silent=LEAKS,
    ),
    "no column of numbers": Case(
        lambda r: {"k": r.choice(["u", "v"], N), "day": days().sample(N, shuffle=True, seed=1), "y": r.normal(size=N)},
        silent=ALL,
    ),
    "one column of numbers": Case(lambda r: {"a": r.normal(size=N), "y": r.normal(size=N)}, silent=ALL),
    "a sum among very many": Case(
        lambda r: (lambda X: {**{f"x{j}": X[:, j] for j in range(320)}, "y": X[:, 310] + X[:, 315]})(
            r.normal(size=(N, 320))
        ),
        ("leak of several",),
        ("leak",),
    ),
    # identifiers and order
    "id with the class in its letters": Case(
        plus(
            binary,
            id=lambda d, r: [f"{'P' if v else 'N'}{i:04d}" for i, v in zip(r.permutation(N), yes(d), strict=True)],
        ),
        ("leak in an identifier", "left out"),
    ),
    "id with the class in its number": Case(
        plus(binary, id=lambda d, r: (yes(d) * 10_000 + r.permutation(N)).astype(int)),
        ("leak in an identifier", "left out"),
    ),
    "id that tells nothing": Case(plus(binary, id=lambda d, r: r.permutation(N)), ("left out",), LEAKS),
    "sorted by class": Case(target(binary, lambda d, r: np.sort(d["y"])), ("sorted",), LEAKS),
    "sorted by number": Case(target(number, lambda d, r: np.sort(d["y"])), ("sorted",), LEAKS),
    "counted and sorted": Case(
        plus(target(binary, lambda d, r: np.sort(d["y"])), row=lambda d, r: np.arange(N)), ("sorted", "left out")
    ),
    "a rising number": Case(
        target(number, lambda d, r: d["y"] + 4 * np.arange(N) / N), ("order",), ("sorted", "trend")
    ),
    # time
    "trend along a date": Case(
        plus(target(number, lambda d, r: d["y"] + 4 * np.arange(N) / N), day=lambda d, r: days()),
        ("trend",),
        ("order", "sorted"),
    ),
    "date without a trend": Case(plus(number, day=lambda d, r: days()), silent=("trend", "order")),
    "time column given": Case(
        plus(target(number, lambda d, r: d["y"] + 4 * np.arange(N) / N), day=lambda d, r: days()),
        silent=("trend", "order", "sorted"),
        options={"time_column": "day"},
    ),
    "drift": Case(
        plus(number, day=lambda d, r: days(), m=lambda d, r: r.normal(size=N) + 4 * (np.arange(N) > 300)),
        ("drift",),
        options={"time_column": "day"},
    ),
    "no drift": Case(plus(number, day=lambda d, r: days()), silent=("drift",), options={"time_column": "day"}),
    "a new class in time": Case(
        plus(target(binary, lambda d, r: np.where(np.arange(N) > 350, "new", d["y"])), day=lambda d, r: days()),
        ("class not trained",),
        options={"time_column": "day"},
    ),
    "a class that ended": Case(
        plus(target(binary, lambda d, r: np.where(np.arange(N) < 50, "old", d["y"])), day=lambda d, r: days()),
        ("class not sealed",),
        options={"time_column": "day"},
    ),
    # groups
    "many groups": Case(
        plus(binary, g=lambda d, r: np.arange(N) // 4),
        silent=("one group", "few groups", "class not sealed"),
        options={"group": "g"},
    ),
    "two groups": Case(plus(binary, g=lambda d, r: r.integers(0, 2, N)), ("one group",), options={"group": "g"}),
    "three groups of one class each": Case(
        plus(several, g=lambda d, r: d["y"]), ("one group", "class not sealed"), options={"group": "g"}
    ),
    "three groups a class": Case(
        plus(several, g=by_class), silent=("one group", "class not sealed", "class not trained"), options={"group": "g"}
    ),
    "twelve groups": Case(
        plus(binary, g=lambda d, r: r.integers(0, 12, N)), ("few groups",), ("one group",), options={"group": "g"}
    ),
    "eight groups, one large": Case(
        plus(binary, g=lambda d, r: np.where(np.arange(N) < 200, 0, r.integers(1, 8, N))),
        silent=("one group",),
        options={"group": "g"},
    ),
    # copies
    "every row twice": Case(repeated(binary, 2), ("copies",), ("copies across", "repeats")),
    "every row five times": Case(repeated(number, 5), ("copies",), ("copies across",)),
    "copies in two groups": Case(
        plus(repeated(binary, 2), g=lambda d, r: np.arange(N) // 20),
        ("copies", "copies across"),
        options={"group": "g"},
    ),
    "equal cases": Case(
        lambda r: {**{name: r.choice(["u", "v", "w"], N) for name in "abcd"}, "y": r.choice(["yes", "no"], N)},
        ("repeats",),
        ("copies", "copies across"),
    ),
    "a number that repeats": Case(
        lambda r: {"k": r.choice(["u", "v"], N), "m": r.integers(0, 6, N), "y": r.integers(0, 90, N).astype(float)},
        ("repeats",),
        ("copies",),
    ),
    # classes
    "a rare class": Case(target(binary, lambda d, r: np.where(np.arange(N) % 50 == 0, "yes", "no")), ("rare class",)),
    "a class of one row": Case(
        target(several, lambda d, r: np.where(np.arange(N) == 7, "odd", d["y"])), ("single row",), ("class not sealed",)
    ),
    "even classes": Case(binary, silent=("rare class", "single row")),
    # units
    "a huge number": Case(target(number, lambda d, r: 1e150 * d["y"]), silent=ALL),
    "a tiny number": Case(target(number, lambda d, r: 1e-150 * d["y"]), silent=ALL),
    "a sum in other units": Case(
        plus(
            target(number, lambda d, r: 1e6 * d["y"]),
            c=lambda d, r: 1e6 * r.normal(size=N),
            e=lambda d, r: d["y"] - d["c"],
        ),
        ("leak of several",),
    ),
    # size
    "tiny": Case(lambda r: number(r, 30), ("few rows",), LEAKS),
    "wide": Case(
        lambda r: {**{f"x{j}": r.normal(size=60) for j in range(90)}, "y": r.normal(size=60)},
        ("few rows", "wide"),
        LEAKS,
    ),
    "large enough": Case(number, silent=("few rows", "wide", "missing", "target missing", "left out", "pooled")),
    # categories
    "many shops": Case(
        plus(number, shop=lambda d, r: [f"s{v}" for v in r.integers(0, 130, N)]), ("pooled",), (*LEAKS, "left out")
    ),
    "a few rare shops": Case(
        plus(number, shop=lambda d, r: [f"s{v}" if i < 20 else "main" for i, v in enumerate(r.integers(0, 130, N))]),
        silent=("pooled",),
    ),
    # missing
    "half is missing": Case(
        plus(number, c=lambda d, r: pl.Series([None if v < 0.5 else v for v in r.random(N)])),
        ("missing",),
        ("missing tells",),
    ),
    "target missing": Case(
        target(number, lambda d, r: pl.Series([None if i < 9 else v for i, v in enumerate(d["y"])])),
        ("target missing",),
        LEAKS,
    ),
    # columns left out
    "constant and empty": Case(
        plus(number, one=lambda d, r: [1] * N, none=lambda d, r: pl.Series([None] * N, dtype=pl.Float64)),
        ("left out",),
        LEAKS,
    ),
    # text, dates, kinds
    "text": Case(
        plus(
            binary,
            note=lambda d, r: [" ".join(r.choice(["good", "bad", "fine", "old", "new", "blue"], 7)) for _ in range(N)],
        ),
        silent=LEAKS,
    ),
    "dates of birth": Case(
        plus(binary, born=lambda d, r: days(N).sample(N, shuffle=True, seed=1)), silent=("trend", "leak")
    ),
    # tasks
    "sleep stages": Case(target(several, lambda d, r: r.choice([0, 1, 2, 3, 5], N)), silent=LEAKS, task="multiclass"),
    "a rating": Case(
        lambda r: {**honest(r), "rating": r.integers(1, 6, N)},
        silent=LEAKS,
        task="regression",
        options={"target": "rating"},
    ),
    "a count": Case(
        lambda r: {**honest(r), "visits": r.poisson(2, N)},
        silent=LEAKS,
        task="regression",
        options={"target": "visits"},
    ),
    "digits": Case(target(several, lambda d, r: r.integers(0, 10, N)), silent=LEAKS, task="multiclass"),
}


def told_weakly(rng: np.random.Generator) -> Frame:
    """One row in ten is a yes, and the column helps a little."""
    truth = rng.permutation(N) < N // 10
    return {"a": rng.normal(size=N) + truth, "y": np.where(truth, "yes", "no")}


def told_by_nothing(rng: np.random.Generator) -> Frame:
    return {"a": rng.normal(size=N), "y": rng.choice(["yes", "no"], N, p=[0.2, 0.8])}


LESS_OFTEN, PAYS, DOES_NOT = "and that is meant", "instead of", "no model here pays"

COSTS: dict[str, Case] = {
    "no costs": Case(told_weakly, silent=("With your costs", LESS_OFTEN)),
    "dear misses": Case(
        told_weakly,
        ("With your costs (a false alarm 1, a miss 7)", PAYS, LESS_OFTEN, "accepts false alarms to avoid misses"),
        (DOES_NOT,),
        options={"cost": "fp=1,fn=7"},
    ),
    "dear false alarms": Case(
        target(told_weakly, lambda d, r: np.where(d["y"] == "yes", "no", "yes")),
        ("With your costs (a false alarm 7, a miss 1)", PAYS, LESS_OFTEN, "accepts misses to avoid false alarms"),
        (DOES_NOT,),
        options={"cost": "fp=7,fn=1"},
    ),
    "equal costs": Case(
        told_weakly, ("With your costs (a false alarm 1, a miss 1)",), (LESS_OFTEN,), options={"cost": "fp=1,fn=1"}
    ),
    "costs and nothing to learn": Case(told_by_nothing, (DOES_NOT,), (PAYS, LESS_OFTEN), options={"cost": "fp=1,fn=1"}),
    "costs of three classes": Case(
        several,
        ("With your costs, Logistic regression costs", "the class that costs the least in expectation"),
        (DOES_NOT,),
        options={
            "cost": {"red": {"green": 5, "blue": 5}, "green": {"red": 1, "blue": 1}, "blue": {"red": 1, "green": 1}}
        },
    ),
}
