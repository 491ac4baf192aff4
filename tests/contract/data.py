"""Data for the contract, and how two fits are compared."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from tests.contract.discovery import Case

from certifit.models.neighbors.local.base import BaseLocal

Array = NDArray[Any]
N, D = 61, 5
# Enough work to see what a fit does to its data, where what it learns does not matter.
FEW = {"max_iter": 20, "max_epochs": 5, "n_estimators": 2, "n_alphas": 2, "cv": 2}


def features(case: Case, n: int = N, d: int = D, seed: int = 0) -> Array:
    """Rows that the estimator accepts."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    if case.takes_codes:
        return np.floor(np.abs(2.0 * X))
    return np.abs(X) + 0.1 if case.positive_features else X


def targets(case: Case, X: Array, seed: int = 1) -> Array | None:
    """Targets that depend on X and that the estimator accepts; None for methods without supervision."""
    if not case.supervised:
        return None
    rng = np.random.default_rng(seed)
    X = np.asarray(X, dtype=float)
    scores = X @ np.resize([1.0, -2.0, 0.0, 0.5, 0.0], X.shape[1]) + 0.5 * rng.normal(size=X.shape[0]) + 0.3
    if case.target == "labels":
        cuts = np.quantile(scores, np.arange(1, case.classes) / case.classes)
        return np.searchsorted(cuts, scores).astype(int)
    return np.exp(0.3 * scores) if case.target == "positive" else scores


def make(case: Case, n: int = N, d: int = D, seed: int = 0) -> tuple[Array, Array | None]:
    """Features and targets."""
    X = features(case, n, d, seed)
    return X, targets(case, X, seed + 1)


def weights(n: int = N, seed: int = 2) -> Array:
    """Small whole weights, some of them zero."""
    return np.random.default_rng(seed).integers(0, 4, size=n).astype(float)


def fit(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Fit, with weights where there are some."""
    return estimator.fit(X, y) if sample_weight is None else estimator.fit(X, y, sample_weight=sample_weight)


@contextmanager
def unbothered() -> Iterator[None]:
    """Comparisons ask for more precision than double arithmetic may certify: that warning is expected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@dataclass(frozen=True)
class Reference:
    """A fitted model, the data it saw, and what it says about its own rows. Tests read it; none may change it."""

    model: Any
    X: Array
    y: Array | None
    weight: Array | None
    output: Array


@functools.cache
def reference(case: Case, *, precise: bool = False, weighted: bool = False) -> Reference:
    """The fit that all tests of a case share."""
    X, y = make(case)
    weight = weights() if weighted and case.takes_weights else None
    for array in (X, y, weight):
        if array is not None:
            array.flags.writeable = False
    with unbothered():
        model = fit((case.precise if precise else case.build)(random_state=0), X, y, weight)
    return Reference(model, X, y, weight, output(model, X))


def output(estimator: Any, X: Any) -> Array:
    """What the fitted model says about rows: predictions, densities, distances, or transformed rows as a dense array."""
    if hasattr(estimator, "predict"):
        return np.asarray(estimator.predict(X))
    if hasattr(estimator, "score_samples"):
        return np.asarray(estimator.score_samples(X))
    if hasattr(estimator, "kneighbors"):
        return np.asarray(estimator.kneighbors(X)[0])
    return transformed(estimator, X)


def asked(model: Any, X: Array) -> Array:
    """The rows that a model of many is asked about: few of one that learns each anew or compares it with all it has seen."""
    if isinstance(model, BaseLocal):
        return X[:300]
    return X[:2000] if on_kernel(type(model)) else X


def on_kernel(cls: type) -> bool:
    """Whether a class compares rows by a kernel."""
    return cls.__module__.startswith("certifit.models.kernel.")


def transformed(estimator: Any, X: Any) -> Array:
    """Transformed rows as a dense array, also of a model that predicts."""
    result = estimator.transform(X)
    return result.toarray() if sp.issparse(result) else np.asarray(result)


def assert_same(first: Any, second: Any, tolerance: float = 1e-5) -> None:
    """Equal outputs up to a tolerance relative to their spread."""
    a, b = np.asarray(first), np.asarray(second)
    assert a.shape == b.shape
    if a.dtype.kind not in "fc":
        np.testing.assert_array_equal(a, b)
        return
    assert np.isfinite(a).all()
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(float(np.std(b)), 1e-300))
