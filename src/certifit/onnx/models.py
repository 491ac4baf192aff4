"""Which function writes which model, and models made of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.families import FAMILIES
from certifit.onnx.answers import Answer
from certifit.onnx.bagged import export_bagged
from certifit.onnx.calibrated import export_calibrated
from certifit.onnx.errors import NotExportableError
from certifit.onnx.graph import Graph
from certifit.onnx.tables import encoded, transformed
from certifit.persistence.classes import known_name

__all__ = ["TABLE_MODEL", "answer_of", "chains_of", "table_answer"]

# The contest is known by the names of its classes: importing it would load what reading tables takes.
CALIBRATED = ("CalibratedClassifier", "Calibrated")
BAGGED = ("BaggingClassifier", "BaggingRegressor")
TABLE_MODEL = "TableModel"
BLEND = "Blend"


def answer_of(graph: Graph, table: str, model: Any) -> Answer:
    """What a fitted model says about the rows of a table."""
    name = known_name(type(model))
    if name in CALIBRATED:
        return export_calibrated(graph, table, model, answer_of)
    if name in BAGGED:
        return export_bagged(graph, table, model, answer_of)
    write = next((function for kinds, function in _exporters() if isinstance(model, kinds)), None)
    if write is None or name is None:  # a class of the user may predict in its own way
        able = ", ".join(family.words for family in FAMILIES if family.exporter)
        raise NotExportableError(f"{type(model).__name__} cannot be exported to ONNX: {able} can.")
    check_is_fitted(model)
    return write(graph, table, model)


@cache
def _exporters() -> tuple[tuple[tuple[type, ...], Callable[[Graph, str, Any], Answer]], ...]:
    """Classes of models and the function that writes them, from every family that has an exporter."""
    modules = [family.exporter_module() for family in FAMILIES if family.exporter]
    return tuple(pair for module in modules for pair in module.EXPORTERS.items())


def chains_of(model: Any) -> dict[str, tuple[float, Any]]:
    """The chains of encoder, steps and estimator behind the winner of a contest, each with its weight."""
    if known_name(type(model.core)) == BLEND:
        used = {name: weight for name, weight in model.core.weights.items() if weight != 0.0}
        return {name: (float(weight), model.core.members[name]) for name, weight in used.items()}
    return {model.name: (1.0, model.core)}


def table_answer(graph: Graph, columns: Sequence[str], model: Any) -> Answer:
    """What the winner of a contest says about a table: the weighted mean of its chains, and its threshold."""
    total: str | None = None
    for weight, chain in chains_of(model).values():
        table = encoded(graph, columns, chain.encoder)
        for step in chain.steps:
            table = transformed(graph, table, step)
        answer = answer_of(graph, table, chain.estimator)
        part = answer.value if answer.value is not None else answer.probabilities
        if part is None or (answer.classes is not None and answer.classes.shape[0] != len(model.classes)):
            raise NotExportableError(f"{type(chain.estimator).__name__} has no probabilities of all classes to export.")
        if weight != 1.0:
            part = graph.add("Mul", part, graph.constant(weight))
        total = part if total is None else graph.add("Add", total, part)
    if total is None or not model.classes:
        return Answer(value=total)
    if model.threshold is not None and len(model.classes) == 2:
        positive = graph.add("Gather", total, graph.constant(np.int64(1)), axis=1)
        index = graph.cast(graph.add("GreaterOrEqual", positive, graph.constant(float(model.threshold))), "INT64")
    elif model.costs is not None:
        expected = graph.add("MatMul", total, graph.constant(np.asarray(model.costs, dtype=np.float64), "costs"))
        index = graph.add("ArgMin", expected, axis=1, keepdims=0)
    else:
        index = graph.add("ArgMax", total, axis=1, keepdims=0)
    return Answer(index=index, probabilities=total, classes=np.asarray(model.classes))
