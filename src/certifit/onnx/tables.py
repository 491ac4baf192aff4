"""From the inputs of the graph to a table of numbers, and transformers that change the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.onnx.errors import NotExportableError
from certifit.onnx.graph import Graph
from certifit.persistence.classes import known_name

__all__ = ["coded", "column_kinds", "encoded", "is_encoder", "read_columns", "transformed"]

ENCODER = "TableEncoder"


def is_encoder(step: Any) -> bool:
    """Whether a step takes columns of all kinds."""
    return known_name(type(step)) == ENCODER


def read_columns(graph: Graph, names: Sequence[str], text: Sequence[bool]) -> list[str]:
    """An input of shape (rows, 1) for each column."""
    return [graph.input(name, 1, text=is_text) for name, is_text in zip(names, text, strict=True)]


def coded(graph: Graph, column: str, labels: Sequence[str], unseen: float, missing: float) -> str:
    """Text as numbers 0, 1, 2, … of labels; an empty text is a missing value, unless it is one of the labels."""
    known = [*labels, *([] if "" in labels else [""])]
    n = len(labels)
    number = graph.add(
        "LabelEncoder",
        column,
        domain="ai.onnx.ml",
        keys_strings=known,
        values_int64s=list(range(len(known))),
        default_int64=n + 1,
    )
    values = graph.constant(np.array([*range(n), missing, unseen], dtype=np.float64), "codes")
    return graph.add("Gather", values, number, axis=0)


def column_kinds(encoder: Any, names: Sequence[str]) -> list[bool]:
    """Which columns of an encoder are text for ONNX; dates and words are refused."""
    for name, column in zip(names, encoder.columns_, strict=True):
        if column["kind"] not in ("numeric", "boolean", "category"):
            raise NotExportableError(
                f"column {name!r} is a column of kind {column['kind']!r}, which cannot be exported to ONNX: numbers, "
                "truth values and categories can. Drop it, or export the model behind the encoder."
            )
    return [column["kind"] != "numeric" for column in encoder.columns_]


def encoded(graph: Graph, columns: Sequence[str], encoder: Any) -> str:
    """What a `TableEncoder` makes of columns."""
    blocks: list[str] = []
    for name, column in zip(columns, encoder.columns_, strict=True):
        if column["kind"] == "category":
            blocks.append(_category(graph, name, column, encoder))
            continue
        if column["kind"] == "boolean":
            name = coded(graph, name, column["levels"], np.nan, np.nan)
        absent, (part,) = graph.add("IsNaN", name), column["parts"]
        if encoder.missing == "indicator":
            name = graph.add("Where", absent, graph.constant(float(part["fill"])), name)
        if encoder.numeric == "standard":
            centered = graph.add("Sub", name, graph.constant(float(part["mean"])))
            name = graph.add("Div", centered, graph.constant(float(part["scale"])))
        blocks.append(name)
        if column["missing"] and encoder.missing == "indicator":
            blocks.append(graph.cast(absent, "DOUBLE"))
    return graph.rounded(blocks[0] if len(blocks) == 1 else graph.add("Concat", *blocks, axis=1))


def _category(graph: Graph, name: str, column: dict[str, Any], encoder: Any) -> str:
    n, keep = len(column["levels"]), encoder.missing == "keep"
    lost = np.nan if keep else float(n + bool(column["other"]))
    code = coded(graph, name, column["levels"], float(n) if column["other"] else lost, lost)
    if encoder.categories == "ordinal":
        return code
    width = n + bool(column["other"]) + (column["missing"] and not keep)
    return graph.cast(graph.add("Equal", code, graph.constant(np.arange(float(width))[None, :])), "DOUBLE")


def transformed(graph: Graph, table: str, step: Any) -> str:
    """The table after a transformer."""
    apply = TRANSFORMERS.get(known_name(type(step)) or "")
    if apply is None:
        names = ", ".join(sorted({name.rpartition(".")[2] for name in (*TRANSFORMERS, ENCODER)}))
        raise NotExportableError(f"the step {type(step).__name__} cannot be exported to ONNX: {names} can.")
    check_is_fitted(step)
    return apply(graph, table, step)


def _row(values: Any) -> Any:
    return np.asarray(values, dtype=np.float64)


def _standard(graph: Graph, table: str, scaler: Any) -> str:
    if scaler.with_mean:
        table = graph.add("Sub", table, graph.constant(_row(scaler.mean_)))
    if scaler.with_std:
        table = graph.add("Div", table, graph.constant(_row(scaler.scale_)))
    return graph.rounded(table)


def _foreign_standard(graph: Graph, table: str, scaler: Any) -> str:
    """scikit-learn rounds after each of the two steps."""
    if scaler.with_mean:
        table = graph.rounded(graph.add("Sub", table, graph.constant(_row(scaler.mean_))))
    if scaler.with_std:
        table = graph.rounded(graph.add("Div", table, graph.constant(_row(scaler.scale_))))
    return table


def _min_max(graph: Graph, table: str, scaler: Any) -> str:
    low, high = scaler._interval()
    table = graph.add("Sub", table, graph.constant(_row(scaler.data_min_)))
    table = graph.add("Div", table, graph.constant(_row(scaler.data_range_)))
    if (low, high) != (0.0, 1.0):
        below = graph.add("Mul", graph.add("Sub", graph.constant(1.0), table), graph.constant(low))
        table = graph.add("Add", below, graph.add("Mul", table, graph.constant(high)))
    if scaler.clip:
        table = graph.add("Max", graph.add("Min", table, graph.constant(high)), graph.constant(low))
    return graph.rounded(table)


def _quantiles(graph: Graph, table: str, scaler: Any) -> str:
    """The level of the first knot, and what each piece adds: its slope times the part of it that lies below x."""
    most = max(len(knots) for knots in scaler.knots_)
    starts, lengths, slopes = (np.zeros((1, most, len(scaler.knots_))) for _ in range(3))
    for j, (knots, levels) in enumerate(zip(scaler.knots_, scaler.levels_, strict=True)):
        pieces = len(knots) - 1
        starts[0, :pieces, j], lengths[0, :pieces, j] = knots[:-1], np.diff(knots)
        slopes[0, :pieces, j] = np.diff(levels) / np.diff(knots)
    wide = graph.add("Unsqueeze", table, graph.constant(np.array([1])))
    above = graph.add("Max", graph.add("Sub", wide, graph.constant(starts, "knots")), graph.constant(0.0))
    inside = graph.add(
        "Mul", graph.add("Min", above, graph.constant(lengths, "lengths")), graph.constant(slopes, "slopes")
    )
    sums = graph.add("ReduceSum", inside, graph.constant(np.array([1])), keepdims=0)
    return graph.rounded(graph.add("Add", sums, graph.constant(_row([levels[0] for levels in scaler.levels_]))))


def _monomials(graph: Graph, table: str, step: Any) -> str:
    """Each monomial is its first factor times the product of the others; a column of ones stands for no factor."""
    powers = step.powers_
    degree, d = int(powers.sum(axis=1).max(initial=1)), powers.shape[1]
    factors = np.full((powers.shape[0], degree), d)
    for k, row in enumerate(powers):
        own = np.repeat(np.arange(d), row)
        factors[k, : own.shape[0]] = own
    wide = graph.add("Concat", table, graph.add("Add", graph.zeros(table), graph.constant(1.0)), axis=1)
    product = graph.add("Gather", wide, graph.constant(factors[:, -1]), axis=1)
    for k in range(degree - 2, -1, -1):
        factor = graph.add("Gather", wide, graph.constant(factors[:, k]), axis=1)
        product = graph.rounded(graph.add("Mul", product, factor))
    return product


def _imputer(graph: Graph, table: str, imputer: Any) -> str:
    if imputer.add_indicator or not (isinstance(imputer.missing_values, float) and np.isnan(imputer.missing_values)):
        raise NotExportableError("SimpleImputer can be exported for missing_values=NaN and add_indicator=False only.")
    values = _row(imputer.statistics_)
    filled = graph.add("Where", graph.add("IsNaN", table), graph.constant(values), table)
    kept = np.flatnonzero(~np.isnan(values))
    if kept.shape[0] < values.shape[0]:  # columns that were empty in training are dropped
        filled = graph.add("Gather", filled, graph.constant(kept), axis=1)
    return graph.rounded(filled)


TRANSFORMERS: dict[str, Callable[[Graph, str, Any], str]] = {
    "StandardScaler": _standard,
    "MinMaxScaler": _min_max,
    "QuantileScaler": _quantiles,
    "PolynomialFeatures": _monomials,
    "sklearn.preprocessing.StandardScaler": _foreign_standard,
    "sklearn.impute.SimpleImputer": _imputer,
}
"""Name of a class in files → the function that applies it to a table."""
