"""What a model says about rows, as values of the graph, before it is given to the outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from certifit._types import Array
from certifit.onnx.graph import Graph

__all__ = ["Answer", "classified", "flat", "write"]


@dataclass(frozen=True)
class Answer:
    """Names of values: predictions of a regressor, or what a classifier says."""

    value: str | None = None
    """Predictions, shape (rows,), or (rows, width) of several targets."""
    width: int = 1
    index: str | None = None
    """Numbers of classes, shape (rows,)."""
    probabilities: str | None = None
    """Shape (rows, classes)."""
    scores: str | None = None
    """Shape (rows, 1) for two classes, (rows, classes) for more."""
    classes: Array | None = None
    targets: tuple[Answer, ...] = ()
    """What a classifier says of each of several targets."""


def flat(graph: Graph, column: str) -> str:
    """A column of shape (rows, 1) as (rows,)."""
    return graph.add("Squeeze", column, graph.constant(np.array([1])))


def classified(
    graph: Graph,
    scores: str,
    classes: Array,
    probabilities: str | None,
    rule: Callable[[Graph, str], str] | None = None,
) -> Answer:
    """The class of the highest score, or the sign of the only one; a rule may rank scores in another way."""
    K = classes.shape[0]
    if K == 1:
        index = graph.cast(flat(graph, graph.zeros(scores)), "INT64")
    elif K == 2:
        index = graph.cast(flat(graph, graph.add("Greater", scores, graph.constant(0.0))), "INT64")
    else:
        index = graph.add("ArgMax", scores if rule is None else rule(graph, scores), axis=1, keepdims=0)
    return Answer(index=index, probabilities=probabilities, scores=scores, classes=classes)


def write(graph: Graph, answer: Answer, suffix: str = "") -> None:
    """The outputs: ``prediction``, or ``label`` with ``probabilities`` or ``scores``; of several targets ``label_0``, …."""
    if answer.value is not None:
        graph.output("prediction", answer.value, ["rows", answer.width] if answer.width > 1 else ["rows"])
        return
    if answer.targets:
        for k, each in enumerate(answer.targets):
            write(graph, each, f"_{k}")
        return
    if answer.index is None or answer.classes is None:
        raise ValueError("the model neither predicts a number nor a class.")
    K = answer.classes.shape[0]
    graph.labels(f"label{suffix}", answer.index, answer.classes)
    if answer.probabilities is not None:
        graph.output(f"probabilities{suffix}", answer.probabilities, ["rows", K])
    elif answer.scores is not None:
        wide = K > 2
        graph.output(
            f"scores{suffix}", answer.scores if wide else flat(graph, answer.scores), ["rows", K] if wide else ["rows"]
        )
