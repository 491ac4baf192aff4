"""Bagging: the mean of what the copies say."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.onnx.answers import Answer
from certifit.onnx.calibrated import AnswerOf
from certifit.onnx.errors import NotExportableError
from certifit.onnx.graph import Graph

__all__ = ["export_bagged"]


def export_bagged(graph: Graph, table: str, model: Any, answer_of: AnswerOf) -> Answer:
    """Predictions, or labels and probabilities; `answer_of` writes the copies."""
    check_is_fitted(model)
    if getattr(getattr(model, "_coding", None), "columns", []):
        raise NotExportableError(f"{type(model).__name__} with columns of categories cannot be exported to ONNX.")
    classes = getattr(model, "classes_", None)
    if classes is not None and model.voting != "probability":
        raise NotExportableError(f"{type(model).__name__} exports with voting='probability'; got {model.voting!r}.")
    total: str | None = None
    for copy, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        part = table
        if columns.shape[0] < model.n_features_in_:
            part = graph.add("Gather", table, graph.constant(np.asarray(columns, dtype=np.int64)), axis=1)
        said = _said(graph, answer_of(graph, part, copy), copy, classes)
        total = said if total is None else graph.add("Add", total, said)
    mean = graph.add("Div", str(total), graph.constant(float(len(model.estimators_))))
    if classes is None:
        return Answer(value=mean)
    return Answer(index=graph.add("ArgMax", mean, axis=1, keepdims=0), probabilities=mean, classes=classes)


def _said(graph: Graph, answer: Answer, copy: Any, classes: Any) -> str:
    """Predictions of a copy, or its probabilities of all classes: zero for those it did not draw."""
    if classes is None:
        if answer.value is None or answer.width > 1:
            raise NotExportableError(f"a bag of {type(copy).__name__} has no single prediction to export to ONNX.")
        return answer.value
    if answer.probabilities is None:
        raise NotExportableError(f"a bag of {type(copy).__name__} has no probabilities to export to ONNX.")
    places = copy.classes_.astype(np.int64)
    if places.shape[0] == classes.shape[0]:
        return answer.probabilities
    return graph.add("MatMul", answer.probabilities, graph.constant(np.eye(classes.shape[0])[places], "places"))
