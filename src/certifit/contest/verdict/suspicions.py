"""What looks wrong in a table, said before anyone trusts a score.

A column that predicts the target almost by itself is more often a leak than a discovery; missing values, copies, rare
classes and a drift in time each spoil a judgment in their own way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from certifit._types import Array
from certifit.contest.table.table import Table
from certifit.evaluation.splits.sealed import SealedSplit

__all__ = ["suspicions"]

SAMPLE = 5_000
NEARLY_PERFECT = 0.99
MUCH_MISSING = 0.3
TELLING = 0.1
RARE = 0.05
FEW_ROWS = 200
DRIFT = 0.3
LISTED = 5
BINS = 50


def suspicions(table: Table, split: SealedSplit) -> list[dict[str, Any]]:
    """Warnings about a table and its split.

    Parameters
    ----------
    table : Table
        The table.
    split : SealedSplit
        Its sealed part; only the training part is looked at, except to compare the two.

    Returns
    -------
    list of dict
        ``{"kind", "column", "text"}``; kinds are "leakage", "duplicates", "missing", "imbalance", "small", "dropped"
        and "other".

    Examples
    --------
    >>> import numpy as np, polars as pl
    >>> from certifit.contest.table.table import Table
    >>> from certifit.evaluation.splits.sealed import sealed_split
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> frame = pl.DataFrame({"x": rng.normal(size=500), "refund": 100.0 * y, "y": y})
    >>> table = Table.from_source(frame, "y")
    >>> for warning in suspicions(table, sealed_split(table.y, task="binary")):
    ...     print(warning["kind"], warning["column"])
    leakage refund
    """
    found = [*_leaks(table, split), *_copies(table, split), *_missing(table, split), *_imbalance(table, split)]
    return [*found, *_small(table, split), *_dropped(table), *_drift(table, split)]


def _warning(kind: str, column: str | None, text: str) -> dict[str, Any]:
    return {"kind": kind, "column": column, "text": text}


# Leaks


def _leaks(table: Table, split: SealedSplit) -> list[dict[str, Any]]:
    """Columns that alone predict the target almost perfectly, judged on a sample of the training rows."""
    rows = _sample(split.train)
    y = _target(table, rows)
    if y.shape[0] < 20 or np.unique(y).shape[0] < 2:
        return []
    found = []
    part = table.features[rows]
    for name, kind in table.kinds.items():
        values = part.get_column(name)
        score, what = _alone(values, kind, y, table.task.kind)
        if score > NEARLY_PERFECT:
            text = (
                f"'{name}' alone predicts the target almost perfectly ({what} {_under_one(score)}). If it is not known at "
                "the time of prediction, it is a leak: leave it out (drop)."
            )
            found.append(_warning("leakage", name, text))
    return found


def _alone(values: pl.Series, kind: str, y: Array, task: str) -> tuple[float, str]:
    """How well one column predicts the target: AUC, accuracy above chance, or R²."""
    if kind == "text":
        return 0.0, ""
    if kind in ("numeric", "date"):
        numbers = (values.dt.epoch("us") if values.dtype.is_temporal() else values).cast(pl.Float64).to_numpy()
        numbers = _ranks(np.where(np.isnan(numbers), -np.inf, numbers))
        cells = ((numbers - 1) * BINS / numbers.shape[0]).astype(np.int64)  # equal counts; equal values share a cell
    else:
        cells, numbers = values.fill_null("").rank("dense").cast(pl.Int64).to_numpy() - 1, None
    guess = _cross_fitted(cells, y, task)
    if task == "regression":
        ranks = 0.0 if numbers is None else _correlation(numbers, _ranks(y)) ** 2
        return max(ranks, _r2(guess, y)), "R²"
    if task == "binary":
        area = 0.5 if numbers is None else _auc(numbers, y)
        return max(area, 1 - area, _auc(_ranks(guess), y)), "AUC"
    chance = np.bincount(y.astype(np.int64)).max() / y.shape[0]
    right = float((guess == y).mean())
    return (right if right - chance > 0.5 * (1 - chance) else 0.0), "accuracy"


def _ranks(values: Array) -> Array:
    """Ranks from 1, equal values sharing their mean rank."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    new = np.append(True, ordered[1:] != ordered[:-1])
    ends = np.append(np.flatnonzero(new), values.shape[0])
    ranks = np.empty(values.shape[0])
    ranks[order] = (0.5 * (ends[:-1] + ends[1:] + 1))[np.cumsum(new) - 1]
    return ranks


