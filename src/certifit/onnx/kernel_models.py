"""Models on a kernel by plain operators: similarities to the rows of the fit, times their coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.models.kernel.logistic import KernelLogisticRegression
from certifit.models.kernel.model import BaseKernel, KernelRegressor
from certifit.models.kernel.perceptron import KernelPerceptron
from certifit.onnx.answers import Answer, classified, flat
from certifit.onnx.errors import NotExportableError
from certifit.onnx.graph import Graph
from certifit.onnx.kernel import gram
from certifit.onnx.linear import link, two_classes

__all__ = ["EXPORTERS"]


def export_regressor(graph: Graph, table: str, model: Any) -> Answer:
    """Predictions of shape (rows,)."""
    if model.dual_coef_.ndim == 2:
        raise NotExportableError(
            f"{type(model).__name__} with several targets cannot be exported: fit one model for each."
        )
    return Answer(value=link(graph, flat(graph, _scores(graph, table, model)), model._loss))


def export_classifier(graph: Graph, table: str, model: Any) -> Answer:
    """Labels, with probabilities where the model has them, or else scores."""
    scores, probabilities = _scores(graph, table, model), None
    if isinstance(model, KernelLogisticRegression):
        two = model.classes_.shape[0] == 2
        probabilities = two_classes(graph, scores) if two else graph.add("Softmax", scores, axis=1)
    return classified(graph, scores, model.classes_, probabilities)


def _scores(graph: Graph, table: str, model: BaseKernel) -> str:
    """K·β + b, one column for each score."""
    beta, points = model.dual_coef_.reshape(model.dual_coef_.shape[0], -1), model.points_
    if points.center is not None:
        table = graph.add("Sub", table, graph.constant(points.center, "center"))
    product = graph.add("MatMul", gram(graph, table, model.kernel_, points.rows), graph.constant(beta, "beta"))
    return graph.add("Add", product, graph.constant(np.atleast_1d(model.intercept_), "intercept"))


EXPORTERS = {(KernelRegressor,): export_regressor, (KernelLogisticRegression, KernelPerceptron): export_classifier}
"""Classes of models and the function that writes them."""
