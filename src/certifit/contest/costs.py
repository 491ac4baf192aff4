"""What mistakes cost, as users give it: ``fp=1,fn=5`` for two classes, a table of truth by answer for any number of them.

The table is a CSV or JSON file, or JSON itself::

    truth,cat,dog,cow          {"cat": {"dog": 1, "cow": 4},        [[0, 1, 4],
    cat,0,1,4                   "dog": {"cat": 1, "cow": 4},         [1, 0, 4],
    dog,1,0,4                   "cow": {"cat": 9, "dog": 9}}         [9, 9, 0]]
    cow,9,9,0

Rows are what is true, columns what is said. A right answer that is left out costs nothing; a matrix without names is in the
order of the classes.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from certifit.data.gate import check_numbers
from certifit.evaluation.decisions.costs import CostMatrix
from certifit.evaluation.decisions.thresholds import Costs, parse_costs

__all__ = ["as_plain", "costs_of"]

LARGEST_FILE = 1_000_000  # bytes
HOW = 'Give fp=1,fn=5 for two classes; for any number, a CSV or JSON file, or JSON such as {"a": {"b": 5}, "b": {"a": 1}}.'


def costs_of(given: Any, classes: Sequence[str]) -> Costs | CostMatrix | None:
    """The costs of a contest with these classes: `Costs` for two, a `CostMatrix` for more."""
    if given is None:
        return None
    if not classes:
        raise ValueError("cost is for classes, for two classes or more, and the target is a number: leave it out.")
    if isinstance(given, (str, Path)):
        given = _read(given)
    if isinstance(given, Mapping) and not any(isinstance(value, Mapping) for value in given.values()):
        given = parse_costs(",".join(f"{name}={value}" for name, value in given.items()))
    if isinstance(given, Costs):
        if len(classes) != 2:
            raise ValueError(
                f"fp and fn are for two classes, and there are {len(classes)}: {', '.join(classes)}. {HOW}"
            )
        return given
    matrix = _matrix(given, list(classes))
    if len(classes) == 2:
        (tn, fp), (fn, tp) = matrix.tolist()
        return Costs(fp=fp, fn=fn, tp=tp, tn=tn)
    costs = CostMatrix(matrix, classes=list(classes))
    if not (matrix > np.diagonal(matrix)[:, None]).any():
        raise ValueError(f"cost: no mistake costs more than the right answer, so every answer is as good. {HOW}")
    return costs


def as_plain(costs: Costs | CostMatrix | None) -> dict[str, Any] | None:
    """The costs as the record holds them, in a form that `costs_of` takes."""
    if isinstance(costs, CostMatrix):
        names = [str(label) for label in costs.classes]
        return {k: dict(zip(names, row, strict=True)) for k, row in zip(names, costs.matrix.tolist(), strict=True)}
    if costs is None:
        return None
    return {name: value for name, value in costs.as_dict().items() if value != 0.0 or name in ("fp", "fn")}


def _read(given: str | Path) -> Any:
    text = str(given).strip()
    if isinstance(given, str) and text.startswith(("{", "[")):
        return _json(text, "cost")
    kind = Path(text).suffix.lower()
    if kind not in (".csv", ".json"):
        return parse_costs(text)
    path = Path(text)
    if not path.is_file():
        raise ValueError(f"cost: there is no file {text!r}. {HOW}")
    if path.stat().st_size > LARGEST_FILE:
        raise ValueError(f"cost: {text} has more than {LARGEST_FILE:,} bytes: is it a table of costs?")
    try:
        content = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"cost: {text} is not text in UTF-8.") from None
    return _json(content, text) if kind == ".json" else _csv(content, text)


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{where} is no JSON ({error}). {HOW}") from None


def _csv(text: str, where: str) -> dict[str, dict[str, str]]:
    rows = [row for row in csv.reader(text.splitlines()) if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise ValueError(f"cost: {where} has no rows below its first line. {HOW}")
    said = [cell.strip() for cell in rows[0][1:]]
    found: dict[str, dict[str, str]] = {}
    for row in rows[1:]:
        truth, *cells = (cell.strip() for cell in row)
        if len(cells) != len(said):
            raise ValueError(
                f"cost: the row {truth!r} of {where} has {len(cells)} costs, its first line {len(said)} names."
            )
        if truth in found:
            raise ValueError(f"cost: {where} has the row {truth!r} twice.")
        found[truth] = {name: cell for name, cell in zip(said, cells, strict=True) if cell}
    return found


def _matrix(given: Any, classes: list[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
    K = len(classes)
    if isinstance(given, Mapping):
        return _named(given, classes)
    if isinstance(given, CostMatrix):
        matrix = given.matrix
    else:
        matrix = check_numbers("the cost matrix", given)
        CostMatrix(matrix, classes=classes if matrix.shape[:1] == (K,) else None)  # refuses what are no costs
    if matrix.shape != (K, K):
        raise ValueError(
            f"cost must have {K} rows and {K} columns, in the order {', '.join(classes)}; got shape {matrix.shape}. {HOW}"
        )
    if isinstance(given, CostMatrix) and given.classes.dtype.kind in "OU" and list(map(str, given.classes)) != classes:
        raise ValueError(
            f"cost is for the classes {given.classes.tolist()!r}; the table has {classes!r}, in this order."
        )
    return matrix


def _named(given: Mapping[str, Any], classes: list[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
    number = {label: k for k, label in enumerate(classes)}
    matrix = np.full((len(classes), len(classes)), np.nan)
    np.fill_diagonal(matrix, 0.0)
    for truth, row in given.items():
        if not isinstance(row, Mapping):
            raise ValueError(f"cost: {truth!r} must have a cost for each answer; got {row!r}. {HOW}")
        for said, value in row.items():
            for name in (truth, said):
                if str(name) not in number:
                    raise ValueError(f"cost: there is no class {name!r}; the classes are {', '.join(classes)}.")
            try:
                matrix[number[str(truth)], number[str(said)]] = float(value)
            except (TypeError, ValueError):
                raise ValueError(f"cost: saying {said!r} for {truth!r} costs {value!r}, which is no number.") from None
    missing = np.argwhere(np.isnan(matrix))
    if missing.size:
        k, a = missing[0]
        raise ValueError(f"cost: what saying {classes[a]!r} for {classes[k]!r} costs is missing, or no number. {HOW}")
    return matrix
