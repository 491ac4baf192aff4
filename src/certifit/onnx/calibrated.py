"""Calibrated classifiers: the scores of a classifier, and the map that makes probabilities of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.models.reductions.calibrated import EDGE, Beta, Isotonic, Sigmoid
from certifit.onnx.answers import Answer
from certifit.onnx.errors import NotExportableError
from certifit.onnx.graph import Graph

__all__ = ["export_calibrated"]

AnswerOf = Callable[[Graph, str, Any], Answer]


def export_calibrated(graph: Graph, table: str, model: Any, answer_of: AnswerOf) -> Answer:
    """Labels and probabilities; `answer_of` writes the classifier inside."""
    check_is_fitted(model)
    classes, method = model.classes_, getattr(model, "method", "matrix")
    scores = _scores(graph, answer_of(graph, table, model.estimator_), model, method)
    if method == "matrix":
        inner = model.maps_[0] if hasattr(model, "maps_") else model.calibrator_
        probabilities = str(answer_of(graph, graph.rounded(scores), inner).probabilities)
    elif method == "temperature":
        cooled = graph.add("Div", _both(graph, scores, classes.shape[0]), graph.constant(float(model.maps_[0])))
        probabilities = graph.add("Softmax", cooled, axis=1)
    else:
        probabilities = _one_by_one(graph, scores, model.maps_)
    index = graph.add("ArgMax", probabilities, axis=1, keepdims=0)
    return Answer(index=index, probabilities=probabilities, classes=classes)


def _scores(graph: Graph, inner: Answer, model: Any, method: str) -> str:
    """Scores of shape (rows, 1) for two classes; for the beta map, probabilities."""
    two, estimator = model.classes_.shape[0] == 2, model.estimator_
    if method == "beta" and inner.probabilities is not None:
        return graph.column(inner.probabilities, 1) if two else inner.probabilities
    if hasattr(estimator, "decision_function") and inner.scores is not None:
        return graph.add("Sigmoid", inner.scores) if method == "beta" else inner.scores
    if inner.probabilities is None or hasattr(estimator, "decision_function"):
        raise NotExportableError(
            f"a calibrated {type(estimator).__name__} cannot be exported to ONNX: its scores are not in the graph."
        )
    log = graph.add("Log", _clipped(graph, inner.probabilities, 1.0))
    return graph.add("Sub", graph.column(log, 1), graph.column(log, 0)) if two else log


def _both(graph: Graph, scores: str, n_classes: int) -> str:
    """A score for each class: zero for the first of two."""
    return graph.add("Concat", graph.zeros(scores), scores, axis=1) if n_classes == 2 else scores


def _one_by_one(graph: Graph, scores: str, maps: list[Any]) -> str:
    """Maps of the classes against the rest, normalized; equal shares where all of them say zero."""
    each = [_mapped(graph, graph.column(scores, k), one) for k, one in enumerate(maps)]
    if len(maps) == 1:
        return graph.add("Concat", graph.add("Sub", graph.constant(1.0), each[0]), each[0], axis=1)
    p = graph.add("Concat", *each, axis=1)
    total = graph.add("ReduceSum", p, graph.constant(np.array([1])), keepdims=1)
    some = graph.add("Greater", total, graph.constant(0.0))
    share = graph.add("Div", p, graph.add("Where", some, total, graph.constant(1.0)))
    return graph.add("Where", some, share, graph.constant(1.0 / len(maps)))


def _mapped(graph: Graph, f: str, one: Any) -> str:
    if isinstance(one, Sigmoid):
        slope = one.a / one.unit
        return graph.add("Sigmoid", _line(graph, f, slope, one.b - slope * one.center))
    if isinstance(one, Beta):
        q = _clipped(graph, f, 1.0 - EDGE)
        plus, minus = graph.add("Log", q), graph.add("Log", graph.add("Sub", graph.constant(1.0), q))
        return graph.add("Sigmoid", graph.add("Sub", _line(graph, plus, one.a, one.c), _line(graph, minus, one.b, 0.0)))
    assert isinstance(one, Isotonic)
    if one.x.shape[0] == 1:
        return graph.add("Add", graph.zeros(f), graph.constant(float(one.p[0])))
    # A sum of ramps: each rises from 0 to 1 between two knots.
    ramp = graph.add("Div", graph.add("Sub", f, graph.constant(one.x[:-1])), graph.constant(np.diff(one.x)))
    ramp = graph.add("Clip", ramp, graph.constant(0.0), graph.constant(1.0))
    rise = graph.add("MatMul", ramp, graph.constant(np.diff(one.p)[:, None]))
    return graph.add("Add", rise, graph.constant(float(one.p[0])))


def _line(graph: Graph, x: str, slope: float, level: float) -> str:
    return graph.add("Add", graph.add("Mul", x, graph.constant(float(slope))), graph.constant(float(level)))


def _clipped(graph: Graph, p: str, high: float) -> str:
    return graph.add("Clip", p, graph.constant(EDGE), graph.constant(high))
