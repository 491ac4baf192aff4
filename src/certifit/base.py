"""What every estimator shares: a fit that leaves a certificate."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags

from certifit._types import Array
from certifit.certificate import Certificate

__all__ = [
    "CertifiedEstimator",
    "ConvergenceWarning",
    "CopiesMixin",
    "HighestScoreMixin",
    "KeepsPrecision",
    "OfPairs",
    "TakesSparse",
]


class CertifiedEstimator(BaseEstimator):
    """An estimator whose fit leaves a `certificate_`."""

    certificate_: Certificate
    judged_elsewhere = False
    """Whether whoever asked for the fit reads the certificate, and warns by a rule of its own."""

    def _certify(self, certificate: Certificate) -> None:
        """Keep the certificate; a fit that stopped short says so once, with the gap it reached."""
        self.certificate_ = certificate
        if self.judged_elsewhere:
            return
        if not certificate.certified and certificate.kind != "none":
            warnings.warn(f"{type(self).__name__}: {certificate}", ConvergenceWarning, stacklevel=_caller())


class KeepsPrecision(TransformerMixin):
    """A transformer that gives single precision for single precision."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class TakesSparse:
    """An estimator of sparse matrices too."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags


class OfPairs:
    """An estimator of rows under a metric, or of what they are apart: ``metric="precomputed"``."""

    metric: Any

    @property
    def _given(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = self._given
        return tags


class HighestScoreMixin:
    """Decisions of a classifier with scores: one for two classes, positive for the second, or one for each class."""

    classes_: Array

    def decision_function(self, X: Any) -> Array:
        """Scores: shape (n,) for two classes (positive: the second class), (n, K) for more."""
        raise TypeError(f"{type(self).__name__} must say how it scores.")

    def predict(self, X: Any) -> Array:
        """The class of the highest score."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])


class CopiesMixin:
    """An estimator that fits copies of another one, and accepts what that one accepts."""

    def _inner(self) -> Any:
        """The estimator that is copied."""
        raise TypeError(f"{type(self).__name__} must say what it fits.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        inner = get_tags(self._inner()).input_tags
        tags.input_tags.allow_nan, tags.input_tags.sparse = inner.allow_nan, inner.sparse
        return tags


def _caller() -> int:
    """Stack level of the first frame outside this package, so that a warning points at the user's line."""
    level, frame = 1, inspect.currentframe()
    frame = frame.f_back if frame is not None else None
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "certifit":
        frame, level = frame.f_back, level + 1
    return level