def _cross_fitted(cells: Array, y: Array, task: str) -> Array:
    """Each half of the rows guessed from the other by the mean, or the majority, of the cell."""
    half = np.arange(y.shape[0]) % 2 == 0
    guess = np.empty(y.shape[0])
    for learn in (half, ~half):
        if task == "multiclass":
            counts = np.zeros((cells.max() + 1, int(y.max()) + 1))
            np.add.at(counts, (cells[learn], y[learn].astype(np.int64)), 1.0)
            counts += np.bincount(y[learn].astype(np.int64), minlength=counts.shape[1]) * 1e-9
            guess[~learn] = counts.argmax(axis=1)[cells[~learn]]
            continue
        total = np.bincount(cells[learn], weights=y[learn], minlength=cells.max() + 1)
        count = np.bincount(cells[learn], minlength=cells.max() + 1)
        mean = np.where(count > 0, total / np.maximum(count, 1), y[learn].mean())
        guess[~learn] = mean[cells[~learn]]
    return guess


def _auc(ranks: Array, y: Array) -> float:
    positive = y == 1
    a, b = int(positive.sum()), int((~positive).sum())
    if not a or not b:
        return 0.5
    return float((ranks[positive].sum() - a * (a + 1) / 2) / (a * b))


def _r2(guess: Array, y: Array) -> float:
    spread = float(((y - y.mean()) ** 2).sum())
    return 1.0 - float(((y - guess) ** 2).sum()) / spread if spread > 0 else 0.0


def _correlation(a: Array, b: Array) -> float:
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else 0.0


def _under_one(score: float) -> str:
    return "1" if score == 1.0 else f"{min(score, 0.9999):.4f}"


# Copies, missing values, classes, size


def _copies(table: Table, split: SealedSplit) -> list[dict[str, Any]]:
    across = int(np.isin(table.codes[split.test], table.codes[split.train]).sum())
    found = []
    if table.duplicates:
        share = 100 * table.duplicates / len(table)
        text = f"{table.duplicates} rows ({share:.1f} %) are exact copies of another row"
        text += "; copies were kept on one side of the split." if not across else "."
        found.append(_warning("duplicates", None, text))
    if across:
        text = f"{across} sealed rows are exact copies of training rows: on these the score flatters."
        found.append(_warning("duplicates", None, text))
    return found


def _missing(table: Table, split: SealedSplit) -> list[dict[str, Any]]:
    found, much = [], []
    train = table.features[_sample(split.train)]
    y = _target(table, _sample(split.train))
    for name, nulls in zip(train.columns, train.null_count().row(0), strict=True):
        if nulls > MUCH_MISSING * train.height:
            much.append((name, 100 * nulls / train.height))
        if not 0.01 * train.height < nulls < 0.99 * train.height or train.height < 50:
            continue
        absent = train.get_column(name).is_null().to_numpy().astype(np.float64)
        if _association(absent, y, table.task.kind) > TELLING:
            text = f"Whether '{name}' is missing tells much about the target: make sure it is also missing when you predict."
            found.append(_warning("missing", name, text))
    if much:
        some = ", ".join(f"'{name}' ({share:.0f} %)" for name, share in much[:LISTED])
        more = f" and {len(much) - LISTED} more" if len(much) > LISTED else ""
        found.append(_warning("missing", much[0][0], f"Many values are missing: {some}{more}."))
    return found


