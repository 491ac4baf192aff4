"""Models on a kernel by plain operators: similarities to the rows of the fit, times their coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array, is_sparse
from certifit.models.kernel.logistic import KernelLogisticRegression
from certifit.models.kernel.model import BaseKernel, KernelRegressor
from certifit.models.kernel.perceptron import KernelPerceptron
from certifit.onnx.answers import Answer, classified, flat
from certifit.onnx.errors import NotExportableError
from certifit.onnx.graph import Graph
from certifit.onnx.kernel import polynomial
from certifit.onnx.linear import link, two_classes
from certifit.representation.kernels import RBF, Linear, Polynomial

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
    beta = model.dual_coef_.reshape(model.dual_coef_.shape[0], -1)
    product = graph.add("MatMul", _similarities(graph, table, model), graph.constant(beta, "beta"))
    return graph.add("Add", product, graph.constant(np.atleast_1d(model.intercept_), "intercept"))


def _similarities(graph: Graph, table: str, model: BaseKernel) -> str:
    kernel, points = model.kernel_, model.points_
    if not isinstance(kernel, (RBF, Linear, Polynomial)):
        raise NotExportableError(
            f"the kernel {kernel} cannot be exported to ONNX: RBF, Linear and Polynomial with numbers for parameters can."
        )
    rows: Array = np.asarray(points.rows.toarray() if is_sparse(points.rows) else points.rows, dtype=np.float64)
    if points.center is not None:
        table = graph.add("Sub", table, graph.constant(points.center, "center"))
    # Factors are put into the constant: beside a product, a runtime may keep them in single precision.
    factor = 1.0 if isinstance(kernel, Linear) else float(kernel.gamma) * (2.0 if isinstance(kernel, RBF) else 1.0)
    products = graph.add("MatMul", table, graph.constant(np.ascontiguousarray(factor * rows.T), "rows"))
    if isinstance(kernel, Linear):
        return products
    if isinstance(kernel, Polynomial):
        return polynomial(graph, products, kernel)
    gamma = float(kernel.gamma)
    own = graph.add("ReduceSumSquare", table, graph.constant(np.array([1])), keepdims=1)
    lengths = graph.constant(gamma * np.einsum("ij,ij->i", rows, rows), "lengths")
    both = graph.add("Add", graph.add("Mul", own, graph.constant(gamma)), lengths)
    distance = graph.add("Max", graph.add("Sub", both, products), graph.constant(0.0))
    return graph.add("Exp", graph.add("Neg", distance))


EXPORTERS = {(KernelRegressor,): export_regressor, (KernelLogisticRegression, KernelPerceptron): export_classifier}
"""Classes of models and the function that writes them."""
