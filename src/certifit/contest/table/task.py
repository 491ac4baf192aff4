"""What is asked of the target: one of two classes, one of many, or a number; with a phrase that says why."""

from __future__ import annotations

import re
from collections.abc import Mapping

import polars as pl

from certifit.contest.table.kinds import Task, example, labels
from certifit.contest.table.reading import TableError
from certifit.contest.table.values import date_format, number_format

__all__ = ["infer_task"]

MOST_CLASSES = 10
FREQUENT = 0.01
COUNT_NAME = re.compile(
    r"(?i)(^|[ _.-])(n|num|number|count|counts|cnt|total|sum|qty|quantity|amount|visits|children|items|days|hours|years?|"
    r"age|size|rating|ratings|score|scores|stars?|grade|grades|quality|rank|satisfaction)($|[ _.-])"
)
TASKS = ("binary", "multiclass", "classification", "regression")
POSITIVE = {
    "yes",
    "true",
    "1",
    "y",
    "t",
    "positive",
    "pos",
    "+",
    "+1",
    "1.0",
    "on",
    "success",
    "win",
    "won",
    "event",
    "case",
}
POSITIVE |= {"default", "defaulted", "bad", "churn", "churned", "fraud", "spam", "malignant", "sick", "ill", "disease"}
POSITIVE |= {"died", "dead", "deceased", "fail", "failed", "failure", "abnormal", "high", "up", "present", "accepted"}


def infer_task(values: pl.Series, task: str | None = None, delimiter: str | None = None) -> Task:
    """Whether a target asks for one of two classes, one of many, or a number.

    Parameters
    ----------
    values : polars.Series
        The target, as `read_table` gives it.
    task : {"binary", "multiclass", "classification", "regression"}, default=None
        Wins over what would be inferred.
    delimiter : str, default=None
        Of the file.

    Returns
    -------
    Task
        kind, classes (sorted, as strings), positive class, why.

    Examples
    --------
    >>> import polars as pl
    >>> infer_task(pl.Series("paid", ["No", "Yes", "No"])).positive
    'Yes'
    >>> infer_task(pl.Series("wage", [1.5, 2.5, 3.25])).kind
    'regression'
    """
    name = values.name
    if task is not None and task not in TASKS:
        raise TableError(f"task must be one of {', '.join(TASKS)}; got {task!r}.")
    values = values.drop_nulls()
    distinct = values.n_unique()
    if values.is_empty():
        raise TableError(f"the target {name!r} has no value at all: choose another column.")
    if distinct == 1:
        raise TableError(
            f"the target {name!r} has one value only ({values[0]!r}), so there is nothing to learn: choose another "
            "column, or add rows with other values."
        )
    if values.dtype.is_temporal() or (values.dtype == pl.String and _is_dates(values)):
        raise TableError(f"the target {name!r} holds dates: turn them into a number or a class first.")
    numbers = _as_numbers(values, delimiter)
    if task == "regression":
        if numbers is None:
            raise TableError(
                f"the target {name!r} holds {example(values)!r}, which is no number: choose task classification."
            )
        return Task("regression", None, None, "a number, as asked")
    if task is None and numbers is not None and distinct > 2:
        classes = _looks_like_classes(numbers, distinct, name)
        if not classes:
            hint = "; --task classification takes them for classes" if distinct <= 5 * MOST_CLASSES else ""
            return Task("regression", None, None, f"{distinct:,} different numbers: a quantity{hint}")
        ends = f"{int(numbers.min())} to {int(numbers.max())}"  # type: ignore[arg-type]
        why = f"{distinct} whole numbers from {ends}: classes; --task regression takes them for a quantity"
    else:
        why = "two different values: a yes/no question" if distinct == 2 else f"{distinct} different labels"
        if numbers is not None and task is None:
            why += "; --task regression takes them for a quantity"
    if task == "binary" and distinct != 2:
        raise TableError(
            f"the target {name!r} has {distinct} different values, a binary task needs 2: choose task multiclass."
        )
    if distinct > max(2, 0.5 * values.len()) or distinct > 1000:
        raise TableError(
            f"the target {name!r} has {distinct} different labels in {values.len()} rows: too few rows a class to "
            "learn from; choose another column, or merge the rare classes."
        )
    counts = dict(labels(values).value_counts().iter_rows())
    classes_ = tuple(sorted(counts))
    if len(classes_) > 2 or task == "multiclass":
        return Task("multiclass", classes_, None, why)
    positive, because = _positive(counts)
    return Task("binary", classes_, positive, f"{why}; the positive class is {positive}, {because}")


def _is_dates(values: pl.Series) -> bool:
    return number_format(values.head(100)) is None and date_format(values) is not None


def _as_numbers(values: pl.Series, delimiter: str | None) -> pl.Series | None:
    if values.dtype.is_numeric():
        return values.cast(pl.Float64)
    if values.dtype != pl.String:
        return None
    style = number_format(values.unique(), delimiter)
    return None if style is None else style.parse(values)


def _looks_like_classes(numbers: pl.Series, distinct: int, name: str) -> bool:
    """Up to ten whole numbers on many rows each, most of them frequent, unless name or values speak for a count or a rating.

    Numbers that begin at 0 or 1 and leave none out are classes, as digits are; so are numbers with gaps, which nobody counts
    or rates with. Numbers in a row from elsewhere (grades from 3 to 9) are a rating.
    """
    if not (numbers == numbers.round()).all() or distinct > MOST_CLASSES or numbers.len() < 10 * distinct:
        return False
    if COUNT_NAME.search(name):
        return False
    low, high = int(numbers.min()), int(numbers.max())  # type: ignore[arg-type]
    in_a_row = high - low + 1 == distinct
    if in_a_row:
        return low in (0, 1)
    counts = numbers.value_counts().get_column("count")
    frequent = int((counts >= max(5, FREQUENT * numbers.len())).sum())
    return 3 * frequent >= 2 * distinct and high - low < 3 * distinct + 5


def _positive(counts: Mapping[str, int]) -> tuple[str, str]:
    """The class a yes/no question asks about: by meaning, otherwise the rarer one."""
    first, second = sorted(counts)
    for a, b in ((first, second), (second, first)):
        low_a, low_b = a.lower(), b.lower()
        if low_a in POSITIVE and low_b not in POSITIVE:
            return a, "by its meaning"
        if low_b in {f"{no}{gap}{low_a}" for no in ("no", "not", "non", "un") for gap in ("", " ", "-", "_")}:
            return a, "by its meaning"
        if low_a.startswith(">") and low_b.startswith("<"):
            return a, "the upper one"
    if counts[first] == counts[second]:
        return second, "the second of two equally frequent ones"
    rarer = first if counts[first] < counts[second] else second
    return rarer, "the rarer one"