def _association(absent: Array, y: Array, task: str) -> float:
    """Squared correlation; for classes the largest over the classes."""
    targets = [y] if task == "regression" else [(y == c).astype(np.float64) for c in np.unique(y)]
    return max(_correlation(absent, t) ** 2 for t in targets)


def _imbalance(table: Table, split: SealedSplit) -> list[dict[str, Any]]:
    if table.task.classes is None:
        return []
    labels, counts = np.unique(table.y[split.train], return_counts=True)
    share = counts / counts.sum()
    rare = int(np.argmin(share))
    expected = RARE if len(labels) == 2 else RARE / 2
    if share[rare] >= expected:
        return []
    text = (
        f"The class '{labels[rare]}' is rare: {counts[rare]} of {counts.sum()} training rows ({100 * share[rare]:.2g} %). "
        "Accuracy says little here; look at the probabilities and the costs."
    )
    return [_warning("imbalance", table.target, text)]


def _small(table: Table, split: SealedSplit) -> list[dict[str, Any]]:
    train, width = split.train.shape[0], table.features.width
    found = []
    if train < FEW_ROWS:
        text = f"Only {train} training rows and {split.test.shape[0]} sealed ones: expect wide intervals."
        found.append(_warning("small", None, text))
    if width > train:
        text = f"There are more columns ({width}) than training rows ({train}): some will fit by chance."
        found.append(_warning("small", None, text))
    return found


def _dropped(table: Table) -> list[dict[str, Any]]:
    words = {"id": "an identifier", "constant": "constant", "empty": "empty"}
    found = []
    for kind, word in words.items():
        names = [c.name for c in table.columns if c.role == "dropped" and c.kind == kind]
        if names:
            some = ", ".join(f"'{name}'" for name in names[:LISTED])
            more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
            text = f"Left out as {word if len(names) == 1 else word.replace('an identifier', 'identifiers')}: {some}{more}."
            found.append(_warning("dropped", names[0], text))
    return found


# Drift


def _drift(table: Table, split: SealedSplit) -> list[dict[str, Any]]:
    """With a split by time: features whose distribution has moved, by the distance of Kolmogorov and Smirnov."""
    if split.kind != "time":
        return []
    before, after = table.features[_sample(split.train)], table.features[_sample(split.test)]
    if min(before.height, after.height) < 30:
        return []
    moved = []
    for name, kind in table.kinds.items():
        if kind == "text" or kind == "date":
            continue
        distance = _distance(before.get_column(name), after.get_column(name), kind)
        if distance > DRIFT:
            moved.append((distance, name))
    moved.sort(reverse=True)
    return [
        _warning(
            "other", name, f"'{name}' has drifted: its values in the sealed, later part differ from the earlier ones."
        )
        for _, name in moved[:LISTED]
    ]


def _distance(a: pl.Series, b: pl.Series, kind: str) -> float:
    a, b = a.drop_nulls(), b.drop_nulls()
    if not a.len() or not b.len():
        return 0.0
    if kind == "numeric":
        x, z = np.sort(a.to_numpy()), np.sort(b.to_numpy())
        grid = np.concatenate([x, z])
        steps = np.searchsorted(x, grid, side="right") / x.size - np.searchsorted(z, grid, side="right") / z.size
        return float(np.abs(steps).max())
    shares = [{v: c / s.len() for v, c in s.value_counts().iter_rows()} for s in (a, b)]
    return 0.5 * sum(abs(shares[0].get(v, 0.0) - shares[1].get(v, 0.0)) for v in shares[0].keys() | shares[1].keys())


def _sample(rows: Array) -> Array:
    """At most SAMPLE rows, drawn always alike."""
    if rows.shape[0] <= SAMPLE:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, SAMPLE, replace=False))


def _target(table: Table, rows: Array) -> Array:
    """The target as numbers: itself, 1 for the positive class, or the number of the class."""
    y = table.y[rows]
    if table.task.kind == "binary":
        return (y == table.task.positive).astype(np.float64)
    return np.unique(y, return_inverse=True)[1].reshape(-1) if table.task.kind == "multiclass" else y
