"""What a model loses on each row, by a loss of the package or of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logit

from certifit._types import Array
from certifit.evaluation.losses import LOSSES, MULTICLASS, Loss
from certifit.evaluation.metrics.inputs import check_binary, check_labels, check_vector, class_codes
from certifit.evaluation.metrics.predictions import predict_for
from certifit.evaluation.metrics.registry import METRICS

__all__ = ["loss_values"]


def loss_values(model: Any, X: Any, y: Any, loss: Any) -> tuple[Array, str]:
    """Per-example values of a loss object, a registered loss or a function."""
    if isinstance(loss, str):
        loss = {**LOSSES, **MULTICLASS}.get(loss, lambda: loss)()
    if isinstance(loss, Loss) and loss.metric:
        metric, classes = METRICS[loss.metric], getattr(model, "classes_", None)
        return metric.losses(y, predict_for(model, X, metric.needs), classes), f"{loss.name} loss"
    if isinstance(loss, Loss) and loss.coupled:
        scores = np.asarray(predict_for(model, X, "score"), dtype=np.float64)
        scores = scores if scores.ndim == 2 else np.column_stack([np.zeros(scores.shape[0]), scores])
        labels = check_labels("y", y, scores.shape[0])
        codes = class_codes(getattr(model, "classes_", np.arange(scores.shape[1])), ("y", labels))[1][0]
        return check_vector("the losses", loss.value(codes, scores)), f"{loss.name} loss"
    if isinstance(loss, Loss):
        raw = _raw_score(model, X, loss)
        if loss.task == "binary":
            target = check_binary(y, getattr(model, "classes_", None)).astype(np.float64)
        else:
            target = check_vector("y", y).astype(np.float64)
        if raw.shape != target.shape:
            raise ValueError(
                f"y and the predictions must have the same number of rows: {target.shape} and {raw.shape}."
            )
        loss.check_target(target)
        return check_vector("the losses", loss.value(target, raw)), f"{loss.name or type(loss).__name__} loss"
    if callable(loss):
        label = getattr(loss, "__name__", type(loss).__name__)
        values = np.asarray(loss(np.asarray(y), predict_for(model, X, "value")))
        return check_vector(f"{label}(y, prediction)", values, np.asarray(y).shape[0]), label
    names = ", ".join(repr(name) for name in (*LOSSES, *MULTICLASS, *METRICS))
    raise ValueError(f"loss must be one of {names}, a loss or metric object, or a function; got {loss!r}.")


def _raw_score(model: Any, X: Any, loss: Loss) -> Array:
    """The raw score a loss compares with y: what `loss.predict` turns into the prediction."""
    if loss.task == "binary":
        if hasattr(model, "decision_function"):
            raw = np.asarray(model.decision_function(X), dtype=np.float64)
        else:
            p = np.asarray(predict_for(model, X, "probability"), dtype=np.float64)
            p = p[:, 1] if p.ndim == 2 else p
            eps = np.finfo(np.float64).eps
            raw = logit(np.clip(p, eps, 1.0 - eps))
        if raw.ndim != 1:
            raise ValueError(f"The {loss.name} loss is for two classes; the model has scores of shape {raw.shape}.")
        return raw
    prediction = check_vector("the predictions", predict_for(model, X, "value")).astype(np.float64)
    links: tuple[Callable[[Array], Array], ...] = (partial(np.add, 0.0), np.log)
    with np.errstate(all="ignore"):
        for link in links:
            raw = np.asarray(link(prediction))
            if np.isfinite(raw).all() and np.allclose(loss.predict(raw), prediction, rtol=1e-9, atol=0.0):
                return raw
    raise ValueError(
        f"The predictions cannot be turned into raw scores of {loss!r}: its link is neither the identity nor the "
        "logarithm, or a prediction is not positive. Pass a function loss(y, prediction) instead."
    )
