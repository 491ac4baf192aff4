"""Divisions of the rows into parts to fit and parts to judge.

| cv | parts | judged rows for each row fitted |
|---|---|---|
| K | K folds, classes in proportion; whole groups; stretches of time | 1/(K − 1) |
| "loo" | every row (or every group) by itself | 1/(n − 1) |
| "bootstrap", ".632+" | n rows drawn with replacement; those not drawn judge | ≈ 0.58 |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_real
from certifit.evaluation.splits.choice import Fold
from certifit.evaluation.splits.sealed import folds

__all__ = ["Division", "column_of", "divided"]

NAMES = ("loo", "bootstrap", ".632+", "oob")


@dataclass(frozen=True)
class Division:
    """Parts to fit and to judge, and what they are.

    Parameters
    ----------
    parts : list of Fold
        Row numbers; a bootstrap sample has some of them more than once.
    kind : str
        ``"folds"``, ``"loo"``, ``"bootstrap"`` or ``".632+"``.
    text : str
        What was done, for the reader.
    """

    parts: list[Fold]
    kind: str
    text: str

    @property
    def overlap(self) -> float:
        """Judged rows for each row fitted, on average over the parts."""
        return float(np.mean([fold.test.shape[0] / np.unique(fold.train).shape[0] for fold in self.parts]))


def divided(
    cv: Any,
    y: Array,
    *,
    task: str,
    groups: Any = None,
    time: Any = None,
    repeats: int = 1,
    n_resamples: int = 100,
    rng: np.random.Generator,
) -> Division:
    """The parts that `cv` asks for.

    Parameters
    ----------
    cv : int, str, splitter or iterable of pairs
        See the table above; a splitter of scikit-learn, and pairs of row numbers, are taken as they are.
    y : array of shape (n,)
    task : {"binary", "multiclass", "regression"}
    groups, time : array of shape (n,), optional
        Rows of one group stay together; with a time, every part is judged on what came after.
    repeats : int, default=1
        How often rows are dealt into folds anew.
    n_resamples : int, default=100
        Number of bootstrap samples.
    rng : Generator

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.evaluation.resampling.division import divided
    >>> found = divided("loo", np.arange(4.0), task="regression", rng=np.random.default_rng(0))
    >>> [fold.test.tolist() for fold in found.parts]
    [[0], [1], [2], [3]]
    """
    n = y.shape[0]
    check_real("repeats", repeats, low=1, integer=True)
    if isinstance(cv, str):
        return _named(cv, n, groups, time, n_resamples, rng)
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        return _dealt(int(cv), y, task, groups, time, repeats, rng)
    if hasattr(cv, "split"):
        pairs: Any = cv.split(np.zeros((n, 1)), y, groups)
    elif isinstance(cv, Iterable):
        pairs = cv
    else:
        raise ValueError(
            f"cv must be a number of folds, one of {', '.join(map(repr, NAMES))}, a splitter, or pairs (train, test) of row "
            f"numbers; got {cv!r}."
        )
    parts = [Fold(_numbers(train, n), _numbers(test, n)) for train, test in pairs]
    if not parts:
        raise ValueError("cv gives no parts: nothing can be judged.")
    for number, part in enumerate(parts, 1):
        if part.train.size == 0 or part.test.size == 0:
            raise ValueError(f"Part {number} of cv has no rows to {'fit' if part.train.size == 0 else 'judge'}.")
        if np.intersect1d(part.train, part.test).size:
            raise ValueError(f"Part {number} of cv judges rows that it was fitted on: its rows must be apart.")
    return Division(parts, "folds", f"{len(parts)} parts as given")


def column_of(name: str, values: Any, n: int) -> Array | None:
    """A column beside X as an array of its length, or None."""
    if values is None:
        return None
    column = np.asarray(values)
    if column.shape != (n,):
        raise ValueError(f"{name} must have one entry for each of the {n} rows; got shape {column.shape}.")
    return column


def _numbers(part: Any, n: int) -> Array:
    """Row numbers from numbers or from a mask."""
    found = np.asarray(part)
    if found.size == 0:
        return np.zeros(0, dtype=np.intp)
    try:
        return np.asarray(np.arange(n)[found])
    except IndexError as error:
        raise ValueError(f"cv has a part that is no list of row numbers below {n}: {error}.") from error


def _dealt(k: int, y: Array, task: str, groups: Any, time: Any, repeats: int, rng: np.random.Generator) -> Division:
    check_real("cv", k, low=2, integer=True)
    units = y.shape[0] if groups is None else np.unique(groups).shape[0]
    if k > units:
        what = "rows" if groups is None else "groups"
        raise ValueError(f"cv={k} folds need as many {what}; there are {units}: use fewer folds, or cv='loo'.")
    if time is not None and repeats > 1:
        raise ValueError("repeats must be 1 with a time: there is one order of events only.")
    parts: list[Fold] = []
    for _ in range(repeats):
        seed = int(rng.integers(2**31))
        dealt = folds(y, k, task=task, groups=groups, time=time, seed=seed)
        parts += [Fold(train, test) for train, test in dealt if test.size]
    how = "stretches of time" if time is not None else "folds" if groups is None else "folds of whole groups"
    again = f", dealt {repeats} times" if repeats > 1 else ""
    return Division(parts, "folds", f"{len(parts) // repeats} {how}{again}")


def _named(name: str, n: int, groups: Any, time: Any, n_resamples: int, rng: np.random.Generator) -> Division:
    if name not in NAMES or name == "oob":  # out-of-bag parts are the model's own
        raise ValueError(f"cv must be a number of folds or one of {', '.join(map(repr, NAMES))}; got {name!r}.")
    if time is not None:
        raise ValueError(f"cv={name!r} ignores the order of time: give a number of folds.")
    unit = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    count = int(unit.max()) + 1
    if count < 2:
        raise ValueError(f"cv={name!r} needs at least 2 {'rows' if groups is None else 'groups'}; found {count}.")
    members = np.split(np.argsort(unit, kind="stable"), np.cumsum(np.bincount(unit))[:-1])
    what = "row" if groups is None else "group"
    if name == "loo":
        parts = [Fold(np.flatnonzero(unit != k), np.sort(rows)) for k, rows in enumerate(members)]
        return Division(parts, "loo", f"every {what} left out in turn")
    check_real("n_resamples", n_resamples, low=2, integer=True)
    parts = []
    while len(parts) < n_resamples:
        drawn = rng.integers(0, count, size=count)
        left = np.setdiff1d(np.arange(count), drawn)
        if left.size:  # a sample of everything judges nothing
            train, test = (np.concatenate([members[k] for k in chosen]) for chosen in (drawn, left))
            parts.append(Fold(np.sort(train), np.sort(test)))
    return Division(parts, name, f"{n_resamples} bootstrap samples of the {what}s")
