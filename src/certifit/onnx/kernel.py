"""Machines on kernels: the kernel of the rows and the support vectors in plain operators, times the multipliers.

ONNX has operators of its own for support vectors, in single precision and with four kernels; these graphs are in double
precision, and sums and products of kernels are written like the kernels themselves.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from certifit._types import is_sparse
from certifit.models.kernel.one_class import ROUNDING, OneClassSVM
from certifit.models.kernel.svc import PairMachine
from certifit.models.kernel.svr import TubeMachine
from certifit.onnx.answers import Answer, classified, flat
from certifit.onnx.errors import NotExportableError
from certifit.onnx.graph import Graph
from certifit.representation.kernels import RBF, Kernel, Linear, Polynomial
from certifit.representation.kernels.basic import squared_lengths
from certifit.representation.kernels.calculus import Exponential, Product, Scaled, Sum

__all__ = ["EXPORTERS", "gram"]


def gram(graph: Graph, table: str, kernel: Kernel, vectors: Any) -> str:
    """k of the rows of a table and some fixed rows, an array or a sparse matrix."""
    # onnxruntime joins a product and a number that scales it, and keeps that number in single precision: so the vectors are
    # scaled here.
    if isinstance(kernel, Scaled) and isinstance(kernel.k, Linear):
        return gram(graph, table, kernel.k, float(kernel.factor) * vectors)
    if isinstance(kernel, Scaled):
        return graph.add("Mul", gram(graph, table, kernel.k, vectors), graph.constant(float(kernel.factor)))
    if isinstance(kernel, Exponential):
        return graph.add("Exp", gram(graph, table, kernel.k, vectors))
    if isinstance(kernel, (Sum, Product)):
        parts = [gram(graph, table, part, vectors) for part in (kernel.k1, kernel.k2)]
        return graph.add("Add" if isinstance(kernel, Sum) else "Mul", *parts)
    if not isinstance(kernel, (Linear, Polynomial, RBF)):
        raise NotExportableError(
            f"the kernel {kernel} cannot be exported to ONNX: linear, polynomial and Gaussian ones can, and their sums, "
            "products and exponentials."
        )
    vectors = np.asarray(vectors.toarray() if is_sparse(vectors) else vectors, dtype=np.float64)
    if isinstance(kernel, RBF):
        # About the center of the fixed rows, so that differences of squares do not cancel.
        center = vectors.mean(axis=0)
        table, vectors = graph.add("Sub", table, graph.constant(center[None, :])), vectors - center
    factor = float(kernel.gamma) if isinstance(kernel, Polynomial) else 1.0
    product = graph.add("MatMul", table, graph.constant(np.ascontiguousarray(factor * vectors.T), "rows"))
    if isinstance(kernel, Linear):
        return product
    if isinstance(kernel, Polynomial):
        power = base = graph.add("Add", product, graph.constant(float(kernel.offset)))
        for _ in range(int(kernel.degree) - 1):
            power = graph.add("Mul", power, base)
        return power
    square = graph.add("ReduceSum", graph.add("Mul", table, table), graph.constant(np.array([1])), keepdims=1)
    lengths = graph.add("Add", square, graph.constant(squared_lengths(vectors)[None, :]))
    distance = graph.add("Sub", lengths, graph.add("Mul", product, graph.constant(2.0)))
    kept = graph.add("Max", distance, graph.constant(0.0))
    return graph.add("Exp", graph.add("Mul", kept, graph.constant(-float(kernel.gamma))))


def _functions(graph: Graph, table: str, model: Any) -> str:
    """Σ β_i k(x_i, x) + b of every function, shape (rows, functions)."""
    intercept = graph.constant(np.asarray(model.intercept_, dtype=np.float64)[None, :], "intercept")
    coef = model._functions()
    if not coef.shape[1]:  # no row supports: a constant
        return graph.add("Add", graph.zeros(table), intercept)
    rows = gram(graph, table, model.kernel_, model.support_vectors_)
    return graph.add(
        "Add", graph.add("MatMul", rows, graph.constant(np.ascontiguousarray(coef.T), "dual_coef")), intercept
    )


def export_tube(graph: Graph, table: str, model: Any) -> Answer:
    """Support vector regression."""
    return Answer(value=flat(graph, _functions(graph, table, model)))


def export_region(graph: Graph, table: str, model: Any) -> Answer:
    """One class: 1 inside the region, −1 outside, as numbers."""
    scores = flat(graph, _functions(graph, table, model))
    edge = graph.constant(-ROUNDING * max(abs(float(model.offset_)), 1e-300))
    inside = graph.add("GreaterOrEqual", scores, edge)
    return Answer(value=graph.add("Where", inside, graph.constant(1.0), graph.constant(-1.0)))


def export_pairs(graph: Graph, table: str, model: Any) -> Answer:
    """Support vector classification: votes of the pairs, and confidence between (−1/3, 1/3) that ranks equal votes."""
    functions, K = _functions(graph, table, model), model.classes_.shape[0]
    if K == 2:
        return classified(graph, functions, model.classes_, None)
    code = np.zeros((K * (K - 1) // 2, K))
    for line, (i, j) in zip(code, itertools.combinations(range(K), 2), strict=True):
        line[i], line[j] = 1.0, -1.0
    sides = graph.constant(code, "pairs")
    won = graph.add("Greater", functions, graph.constant(0.0))
    sign = graph.add("Where", won, graph.constant(1.0), graph.constant(-1.0))
    # A class meets K − 1 others: wins − losses = 2·wins − (K − 1).
    votes = graph.add("Mul", graph.add("MatMul", sign, sides), graph.constant(0.5))
    votes = graph.add("Add", votes, graph.constant(0.5 * (K - 1)))
    confidence = graph.add("MatMul", functions, sides)
    size = graph.add("Mul", graph.add("Add", graph.add("Abs", confidence), graph.constant(1.0)), graph.constant(3.0))
    scores = graph.add("Add", votes, graph.add("Div", confidence, size))
    return classified(graph, scores, model.classes_, None, None if model.break_ties else lambda *_: votes)


EXPORTERS = {(PairMachine,): export_pairs, (TubeMachine,): export_tube, (OneClassSVM,): export_region}
"""Classes of models and the function that writes them."""
