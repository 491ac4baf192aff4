"""Linear models: scores X·W + b, then the link of the loss or the rule of the classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.evaluation.losses import Loss, resolve_loss
from certifit.evaluation.losses.labels import margin
from certifit.evaluation.losses.numbers.gamma import Gamma
from certifit.evaluation.losses.numbers.poisson import Poisson
from certifit.models.linear.classifier import LinearClassifier
from certifit.models.linear.model import BaseLinear
from certifit.models.linear.path.ridge_cv import RidgeCV
from certifit.models.linear.polynomial import PolynomialRegression
from certifit.models.logistic.model import BaseLogistic
from certifit.models.margin.svm import LinearSVC
from certifit.models.sgd.model import SGDClassifier, SGDRegressor
from certifit.onnx.answers import Answer, classified, flat
from certifit.onnx.errors import NotExportableError
from certifit.onnx.graph import Graph
from certifit.onnx.tables import transformed

__all__ = ["EXPORTERS", "export_classifier", "export_regressor", "link", "two_classes"]


def export_regressor(graph: Graph, table: str, model: Any) -> Answer:
    """A linear regressor: predictions of shape (rows,)."""
    if isinstance(model, PolynomialRegression):
        for step in (model._scaler, model._basis):
            table = transformed(graph, table, step)
    if model.coef_.ndim == 2:
        raise NotExportableError(
            f"{type(model).__name__} with several targets cannot be exported: fit one model for each."
        )
    scores = _scores(graph, table, model.coef_[:, None], np.ravel(model.intercept_))
    value, loss = flat(graph, scores), getattr(model, "_loss", None)
    return Answer(value=value if loss is None else link(graph, value, loss))


def export_classifier(graph: Graph, table: str, model: Any) -> Answer:
    """A linear classifier: labels, and probabilities where the model has them, or else scores."""
    coef, intercept, K = model.coef_, model.intercept_, model.classes_.shape[0]
    if K == 2 and coef.shape[0] == 2:  # one score a class, and the decision is their difference
        coef = coef[1:].astype(np.float64) - coef[:1].astype(np.float64)
        intercept = intercept[1:] - intercept[:1]
    scores = _scores(graph, table, coef.T, intercept)
    rule = _near_ties if isinstance(model, LinearSVC) and K > 2 else None
    probabilities = None
    if isinstance(model, BaseLogistic) or (
        isinstance(model, SGDClassifier) and K > 2 and model.multi_class == "softmax"
    ):
        probabilities = two_classes(graph, scores) if K == 2 else graph.add("Softmax", scores, axis=1)
    elif isinstance(model, SGDClassifier) and hasattr(model, "predict_proba"):
        loss = resolve_loss(model.loss if model.multi_class == "ovr" else "logistic")
        probabilities = _two(graph, scores, loss) if K == 2 else _shares(graph, scores, loss, K)
    return classified(graph, scores, model.classes_, probabilities, rule)


def link(graph: Graph, scores: str, loss: Any) -> str:
    """From scores to predictions."""
    predict = type(loss).predict
    if predict is Loss.predict:
        return scores
    if predict is margin.Logistic.predict:
        return graph.add("Sigmoid", scores)
    if predict is margin.Exponential.predict:
        return graph.add("Sigmoid", graph.add("Mul", scores, graph.constant(2.0)))
    if predict in (Poisson.predict, Gamma.predict):
        return graph.add("Exp", scores)
    raise NotExportableError(
        f"the loss {type(loss).__name__} cannot be exported: its own `predict` is Python, and ONNX has only the identity, "
        "exponential and logistic links."
    )


def _scores(graph: Graph, table: str, coef: Array, intercept: Array) -> str:
    product = graph.add("MatMul", table, graph.constant(coef.astype(np.float64), "coef"))
    return graph.add("Add", product, graph.constant(np.asarray(intercept, dtype=np.float64), "intercept"))


def _two(graph: Graph, scores: str, loss: Any) -> str:
    """Probabilities of two classes from the score of the second."""
    positive = link(graph, scores, loss)
    if isinstance(loss, margin.Logistic):  # accurate also where it is nearly zero
        negative = graph.add("Sigmoid", graph.add("Neg", scores))
    else:
        negative = graph.add("Sub", graph.constant(1.0), positive)
    return graph.add("Concat", negative, positive, axis=1)


def two_classes(graph: Graph, scores: str) -> str:
    """Probabilities of two classes from a logistic score."""
    return _two(graph, scores, margin.Logistic())


def _shares(graph: Graph, scores: str, loss: Any, n_classes: int) -> str:
    """One-against-rest estimates that sum to one; all the same where all are zero."""
    each = link(graph, scores, loss)
    total = graph.add("ReduceSum", each, graph.constant(np.array([1])), keepdims=1)
    some = graph.add("Greater", total, graph.constant(0.0))
    safe = graph.add("Where", some, total, graph.constant(1.0))
    return graph.add("Where", some, graph.add("Div", each, safe), graph.constant(1.0 / n_classes))


def _near_ties(graph: Graph, scores: str) -> str:
    """1 where a score is the highest up to rounding, so that the first of equal ones wins as in `LinearSVC.predict`."""
    kept = graph.rounded(scores)
    eps = float(np.finfo(np.float32 if graph.single else np.float64).eps)
    axis = graph.constant(np.array([1]))
    top = graph.add("ReduceMax", kept, axis, keepdims=1)
    size = graph.add("ReduceMax", graph.add("Abs", kept), axis, keepdims=1)
    slack = graph.add("Mul", graph.add("Add", size, graph.constant(1.0)), graph.constant(16 * eps))
    return graph.cast(graph.add("GreaterOrEqual", kept, graph.add("Sub", top, slack)), "INT32")


EXPORTERS = {(BaseLinear, RidgeCV, SGDRegressor): export_regressor, (LinearClassifier,): export_classifier}
"""Classes of models and the function that writes them."""
