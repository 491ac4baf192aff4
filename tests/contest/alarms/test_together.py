"""Small sets of columns: none is accused in honest tables, and rules of two or three columns are found and written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from certifit.contest.alarms.leaks import leaks
from certifit.contest.table.table import Table
from certifit.evaluation.splits.sealed import sealed_split

Rng = np.random.Generator
HONEST = ("clouds", "tilted clouds", "line", "factors", "positive", "whole numbers", "steps")


def honest(kind: str, rng: Rng) -> dict[str, Any]:
    """A table in which nothing is decided: classes are clouds, or a target has noise of 5 % of its spread or more."""
    n, d, k = (int(rng.choice(choices)) for choices in ([150, 300, 600, 1500], [2, 4, 8, 15, 30], [2, 3, 4, 6]))
    X = rng.normal(size=(n, d))
    if "clouds" in kind:
        y = rng.integers(0, k, n)
        spread = X @ (np.eye(d) + 0.5 * rng.normal(size=(d, d))) if kind == "tilted clouds" else X
        X = spread + (rng.choice([1, 2, 3, 4, 6]) * rng.normal(size=(k, d)))[y]
        return table(X, np.char.add("c", y.astype(str)))
    X = {"factors": X @ rng.normal(size=(d, d)), "positive": np.exp(X), "whole numbers": np.round(3 * X)}.get(kind, X)
    f = 2.0 * (X[:, 0] > 0) + (X[:, 1] > 0.3) if kind == "steps" else X @ rng.normal(size=d)
    f = (f - f.mean()) / f.std() + rng.choice([0.05, 0.1, 0.3, 1.0]) * rng.standard_t(4, size=n)
    if rng.random() < 0.5:
        return table(X, f)
    return table(
        X, np.char.add("c", np.digitize(f, np.quantile(f, np.sort(rng.uniform(0.03, 0.97, k - 1)))).astype(str))
    )


def table(X: Any, y: Any) -> dict[str, Any]:
    return {**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "y": y}


def accused(data: dict[str, Any]) -> list[dict[str, Any]]:
    source = Table.from_source(pl.DataFrame(data), "y")
    split = sealed_split(source.y, task=source.task.kind, codes=source.codes, seed=1)
    return [warning for warning in leaks(source, split, 60.0) if warning["code"] != "leak"]


@pytest.mark.parametrize("seed", [pytest.param(s, marks=pytest.mark.exhaustive if s > 1 else ()) for s in range(16)])
@pytest.mark.parametrize("kind", HONEST)
def test_no_honest_table_is_accused(kind: str, seed: int) -> None:
    assert accused(honest(kind, np.random.default_rng([seed, HONEST.index(kind)]))) == []


def bands(values: Any, rng: Rng) -> Any:
    """Three classes, the smallest of a tenth of the rows or more."""
    cuts = np.quantile(values, [rng.uniform(0.1, 0.4), rng.uniform(0.6, 0.9)])
    return np.array(["low", "middle", "high"])[np.digitize(values, cuts)]


RULES: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "difference": (lambda a, b, c: a - b, ("'x2' − 'x3'",)),
    "sum": (lambda a, b, c: a + b, ("'x2' + 'x3'",)),
    "product": (lambda a, b, c: a * b, ("'x2' × 'x3'",)),
    "quotient": (lambda a, b, c: b / a, ("'x3' ÷ 'x2'", "'x2' ÷ 'x3'")),
    "sum of three": (lambda a, b, c: a + b - c, ("'x2' + 'x3' − 'x4'",)),
}


@pytest.mark.parametrize("rule", RULES)
def test_bands_of_a_rule_are_found(rule: str) -> None:
    combine, formulas = RULES[rule]
    rng = np.random.default_rng(3)
    X = rng.uniform(1, 5, (800, 7))
    (found,) = accused(table(X, bands(combine(*X.T[2:5]), rng)))
    assert found["code"] == ("leak of three" if rule == "sum of three" else "leak of two")
    assert found["text"].startswith(tuple(f"{formula} predicts" for formula in formulas))


@pytest.mark.parametrize("rule", RULES)
def test_a_number_of_any_sign_is_found(rule: str) -> None:
    combine, formulas = RULES[rule]
    X = np.random.default_rng(4).normal(size=(800, 7))
    (found,) = accused(table(X, combine(*X.T[2:5])))
    assert found["text"].startswith(f"The target is {formulas[0]}, exactly or nearly (R² 1)")


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (lambda a, b: 7 - 2 * a * b, "a linear function of 'x2' × 'x3'"),
        (lambda a, b: np.exp(a - b), "a function that rises with 'x2' − 'x3'"),
        (lambda a, b: -np.arctan(a * b), "a function that falls with 'x2' × 'x3'"),
    ],
)
def test_curves_are_told_from_the_values(y: Callable[..., Any], words: str) -> None:
    X = np.random.default_rng(5).normal(size=(500, 5))
    (found,) = accused(table(X, y(X[:, 2], X[:, 3])))
    assert found["text"].startswith(f"The target is {words}, exactly or nearly (R² ")


def test_rows_of_a_subject_are_no_rule() -> None:
    """Numbers that name a subject lead from one of its rows to the other; that is memory, and no combination decides."""
    rng = np.random.default_rng(6)
    subject = rng.permutation(np.repeat(np.arange(100), 6))
    fixed, label = rng.normal(size=(100, 3)), rng.choice(["a", "b", "c"], 100)
    X = np.column_stack([fixed[subject], rng.normal(size=600)])
    assert accused(table(X, label[subject])) == []


def test_the_time_is_kept() -> None:
    X = np.random.default_rng(7).normal(size=(300, 40))
    source = Table.from_source(pl.DataFrame(table(X, X[:, 0] * X[:, 1] + X[:, 2])), "y")
    found = leaks(source, sealed_split(source.y, task="regression", seed=1), 1e-9)
    assert [warning["code"] for warning in found] == ["no time"]
    assert "40 of 40 columns and in sets of columns" in found[0]["text"]
