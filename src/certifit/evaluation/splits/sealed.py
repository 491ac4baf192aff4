"""Splits of the rows: the sealed test part, and the folds inside the training part.

Rows are drawn in proportion from every class (or from every tenth of a numeric target). Whole groups stay on one side,
and so do exact copies of a row; with a time the latest rows are sealed. The same seed gives the same split.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_choice, check_numbers, check_real
from certifit.names import record

__all__ = ["SealedSplit", "folds", "sealed_split"]

TASKS = ("binary", "multiclass", "regression")
STRATA = 10
ORDERS = 50
MOST_SEALED = 0.4  # of the rows, where few units leave no choice
MORE_UNITS = 4
FEW_UNITS = 50


@record("SealedSplit")
class SealedSplit:
    """Rows to learn from, and rows that nobody touches until the end.

    Attributes
    ----------
    train, test : array of int
        Row numbers, in increasing order.
    kind : str
        "stratified", "random", "group" or "time".
    text : str
        What was done, in a sentence.
    moved : int
        Rows that changed sides to stay with their exact copies.
    """

    train: Array
    test: Array
    kind: str
    text: str
    moved: int = 0


def sealed_split(
    y: Any, *, test_size: float = 0.2, task: str, groups: Any = None, time: Any = None, codes: Any = None, seed: int = 0
) -> SealedSplit:
    """Seal a part of the rows.

    Parameters
    ----------
    y : array of shape (n,)
        Labels, or numbers if `task` is "regression".
    test_size : float in (0, 1), default=0.2
        Share of the rows to seal.
    task : {"binary", "multiclass", "regression"}
        What y is.
    groups : array of shape (n,), default=None
        Rows of one group stay on one side.
    time : array of shape (n,), default=None
        The latest rows are sealed; rows of the same moment stay together, rows without a time go to training.
    codes : array of shape (n,), default=None
        Rows with equal codes are copies and stay on one side (only their equality matters).
    seed : int, default=0
        Same seed, same split.

    Examples
    --------
    >>> from certifit import sealed_split
    >>> split = sealed_split(["a", "b"] * 50, task="binary")
    >>> len(split.train), len(split.test)
    (80, 20)
    >>> split.text
    '20 % of the rows, drawn at random with every class in proportion, were sealed.'
    """
    check_real("test_size", test_size, low=0.0, high=1.0, open_low=True, open_high=True)
    y, strata = _checked(y, task, groups, time, codes)
    n = y.shape[0]
    if n < 2:
        raise ValueError(f"y has {n} row: a split needs at least 2.")
    share = f"{100 * test_size:.3g} % of the rows"
    moved = 0
    if time is not None:
        sealed = _latest(np.asarray(time), test_size)
        kind, text = "time", f"The latest {share} were sealed: the models are judged on what came after."
    elif groups is not None:
        unit = _numbered(groups)
        sealed = _whole_units(unit, strata, test_size, seed, "groups")
        count = np.unique(unit[sealed]).shape[0]
        kind = "group"
        text = f"{count} of {unit.max() + 1} groups, about {share}, were sealed: no group is on both sides."
    else:
        sealed = _drawn(strata, test_size, np.random.default_rng(seed), keep_single=task != "regression")
        if codes is not None:
            sealed, moved = _copies_together(sealed, np.asarray(codes), strata, test_size, seed)
        kind = "stratified" if strata.max() > 0 else "random"
        each = "every class" if task != "regression" else "low and high values"
        text = f"{share}, drawn at random with {each} in proportion, were sealed."
        if kind == "random":
            text = f"{share}, drawn at random, were sealed."
        if moved:
            text += f" {moved} row{'s' if moved > 1 else ''} changed sides to stay with exact copies."
    return SealedSplit(np.flatnonzero(~sealed), np.flatnonzero(sealed), kind, text, moved)


def folds(
    y: Any, k: int = 5, *, task: str, groups: Any = None, time: Any = None, codes: Any = None, seed: int = 0
) -> list[tuple[Array, Array]]:
    """Folds for cross-validation inside the training part.

    Parameters
    ----------
    y : array of shape (n,)
        Labels, or numbers if `task` is "regression".
    k : int, default=5
        Number of folds; fewer where there are fewer groups or rows.
    task, groups, time, codes, seed
        As in `sealed_split`. With a time, each fold is judged on the stretch that follows what it learned from.

    Returns
    -------
    list of (train, validation)
        Row numbers. Without a time every row is in one validation part, except rows that are alone in their class:
        these are always trained on.

    Examples
    --------
    >>> from certifit.evaluation.splits.sealed import folds
    >>> [len(validation) for train, validation in folds(range(10), k=3, task="regression")]
    [4, 3, 3]
    """
    check_real("k", k, low=2, integer=True)
    y, strata = _checked(y, task, groups, time, codes)
    n = y.shape[0]
    if n < 2:
        raise ValueError(f"y has {n} row: cross-validation needs at least 2.")
    if time is not None:
        return _forward(np.asarray(time), k)
    rng = np.random.default_rng(seed)
    unit = (
        _numbered(groups if groups is not None else codes) if groups is not None or codes is not None else np.arange(n)
    )
    if unit.max() < 1:
        what = "group" if groups is not None else "distinct row"
        raise ValueError(f"cross-validation needs at least 2 {what}s; found 1: leave out `groups` or give more rows.")
    k = min(k, int(unit.max()) + 1)
    fold = _dealt_units(unit, strata, k, rng) if groups is not None else _dealt(unit, strata, k, rng)
    if task != "regression":
        fold[np.bincount(strata)[strata] == 1] = -1
    pairs = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(k)]
    return [(train, validation) for train, validation in pairs if train.size and validation.size]


# Checks


def _checked(y: Any, task: str, groups: Any, time: Any, codes: Any) -> tuple[Array, Array]:
    """The target, and the stratum of each row."""
    check_choice("task", task, TASKS)
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must be one-dimensional; got shape {y.shape}.")
    for name, given in (("groups", groups), ("time", time), ("codes", codes)):
        if given is not None and np.shape(given) != y.shape:
            raise ValueError(
                f"{name} must have one entry for each of the {y.shape[0]} rows; got shape {np.shape(given)}."
            )
    if groups is not None and time is not None:
        raise ValueError("groups and time were both given: choose one of them to split by.")
    if task != "regression":
        return y, _ranks(y)
    y = check_numbers("y", y)
    if np.isnan(y).any():
        raise ValueError("y contains NaN: drop the rows whose target is missing.")
    cuts = np.quantile(y, np.linspace(0, 1, min(STRATA, max(1, y.shape[0] // 10)) + 1)[1:-1]) if y.size else []
    return y, _ranks(np.searchsorted(cuts, y, side="left"))


def _ranks(labels: Array) -> Array:
    """Labels as 0, 1, 2, … in sorted order (numpy.unique would need several times the memory)."""
    return np.searchsorted(np.unique(labels), labels).astype(np.int32)


def _numbered(labels: Any) -> Array:
    """Labels as 0, 1, 2, … in the order of first appearance, so that only their equality matters."""
    return _ranks(_first_of_its_kind(np.asarray(labels)))


def _first_of_its_kind(labels: Array) -> Array:
    """Number of the first row that has the same label; most rows are alone, and they cost next to nothing."""
    n = labels.shape[0]
    first = np.arange(n)
    ordered = np.sort(labels)
    shared = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if shared.shape[0] == 0:
        return first
    place = np.minimum(np.searchsorted(shared, labels), shared.shape[0] - 1)
    rows = np.flatnonzero(shared[place] == labels)
    earliest = np.full(shared.shape[0], n)
    np.minimum.at(earliest, place[rows], rows)
    first[rows] = earliest[place[rows]]
    return first


# The sealed part


def _drawn(strata: Array, share: float, rng: Any, keep_single: bool) -> Array:
    """A draw from each stratum; the counts add up to the wanted number (largest remainders)."""
    n, counts = strata.shape[0], np.bincount(strata)
    wanted = min(max(round(share * n), 1), n - 1)
    exact = counts * (wanted / n)
    take = np.floor(exact).astype(np.int64)
    limit = np.where(counts == 1, 0, counts - 1) if keep_single else counts
    order = np.lexsort((np.arange(counts.shape[0]), take - exact))
    for stratum in order:
        if take.sum() >= wanted:
            break
        take[stratum] += take[stratum] < limit[stratum]
    sealed = np.zeros(n, dtype=bool)
    for stratum, count in enumerate(take):
        rows = np.flatnonzero(strata == stratum)
        sealed[rng.permutation(rows)[:count]] = True
    if not sealed.any():  # every class has a single row
        sealed[rng.integers(n)] = True
    return sealed


def _copies_together(sealed: Array, codes: Array, strata: Array, share: float, seed: int) -> tuple[Array, int]:
    """Every copy follows the first one, unless that leaves a lopsided split: then whole units are drawn."""
    first = _first_of_its_kind(codes)
    together = sealed[first]
    if not 0.7 * share <= together.mean() <= 1.3 * share and first.any():
        together = _whole_units(_ranks(first), strata, share, seed, "distinct rows")
    if not together.any() or together.all():
        return sealed, 0
    return together, int((together != sealed).sum())


def _whole_units(unit: Array, strata: Array, share: float, seed: int, what: str) -> Array:
    """Units in random order until the share is reached; of many orders, the one closest in size and in proportions.

    One unit, or units without one of the classes, judge badly: more of them are taken, up to MOST_SEALED of the rows, where
    that brings a second unit or a class that the other side has too.
    """
    sizes = np.bincount(unit)
    n, k = unit.shape[0], sizes.shape[0]
    if k < 2:
        raise ValueError(f"a split by {what} needs at least 2 of them; found {k}: leave out `groups`.")
    table = np.zeros((k, strata.max() + 1))
    np.add.at(table, (unit, strata), 1.0)
    whole = table.sum(axis=0)
    goal = whole * share
    rng = np.random.default_rng(seed)
    best, chosen = np.inf, np.zeros(k, dtype=bool)
    for _ in range(ORDERS):
        order = rng.permutation(k)
        size = np.cumsum(sizes[order])
        count = int(np.clip(np.argmin(np.abs(size - share * n)) + 1, 1, k - 1))
        most = max(count, min(k - 1, int(np.searchsorted(size, max(MOST_SEALED, share) * n, side="right"))))
        for number in {count, *range(count + 1, min(most, count + MORE_UNITS) + 1)}:
            taken = table[order[:number]].sum(axis=0)
            distance = np.abs(taken - goal).sum() + abs(taken.sum() - share * n)
            if k <= FEW_UNITS:
                absent = (taken == 0).sum() + (taken == whole).sum()
                distance += n * (2.0 * absent / whole.shape[0] + (number == 1 and k > 3))
            if distance < best:
                best, chosen = distance, np.zeros(k, dtype=bool)
                chosen[order[:number]] = True
    return np.asarray(chosen[unit])


def _latest(time: Array, share: float) -> Array:
    order = _moments(time)
    n = order.shape[0]
    ranked = np.sort(order)
    cut = ranked[min(max(n - max(round(share * n), 1), 1), n - 1)]
    sealed = order >= cut
    if sealed.all():  # the earliest moment reaches into the sealed share
        sealed = order > cut
    if not sealed.any():
        raise ValueError("time has one value only: a split by time needs at least two moments.")
    return np.asarray(sealed)


def _moments(time: Array) -> Array:
    """Rank of each moment; rows without a time come first."""
    missing = np.isnat(time) if time.dtype.kind in "mM" else np.isnan(time) if time.dtype.kind == "f" else None
    rank = _ranks(time) + 1
    return rank if missing is None else np.where(missing, 0, rank)


# Folds


def _dealt(unit: Array, strata: Array, k: int, rng: Any) -> Array:
    """Units dealt in turn, stratum by stratum; copies follow the first of them."""
    first = np.unique(unit, return_index=True)[1]
    shuffled = rng.permutation(first.shape[0])
    order = shuffled[np.argsort(strata[first[shuffled]], kind="stable")]
    fold = np.empty(first.shape[0], dtype=np.int64)
    fold[order] = np.arange(first.shape[0]) % k
    return np.asarray(fold[unit])


def _dealt_units(unit: Array, strata: Array, k: int, rng: Any) -> Array:
    """Large groups first, each to the fold that it brings closest to the proportions of the whole."""
    sizes = np.bincount(unit)
    table = np.zeros((sizes.shape[0], strata.max() + 1))
    np.add.at(table, (unit, strata), 1.0)
    total = table.sum(axis=0)
    filled, fold = np.zeros((k, table.shape[1])), np.empty(sizes.shape[0], dtype=np.int64)
    shuffled = rng.permutation(sizes.shape[0])
    order = shuffled[np.argsort(-sizes[shuffled], kind="stable")]
    for place, group in enumerate(order):
        if place < k:
            best = place  # no fold stays empty
        else:
            after = (filled + table[group]) / total
            # Squares of the shares: adding to the emptiest fold costs least.
            best = int(np.argmin((after * after - (filled / total) ** 2).sum(axis=1)))
        filled[best] += table[group]
        fold[group] = best
    return np.asarray(fold[unit])


def _forward(time: Array, k: int) -> list[tuple[Array, Array]]:
    """k stretches of time after a first one: learn from all that came before, judge on the stretch."""
    rank = _moments(time)
    cuts = np.unique(np.sort(rank)[np.linspace(0, rank.shape[0], k + 2).astype(np.int64)[1:-1]])
    cuts = cuts[cuts > rank.min()]
    if cuts.size == 0:
        raise ValueError("time has one value only: folds by time need at least two moments.")
    ends = np.append(cuts[1:], rank.max() + 1)
    return [
        (np.flatnonzero(rank < start), np.flatnonzero((rank >= start) & (rank < end)))
        for start, end in zip(cuts, ends, strict=True)
    ]
