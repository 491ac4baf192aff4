"""From a model to what a metric judges: labels, values, probabilities or scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from certifit._types import Array

__all__ = ["predict_for", "predictor"]

NEEDS = ("label", "value", "probability", "score")


def predict_for(model: Any, X: Any, needs: str) -> Array:
    """What `model` says about the rows of X, in the form a metric needs.

    A function is called as it is; an estimator through `predict`, `predict_proba` or `decision_function`.
    """
    return predictor(model, needs)(X)


def predictor(model: Any, needs: str) -> Callable[[Any], Array]:
    """The function of X behind `predict_for`."""
    if needs not in NEEDS:
        raise ValueError(f"needs must be one of {NEEDS}; got {needs!r}.")
    if callable(model) and not hasattr(model, "predict"):
        return lambda X: np.asarray(model(X))
    if not hasattr(model, "predict"):
        raise TypeError(f"A fitted estimator or a function of X is needed; got {type(model).__name__}.")
    if needs in ("label", "value"):
        return lambda X: np.asarray(model.predict(X))
    if needs == "score" and hasattr(model, "decision_function"):
        return lambda X: np.asarray(model.decision_function(X))
    if hasattr(model, "predict_proba"):
        return lambda X: np.asarray(model.predict_proba(X))
    raise TypeError(
        f"{type(model).__name__} has no predict_proba: it gives no {needs}. Choose a metric of labels, such as "
        "'accuracy', or wrap the model in certifit.CalibratedClassifier."
    )
