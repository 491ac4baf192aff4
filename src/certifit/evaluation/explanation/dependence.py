"""Partial dependence: the mean prediction as one feature is set to each value of a grid, all else as it is."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.axes import picture
from certifit.data.gate import check_choice, check_real, check_sample_weight
from certifit.data.tabular import TableRows
from certifit.evaluation.metrics.inputs import check_vector
from certifit.evaluation.metrics.predictions import predictor
from certifit.evaluation.risk.resamples import generator
from certifit.names import record

__all__ = ["Dependence", "partial_dependence"]

LEVELS = 12
TAIL = 0.01  # the grid leaves out this share at either end: one far value would stretch the picture
BAND = (0.1, 0.9)


@record("Dependence")
class Dependence:
    """How predictions move with one feature.

    Parameters
    ----------
    feature : str or int
    kind : {"numeric", "category", "date"}
    grid : tuple
        Values of the feature.
    mean : tuple of float
        Mean prediction with the feature set to each value.
    low, high : tuple of float
        Between them lie 80 % of the rows' own predictions.
    lines : tuple of tuple of float
        The predictions of single rows, as many as were asked for.
    """

    feature: Any
    kind: str
    grid: tuple[Any, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    lines: tuple[tuple[float, ...], ...] = ()

    def plot(self, ax: Any = None) -> Any:
        """`certifit.plots.plot_dependence` of it."""
        return picture("plot_dependence")(self, ax)

    def as_dict(self) -> dict[str, Any]:
        """Plain lists for reports and JSON: dates in ISO form, levels as text."""
        return {
            "feature": self.feature,
            "kind": self.kind,
            "grid": [_plain(value) for value in self.grid],
            "mean": list(self.mean),
            "low": list(self.low),
            "high": list(self.high),
        }


def partial_dependence(
    predict: Any,
    X: Any,
    feature: Any,
    *,
    grid: int | Sequence[Any] = 20,
    max_rows: int | None = 500,
    kind: str = "auto",
    sample_weight: Any = None,
    random_state: Any = 0,
    lines: int = 0,
) -> Dependence:
    """Mean prediction, and where 80 % of the rows' own predictions lie, as a feature moves.

    Parameters
    ----------
    predict : fitted estimator, or a function of X
        A function must return one value for each row. A classifier of two classes is asked for the probability of the
        second.
    X : array, sparse matrix or data frame
        TableRows to average over.
    feature : str or int
        Name of the column in a frame, number in an array.
    grid : int or sequence, default=20
        Most points (quantiles of what occurs; the most frequent levels, at most 12, of a category), or the values
        themselves.
    max_rows : int, optional
        Use at most so many rows, drawn at random.
    kind : {"auto", "numeric", "category", "date"}, default="auto"
        How the grid is chosen; read from the column by default.
    sample_weight : array of shape (n,), optional
        How often each row counts.
    random_state : int, default=0
        Seed of the drawn rows.
    lines : int, default=0
        Of how many rows to keep the curves of their own (individual conditional expectations).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import partial_dependence
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> found = partial_dependence(lambda X: 2 * X[:, 0], X, 0, grid=[0, 1, 2])
    >>> found.kind, found.mean
    ('numeric', (0.0, 2.0, 4.0))
    """
    check_choice("kind", kind, ("auto", "numeric", "category", "date"))
    table = TableRows(X)
    name = table.check_name(feature)
    kind = table.kind(name) if kind == "auto" else kind
    weight = check_sample_weight(sample_weight, table.n)
    rows = np.flatnonzero(weight > 0)
    present = np.intersect1d(table.present(name), rows)
    if max_rows is not None:
        check_real("max_rows", max_rows, low=1, integer=True)
        if rows.shape[0] > max_rows:
            rows = np.sort(generator(random_state).choice(rows, size=max_rows, replace=False))
    n = rows.shape[0]
    if isinstance(grid, (int, np.integer)) and not isinstance(grid, bool):
        check_real("grid", grid, low=1, integer=True)
        if present.shape[0] == 0:
            raise ValueError(f"Column {name!r} has no value to build a grid from: pass grid=[…] with the values.")
        source = _source(table, name, kind, present, weight, int(grid))
        values = table.plain(name, source)
        stacked = table.mixed(np.tile(rows, len(values)), name, np.repeat(source, n))
    else:
        values = list(grid)  # type: ignore[arg-type]
        if not values:
            raise ValueError("grid must not be empty.")
        stacked = table.with_values(np.tile(rows, len(values)), name, np.repeat(np.asarray(values), n))
    prediction = _values(predict, stacked, n * len(values)).reshape(len(values), n)
    share = weight[rows]
    bands = [_quantiles(line, share) for line in prediction]
    mean = prediction @ share / share.sum()
    return Dependence(
        name,
        kind,
        tuple(values),
        tuple(mean.tolist()),
        tuple(band[0] for band in bands),
        tuple(band[1] for band in bands),
        tuple(tuple(line) for line in prediction[:, _spread_over(n, lines)].T.tolist()),
    )


def _spread_over(n: int, count: int) -> Array:
    """Numbers of so many of n rows, evenly."""
    check_real("lines", count, low=0, integer=True)
    return np.unique(np.linspace(0, n - 1, min(int(count), n)).astype(np.intp))


def _source(table: TableRows, name: Any, kind: str, present: Array, weight: Array, points: int) -> Array:
    """TableRows that hold the values of the grid."""
    column = table.column(name)[present]
    if kind == "category":
        # Levels of a category need no order: equality of what is printed is enough to count them.
        text = np.array([str(value) for value in column.tolist()])
        _, first, which = np.unique(text, return_index=True, return_inverse=True)
        frequency = np.bincount(which, weights=weight[present])
        return present[first[np.argsort(-frequency, kind="stable")[: min(points, LEVELS)]]]
    numbers = column.astype("datetime64[ns]").astype(np.int64) if kind == "date" else column.astype(np.float64)
    order = np.argsort(numbers, kind="stable")
    total = np.cumsum(weight[present][order])
    share = np.linspace(TAIL, 1.0 - TAIL, points) if points > 1 else np.array([0.5])
    if np.unique(numbers).shape[0] <= points:
        return present[np.unique(numbers, return_index=True)[1]]
    at = np.minimum(np.searchsorted(total, share * total[-1]), order.shape[0] - 1)
    picked = order[at]
    return present[picked[np.unique(numbers[picked], return_index=True)[1]]]


def _values(predict: Any, stacked: Any, n: int) -> Array:
    needs = "probability" if hasattr(predict, "predict_proba") else "value"
    found = predictor(predict, needs)(stacked)
    if found.ndim == 2 and found.shape[1] == 2:
        found = found[:, 1]
    if found.ndim != 1 or found.shape[0] != n:
        raise ValueError(
            f"predict must return one value for each row; for {n} rows it returned shape {found.shape}. For several "
            "classes pass a function such as lambda X: model.predict_proba(X)[:, 2]."
        )
    return check_vector("the predictions", found).astype(np.float64)


def _quantiles(values: Array, weight: Array) -> tuple[float, float]:
    """The ends of the band: the least value with at least that share of the weight at or below it."""
    order = np.argsort(values)
    total = np.cumsum(weight[order])
    low, high = np.minimum(np.searchsorted(total, np.array(BAND) * total[-1] * (1.0 - 1e-12)), order.shape[0] - 1)
    return float(values[order[low]]), float(values[order[high]])


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime.date, datetime.datetime, datetime.time)):
        return value.isoformat()
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (int, float, str)) and not isinstance(value, bool) else str(value)
