"""Models for other runtimes: export to ONNX.

The graph computes in double precision whatever the precision of its input, so a tree sends every row where Certifit
sends it, and other numbers agree up to the rounding of the output.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from certifit.data.gate import check_choice
from certifit.files import written_whole
from certifit.onnx.answers import write
from certifit.onnx.errors import NotExportableError
from certifit.onnx.graph import Graph
from certifit.onnx.models import TABLE_MODEL, answer_of, chains_of, table_answer
from certifit.onnx.tables import coded, column_kinds, encoded, is_encoder, read_columns, transformed
from certifit.onnx.trees import text_columns
from certifit.persistence.classes import known_name

__all__ = ["to_onnx"]


def to_onnx(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    feature_names: Sequence[str] | None = None,
    dtype: str = "float64",
) -> bytes:
    """Export a fitted model to ONNX (needs ``pip install "certifit[onnx]"``).

    Linear models and generalized linear models, linear classifiers, naive Bayes, discriminants, Bayesian regression,
    decision trees, random forests and boosted trees, classifiers calibrated by any map, also at the end of a Pipeline
    behind a `TableEncoder` (numbers, truth values, categories), `StandardScaler`, `MinMaxScaler`, `PolynomialFeatures`
    or `SimpleImputer`, and the winners of contests. Missing values and categories go where they go in Certifit.

    Regressors have the output ``prediction`` of shape (rows,). Classifiers have ``label`` and ``probabilities`` of
    shape (rows, classes), or ``scores`` where they have no probabilities.

    Parameters
    ----------
    model : estimator
        Fitted.
    path : str or path, optional
        Where to write the model too.
    feature_names : sequence of str, optional
        One name for each column: then every column is an input of its own, of shape (rows, 1). Without, there is
        one input ``X`` of shape (rows, features); a model of a table with text has an input for each column in any
        case, named as in training. Categories and truth values are text, and an empty text is a missing value.
    dtype : {"float64", "float32"}, default="float64"
        Precision of inputs and outputs. The thresholds of trees stay exact with either.

    Returns
    -------
    bytes
        The serialized model, with operators of opset 18 and ai.onnx.ml 5.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import Ridge
    >>> from certifit.onnx import to_onnx
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> content = to_onnx(Ridge(alpha=0.1).fit(X, X[:, 0]))
    >>> type(content), 200 < len(content) < 2000
    (<class 'bytes'>, True)
    """
    graph = Graph(check_choice("dtype", dtype, ("float64", "float32")) == "float32")
    names: list[str] | None
    if known_name(type(model)) == TABLE_MODEL:
        last, names = model, _table_model(graph, model, feature_names)
    else:
        steps, last = _steps(model)
        names = _estimator(graph, steps, last, feature_names)
    content = graph.model(type(last).__name__, names)
    if path is not None:
        with written_whole(path) as file:
            file.write(content)
    return content


def _table_model(graph: Graph, model: Any, given: Sequence[str] | None) -> list[str]:
    """The winner of a contest: a table goes in as it is, column by column."""
    chains = [chain for _, chain in chains_of(model).values()]
    encoders = [chain.encoder for chain in chains]
    names = _checked_names(given, encoders[0].n_features_in_) or _own_names(encoders[0])
    kinds = [column_kinds(encoder, names) for encoder in encoders]
    if any(kind != kinds[0] for kind in kinds):
        raise NotExportableError("a blend whose members take a column as different kinds cannot be exported to ONNX.")
    write(graph, table_answer(graph, read_columns(graph, names, kinds[0]), model))
    return names


def _estimator(graph: Graph, steps: list[Any], last: Any, given: Sequence[str] | None) -> list[str] | None:
    """A model behind transformers; returns the names of the columns where they have some."""
    first = steps[0] if steps else last
    check_is_fitted(first)
    width = int(getattr(first, "n_features_in_", 0))
    names, text = _checked_names(given, width), text_columns(last)
    if steps and text:
        raise NotExportableError("a model with columns of text cannot be exported behind other steps of a pipeline.")
    if steps and is_encoder(first):
        names = names or _own_names(first)
        table = encoded(graph, read_columns(graph, names, column_kinds(first, names)), first)
        steps = steps[1:]
    elif text:
        names = names or _own_names(last)
        columns = read_columns(graph, names, [j in text for j in range(width)])
        for j, (labels, unseen) in text.items():
            columns[j] = coded(graph, columns[j], labels, unseen, np.nan)
        table = columns[0] if width == 1 else graph.add("Concat", *columns, axis=1)
    elif names is not None:
        columns = read_columns(graph, names, [False] * width)
        table = columns[0] if width == 1 else graph.add("Concat", *columns, axis=1)
    else:
        table = graph.input("X", width)
    for step in steps:
        table = transformed(graph, table, step)
    write(graph, answer_of(graph, table, last))
    return names or (_own_names(first) if hasattr(first, "feature_names_in_") else None)


def _steps(model: Any) -> tuple[list[Any], Any]:
    """Transformers and the model behind them."""
    if not isinstance(model, Pipeline):
        return [], model
    found: list[Any] = []
    for _, step in model.steps:
        if step is not None and not isinstance(step, str):  # "passthrough"
            inner, end = _steps(step)
            found += [*inner, end]
    return found[:-1], found[-1]


def _own_names(first: Any) -> list[str]:
    """Names of the columns in training; x0, x1, … where they had none."""
    names = getattr(first, "feature_names_in_", None)
    found = [f"x{j}" for j in range(first.n_features_in_)] if names is None else [str(name) for name in names]
    return _checked_names(found, len(found)) or found


def _checked_names(names: Sequence[str] | None, width: int) -> list[str] | None:
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise TypeError(f"feature_names must be a list of names; got {names!r:.60}.")
    found = list(names)
    if len(found) != width:
        raise ValueError(f"feature_names has {len(found)} names; the model has {width} features.")
    taken = {"label", "probabilities", "scores", "prediction"} & set(found)
    if len(set(found)) < width or taken:
        what = f"{sorted(taken)[0]!r} is the name of an output" if taken else "a name occurs twice"
        raise ValueError(
            f"feature_names must differ from each other and from the outputs: {what}. Give feature_names=[…] of your own."
        )
    return found
