"""What onnxruntime computes from a model, beside what the model computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier

runtime = pytest.importorskip("onnxruntime")

TOLERANCE = {"float64": 1e-9, "float32": 1e-5}


def session(content: bytes) -> Any:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run(made: Any, X: Any) -> dict[str, Any]:
    names = [output.name for output in made.get_outputs()]
    return dict(zip(names, made.run(None, X if isinstance(X, dict) else {"X": X}), strict=True))


def compare(model: Any, found: dict[str, Any], X: Any, dtype: str) -> None:
    """The outputs of the runtime beside those of the model."""
    # A network computes in single precision, its graph in double precision.
    single = any(hasattr(part, "coefs_") for part in (model, *getattr(model, "estimators_", [])))
    tolerance = TOLERANCE["float32" if single else dtype]
    if not is_classifier(model):
        wanted = model.predict(X)
        assert found["prediction"].dtype == dtype
        np.testing.assert_allclose(found["prediction"], wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max())
        return
    scores = model.decision_function(X) if hasattr(model, "decision_function") else model.predict_proba(X)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=10 * tolerance)
    else:
        np.testing.assert_allclose(found["scores"], scores, rtol=tolerance, atol=tolerance * np.abs(scores).max())
    # A row whose classes tie up to rounding has no label to agree on.
    lead = np.abs(scores) if scores.ndim == 1 else -np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0]
    clear = np.abs(lead) > 10 * tolerance * max(1.0, np.abs(scores).max())
    if scores.ndim == 2 and scores.shape[1] == 1:
        clear = np.ones(scores.shape[0], dtype=bool)
    labels = np.asarray(found["label"])
    np.testing.assert_array_equal(labels[clear], model.predict(X)[clear])
