"""A model file at work: predictions for a new table, a description, an export."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certifit._types import Array
from certifit.contest.record import RUN_FORMAT
from certifit.contest.record.model import Blend, Chain, TableModel
from certifit.contest.record.spreadsheet import csv_text
from certifit.persistence import ModelFileError, inspect_file, load
from certifit.printable import brief, json_text

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Predictions", "export_onnx", "inspect_model", "load_table_model", "predict_file", "read_run"]


@dataclass(frozen=True)
class Predictions:
    """Predictions as text, and what was noticed while reading the table."""

    text: str
    rows: int
    notes: tuple[str, ...]


def load_table_model(path: Path) -> TableModel:
    """A model that takes a table."""
    model = load(_there(path))
    if not isinstance(model, TableModel):
        raise ModelFileError(
            f"{path} holds a {type(model).__name__}, which takes a matrix, not a table: use certifit.load in Python."
        )
    return model


def _there(path: Path) -> Path:
    """The path of a model file that exists."""
    if not path.exists():
        raise ModelFileError(f"there is no file {str(path)!r}: give a .cfit file, as `certifit compete` writes.")
    return path


def predict_file(
    model_path: Path,
    source: Any,
    *,
    probabilities: bool,
    as_json: bool,
    threshold: float | None = None,
    raw: bool = False,
    interval: float | None = None,
) -> Predictions:
    """Predictions for the rows of a table, as CSV or JSON; a threshold of the caller's replaces the model's own.

    With `interval`, a share, also the ends or the set of labels that hold the truth in that share of new rows.
    Labels that a spreadsheet would run as formulas are guarded in CSV, unless they are wanted raw.
    """
    if inspect_file(_there(model_path)).model == "TaggingModel":
        return _tagged(model_path, source)
    model = load_table_model(model_path)
    if threshold is not None:
        model = model.with_threshold(threshold)
    rows = model.schema.conform(source)
    predicted = model.predict_features(rows.features)
    columns: dict[str, Any] = {model.schema.target: model.decide(predicted).tolist()}
    if model.classes and probabilities:
        for k, label in enumerate(model.classes):
            columns[f"probability of {label}"] = predicted[:, k].tolist()
    if interval is not None:
        columns |= _promised(model, predicted, interval)
    notes = [
        *rows.notes,
        *_unseen(model.core, rows.features),
        *(f"line {line} left out: {why}" for line, why in rows.bad_rows[:5]),
    ]
    if model.threshold is not None:
        whose = "the model's own; --threshold sets another" if threshold is None else "as asked"
        notes.append(f"{model.classes[1]!r} is said from probability {model.threshold:.4g} on ({whose})")
    if model.costs is not None:
        notes.append("what is said costs the least in expectation, with the costs of the contest")
    if interval is not None:
        notes.append(model.promised().sentence(interval, bool(model.classes)))
    if len(rows.bad_rows) > 5:
        notes.append(f"{len(rows.bad_rows) - 5} more lines left out")
    n = rows.features.height
    records = [{name: values[i] for name, values in columns.items()} for i in range(n)]
    if as_json:
        return Predictions(json_text(records) + "\n", n, tuple(notes))
    text, changed = csv_text(records, list(columns), raw)
    if changed:
        notes.append(
            f"{changed} label{'s' if changed > 1 else ''} that a spreadsheet would run as a formula got an apostrophe in "
            "front; --raw writes labels as they are"
        )
    return Predictions(text, n, tuple(notes))


def _promised(model: TableModel, predicted: Array, level: float) -> dict[str, Any]:
    """Columns of the ends, or of the labels in the sets."""
    target = model.schema.target
    if model.classes:
        return {f"{target} is one of": [" | ".join(labels) for labels in model.label_sets(predicted, level)]}
    low, high = model.promised().intervals(predicted, level).T
    return {f"{target} low": low.tolist(), f"{target} high": high.tolist()}


def _unseen(core: Chain | Blend, features: pl.DataFrame) -> list[str]:
    """What is said of categories that the model does not know, each column once."""
    chains = [core] if isinstance(core, Chain) else list(core.members.values())
    found: dict[str, str] = {}
    for chain in chains:
        for name, part in zip(features.columns, getattr(chain.encoder, "columns_", ()), strict=False):
            if part["kind"] != "category":
                continue
            values = features.get_column(name).drop_nulls()
            new = values.filter(~values.is_in(part["levels"]))
            if new.len():
                kinds = sorted(set(new.to_list()))
                some = ", ".join(repr(v) for v in kinds[:3]) + (", …" if len(kinds) > 3 else "")
                many = f"{len(kinds)} categor{'y' if len(kinds) == 1 else 'ies'}"
                rows = f"{new.len():,} row{'' if new.len() == 1 else 's'}"
                found[name] = f"'{name}' has {many} that the model does not know ({some}), in {rows}"
    return list(found.values())


def _tagged(model_path: Path, source: Any) -> Predictions:
    """Annotated text with the labels of a tagger, in the form in which it came."""
    from certifit.contest.tagging.model import tagged_text

    text, words = tagged_text(load(model_path), source)
    return Predictions(text, words, ())


def inspect_model(path: Path) -> dict[str, Any]:
    """What is in a model file, as plain data."""
    manifest = asdict(inspect_file(_there(path)))
    model = load(path)
    try:
        return {"file": str(path), "class": type(model).__name__, "manifest": manifest, **_described(model)}
    except Exception as error:  # every part was fit to be loaded, and yet they do not make a model
        raise ModelFileError(f"{path} holds parts that do not fit together ({error}): save the model anew.") from error


def _described(model: Any) -> dict[str, Any]:
    if isinstance(model, TableModel):
        certificate = model.certificate_
        return {
            "entrant": model.label,
            "task": model.schema.task.kind,
            "target": model.schema.target,
            "classes": list(model.classes),
            "threshold": model.threshold,
            "costs": None if model.costs is None else model.costs.tolist(),
            "origin": model.origin,
            "promise": None if model.promise is None else model.promise.sentence(0.9, bool(model.classes)),
            "model": _core(model.core),
            "certificate": None if certificate is None else str(certificate),
            "columns": [{"name": c.name, "kind": c.kind} for c in model.schema.columns if c.role == "feature"],
        }
    certificate = getattr(model, "certificate_", None)
    return {"model": brief(model), "certificate": None if certificate is None else str(certificate)}


def _core(core: Chain | Blend) -> str:
    if isinstance(core, Chain):
        return brief(core.estimator)
    return " + ".join(f"{weight:.2f} × {_core(core.members[name])}" for name, weight in core.weights.items())


def read_run(path: Path) -> dict[str, Any]:
    """A run.json."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no run.json: it is not text. Give the run.json of a contest.") from None
    try:
        run = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path} is no run.json (line {error.lineno}: {error.msg}): give the file of a contest."
        ) from None
    if not isinstance(run, dict) or "entrants" not in run or "format" not in run:
        raise ValueError(f"{path} is no run.json: it has no entrants. Give the run.json of a contest.")
    if not isinstance(run["format"], int) or run["format"] > RUN_FORMAT:
        raise ValueError(
            f"{path} has format {run['format']}, and this certifit reads up to {RUN_FORMAT}: upgrade certifit."
        )
    return run


def export_onnx(path: Path, out: Path) -> None:
    """Write the model as ONNX."""
    from certifit.onnx import to_onnx

    to_onnx(load(_there(path)), out)
