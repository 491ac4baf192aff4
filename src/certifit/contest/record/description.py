"""One column in plain JSON: how its values are distributed."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from certifit.contest.table.kinds import Column, labels

__all__ = ["describe_column"]

BINS = 20
TOP = 12


def describe_column(series: pl.Series, column: Column, whole: bool = True) -> dict[str, Any]:
    """Kind, role, why, missing and distinct, and if `whole` the distribution of the values."""
    info: dict[str, Any] = {
        "name": column.name,
        "kind": column.kind,
        "role": column.role,
        "why": column.why,
        "missing": series.null_count() if column.role in ("target", "feature") else column.missing,
        "distinct": column.distinct,
        "numbers": None,
        "histogram": None,
        "top": None,
        "other": None,
    }
    filled = series.drop_nulls() if whole else series.clear()
    if filled.is_empty():
        return info
    if series.dtype.is_temporal():
        info["histogram"] = _dates(filled)
    elif series.dtype.is_numeric() and column.kind == "numeric":
        values = filled.cast(pl.Float64).to_numpy()
        info["numbers"], info["histogram"] = _numbers(values), _histogram(values)
    elif column.kind != "id":
        counts = labels(filled).value_counts().rows()
        counts.sort(key=lambda pair: (-pair[1], pair[0]))
        info["top"] = [{"value": value[:80], "count": count} for value, count in counts[:TOP]]
        info["other"] = sum(count for _, count in counts[TOP:])
    return info


def _numbers(values: Any) -> dict[str, float]:
    """Summary numbers, computed at magnitude one: squares and sums of the largest numbers do not exist."""
    unit = float(np.abs(values).max()) or 1.0
    scaled = values / unit
    low, q1, median, q3, high = np.quantile(scaled, [0.0, 0.25, 0.5, 0.75, 1.0])
    # The keys in the order people read them; the extremes exactly as they are.
    found = {"min": low, "q1": q1, "median": median, "q3": q3, "max": high, "mean": scaled.mean(), "sd": scaled.std()}
    numbers = {name: float(value) * unit for name, value in found.items()}
    return {**numbers, "min": float(values.min()), "max": float(values.max())}


def _histogram(values: Any) -> dict[str, list[float] | list[int]]:
    """Equal bins; whole numbers with few values get one bar each."""
    low, high = float(values.min()), float(values.max())
    whole = (
        bool((values == np.round(values)).all()) and high - low < BINS and low - 0.5 < low
    )  # halves are numbers still
    if whole:
        edges = np.arange(low - 0.5, high + 1.0)
    elif low == high:
        edges = np.array([low, np.nextafter(low + 1.0, np.inf)])
    else:
        share = np.arange(BINS + 1) / BINS
        edges = low * (1 - share) + high * share
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, edges.shape[0] - 2)
    counts = np.bincount(place, minlength=edges.shape[0] - 1)
    return {"edges": [float(e) for e in edges], "counts": [int(c) for c in counts]}


def _dates(filled: pl.Series) -> dict[str, Any]:
    moments = filled.cast(pl.Datetime("us")).dt.epoch("us").to_numpy().astype(np.float64)
    found = (
        _histogram(moments) if moments.min() < moments.max() else {"edges": [moments[0]] * 2, "counts": [moments.size]}
    )
    edges = np.array(found["edges"]).astype("datetime64[us]")
    unit = "D" if edges[-1] - edges[0] > np.timedelta64(2 * BINS, "D") else "s"
    return {"edges": [str(e) for e in edges.astype(f"datetime64[{unit}]")], "counts": found["counts"]}
