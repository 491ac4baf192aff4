"""Neural networks: standardized columns, then a product and an activation for each layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.models.neural.base import BaseNetwork
from certifit.models.neural.layers import FAR
from certifit.models.neural.model import MLPClassifier
from certifit.onnx.answers import Answer, classified, flat
from certifit.onnx.errors import NotExportableError
from certifit.onnx.graph import Graph
from certifit.onnx.linear import link, two_classes

__all__ = ["EXPORTERS"]


def export_network(graph: Graph, table: str, model: Any) -> Answer:
    """Labels and probabilities of a classifier, predictions of shape (rows,) of a network with one score."""
    scores = _scores(graph, table, model)
    if isinstance(model, MLPClassifier) and model._of_columns():
        raise NotExportableError(
            "MLPClassifier of rows with several labels cannot be exported: fit one model for each label."
        )
    if isinstance(model, MLPClassifier):
        probabilities = two_classes(graph, scores) if len(model.classes_) == 2 else graph.add("Softmax", scores, axis=1)
        return classified(graph, scores, model.classes_, probabilities)
    if model._several:
        raise NotExportableError(
            f"{type(model).__name__} with several scores cannot be exported: fit an MLPClassifier, or one model for each target."
        )
    return Answer(value=link(graph, flat(graph, scores), model._loss))


def _scores(graph: Graph, table: str, model: Any) -> str:
    if getattr(model, "_categories", None) is not None:
        table = _spread(graph, table, model)
    centered = graph.add("Sub", table, graph.constant(model.mean_[None, :], "mean"))
    a = graph.add("Div", centered, graph.constant(model.scale_[None, :], "scale"))
    a = graph.add("Max", graph.add("Min", a, graph.constant(FAR)), graph.constant(-FAR))
    for layer, (coef, intercept) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        product = graph.add("MatMul", a, graph.constant(coef.astype(np.float64), "coef"))
        a = graph.add("Add", product, graph.constant(intercept.astype(np.float64), "intercept"))
        if layer + 1 < len(model.coefs_):
            a = _activated(graph, a, model, layer)
    return a


def _spread(graph: Graph, table: str, model: Any) -> str:
    """The table with zeros for categories and columns of 0 and 1 for them behind it; text was numbered at the input."""
    categories, blocks = model._categories, []
    for j in categories.columns:
        levels = categories.levels[j]
        text = any(isinstance(level, str) for level in levels)
        wanted = np.arange(float(len(levels))) if text else np.array(levels, dtype=np.float64)
        column = graph.column(table, j)
        blocks.append(graph.cast(graph.add("Equal", column, graph.constant(wanted[None, :], "levels")), "DOUBLE"))
    coded = np.isin(np.arange(model.n_features_in_), categories.columns)[None, :]
    numbers = graph.add("Where", graph.constant(coded), graph.constant(0.0), table)
    return graph.add("Concat", numbers, *blocks, axis=1)


def _activated(graph: Graph, z: str, model: Any, layer: int) -> str:
    if model.activation == "identity":
        return z
    if model.activation in ("leaky_relu", "prelu"):
        learned = model.activation == "prelu"
        leak = (
            graph.constant(model.leaks_[layer][None, :].astype(np.float64), "leak")
            if learned
            else graph.constant(float(model.leak))
        )
        below = graph.add("Mul", z, leak)
        return graph.add("Where", graph.add("Greater", z, graph.constant(0.0)), z, below)
    return graph.add({"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}[model.activation], z)


EXPORTERS = {(BaseNetwork,): export_network}
"""Classes of models and the function that writes them."""
