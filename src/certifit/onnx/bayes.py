"""Naive Bayes, discriminants and Bayesian regression: ln P(x, class) as sums over columns, and the softmax of it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.models.bayes.discriminant.model import Discriminant
from certifit.models.bayes.naive import factors
from certifit.models.bayes.naive.mixed import NaiveBayes
from certifit.models.bayes.naive.model import BaseNaive
from certifit.models.bayes.naive.presets import BernoulliNB
from certifit.models.bayes.regression import BayesianLinearRegression
from certifit.onnx.answers import Answer
from certifit.onnx.errors import NotExportableError
from certifit.onnx.graph import Graph
from certifit.onnx.linear import export_regressor

__all__ = ["EXPORTERS"]


def export_naive(graph: Graph, table: str, model: Any) -> Answer:
    """Naive Bayes of numbers and category numbers; missing values are left out of the sums."""
    if isinstance(model, NaiveBayes):
        taken = [(graph.add("Gather", table, graph.constant(np.array(own)), axis=1), own) for _, own in model._groups]
        terms = [
            _factor(graph, part, factor, [_values(model, j) for j in own])
            for (part, own), factor in zip(taken, model._factors, strict=True)
        ]
    else:
        terms = [_factor(graph, _said(graph, table, model), model._factors[0], None)]
    joint = terms[0]
    for term in terms[1:]:
        joint = graph.add("Add", joint, term)
    return _answer(graph, graph.add("Add", joint, graph.constant(model._prior_term()[None, :])), model)


def export_discriminant(graph: Graph, table: str, model: Any) -> Answer:
    """ln π_k + ln N(x; m_k, Σ_k); decision functions are those of the model."""
    with np.errstate(divide="ignore"):
        prior = np.log(model.priors_)
    scores = [
        _log_density(graph, table, mean, form, float(level))
        for mean, form, level in zip(model.means_, model._forms, prior, strict=True)
    ]
    joint = graph.add("Concat", *scores, axis=1)
    if len(scores) > 2:
        return _answer(graph, joint, model, joint)
    return _answer(graph, joint, model, graph.add("Sub", scores[1], scores[0]))


def _answer(graph: Graph, joint: str, model: Any, scores: str | None = None) -> Answer:
    """The posterior of the classes, and the most probable or the least costly one."""
    probabilities = graph.add("Softmax", joint, axis=1)
    if getattr(model, "costs_", None) is not None:
        expected = graph.add("MatMul", probabilities, graph.constant(model.costs_, "costs"))
        index = graph.add("ArgMin", expected, axis=1, keepdims=0)
    else:
        index = graph.add("ArgMax", joint, axis=1, keepdims=0)
    return Answer(index=index, probabilities=probabilities, scores=scores, classes=model.classes_)


def _log_density(graph: Graph, table: str, mean: Array, form: Any, level: float) -> str:
    """level + ln N(x; mean, Σ), shape (rows, 1)."""
    centered = graph.add("Sub", table, graph.constant(mean[None, :], "mean"))
    white = graph.add("MatMul", centered, graph.constant(form.whitening.T, "whitening"))
    square = graph.add("ReduceSumSquare", white, graph.constant(np.array([1])), keepdims=1)
    half = graph.add("Mul", square, graph.constant(-0.5))
    return graph.add("Add", half, graph.constant(level + form.constant))


def _said(graph: Graph, table: str, model: Any) -> str:
    """The rows as the factor takes them: yes and no for `BernoulliNB`, where what is missing stays missing."""
    if not isinstance(model, BernoulliNB) or model.binarize is None:
        return table
    edge = float(np.float32(model.binarize)) if graph.single else float(model.binarize)  # as NumPy compares
    yes = graph.cast(graph.add("Greater", table, graph.constant(edge)), "DOUBLE")
    return graph.add("Where", graph.add("IsNaN", table), table, yes)


def _values(model: Any, j: int) -> Array | None:
    """The numbers that the categories of a column stand for; None for other columns."""
    if j not in model.levels_:
        return None
    try:
        return np.array([float(label) for label in model.levels_[j]])
    except ValueError:
        raise NotExportableError(
            f"NaiveBayes with categories that are text ({model.levels_[j][0]!r}) cannot be exported to ONNX: put a "
            "TableEncoder(categories='ordinal') before it."
        ) from None


def _factor(graph: Graph, part: str, factor: factors.Factor, values: list[Array | None] | None) -> str:
    """ln P(x | class) of some columns, shape (rows, K), up to what all classes share."""
    if isinstance(factor, factors.Gaussian):
        return _gaussian(graph, part, factor)
    if isinstance(factor, factors.Categorical):
        known = values or [np.arange(share.shape[1], dtype=np.float64) for share in factor.log_share]
        return _sum(
            graph,
            [
                _look_up(graph, graph.column(part, j), np.asarray(value), np.maximum(share, factors.LOWEST))
                for j, (value, share) in enumerate(zip(known, factor.log_share, strict=True))
            ],
        )
    if isinstance(factor, factors.KernelFactor):
        columns = zip(factor.grid, factor.log_density, strict=True)
        return _sum(graph, [_read_off(graph, graph.column(part, j), *one) for j, one in enumerate(columns)])
    linear = partial(_linear, graph, part)
    if isinstance(factor, factors.Bernoulli):
        possible, never = linear(*factor.linear_form()), factor.impossible_form()
        if never is None:
            return possible
        return graph.add("Add", possible, graph.add("Mul", linear(*never), graph.constant(factors.LOWEST)))
    if isinstance(factor, factors.Poisson):  # ln x! is the same for all classes
        return linear(np.log(factor.rate), -factor.rate)
    assert isinstance(factor, factors.Multinomial)
    share = np.clip(factor.log_share, factors.LOWEST, -factors.LOWEST)
    return linear(share, np.zeros_like(share))


def _gaussian(graph: Graph, part: str, factor: factors.Gaussian) -> str:
    rows = graph.add("Unsqueeze", part, graph.constant(np.array([1])))
    gap = graph.add("Sub", rows, graph.constant(factor.location[None]))
    bent = graph.add("Mul", graph.add("Mul", gap, gap), graph.constant(-0.5 / factor.variance[None]))
    each = graph.add("Add", bent, graph.constant(-0.5 * np.log(2 * np.pi * factor.variance[None])))
    known = graph.add("Where", graph.add("IsNaN", each), graph.constant(0.0), each)
    return graph.add("ReduceSum", known, graph.constant(np.array([2])), keepdims=0)


def _linear(graph: Graph, part: str, slope: Array, constant: Array) -> str:
    """Σ_j x_j·slope_kj + constant_kj over what is known."""
    missing = graph.add("IsNaN", part)
    filled = graph.add("Where", missing, graph.constant(0.0), part)
    known = graph.cast(graph.add("Not", missing), "DOUBLE")
    level = graph.add("MatMul", known, graph.constant(np.ascontiguousarray(constant.T)))
    return graph.add("Add", graph.add("MatMul", filled, graph.constant(np.ascontiguousarray(slope.T))), level)


def _look_up(graph: Graph, column: str, values: Array, share: Array) -> str:
    """The row of the category; zeros for one that is missing or unknown."""
    same = graph.cast(graph.add("Equal", column, graph.constant(values[None, :])), "DOUBLE")
    return graph.add("MatMul", same, graph.constant(np.ascontiguousarray(share.T)))


def _read_off(graph: Graph, column: str, grid: Array, density: Array) -> str:
    """Log densities between the points of a grid, on straight lines: a sum of ramps; zeros where x is missing."""
    step = graph.constant(np.diff(grid)[None, :])
    ramp = graph.add("Div", graph.add("Sub", column, graph.constant(grid[None, :-1])), step)
    ramp = graph.add("Clip", ramp, graph.constant(0.0), graph.constant(1.0))
    ramp = graph.add("Where", graph.add("IsNaN", column), graph.constant(0.0), ramp)
    rise = graph.add("MatMul", ramp, graph.constant(np.ascontiguousarray(np.diff(density, axis=1).T)))
    known = graph.cast(graph.add("Not", graph.add("IsNaN", column)), "DOUBLE")
    return graph.add("Add", rise, graph.add("Mul", known, graph.constant(density[None, :, 0])))


def _sum(graph: Graph, terms: list[str]) -> str:
    return graph.add("Sum", *terms)


EXPORTERS = {
    (BaseNaive,): export_naive,
    (Discriminant,): export_discriminant,
    (BayesianLinearRegression,): export_regressor,
}
"""Classes of models and the function that writes them."""
