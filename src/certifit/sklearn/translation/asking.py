"""Drop-ins whose predictions are those of our own model: the methods that ask it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.sklearn.translation import Data, DropIn, fresh

__all__ = ["Alone", "AsksForClasses", "AsksForStages", "AsksForValues"]


def in_double(X: Any) -> Any:
    """Rows in double precision: our models answer in the precision of X, scikit-learn's trees always in double."""
    return X.astype(np.float64) if getattr(X, "dtype", None) == np.float32 else X


class _Asks(DropIn):
    """The rows as our model wants them."""

    def _asked(self, X: Any) -> Any:
        return in_double(X)


class AsksForValues(_Asks):
    """`predict` of the model."""

    def predict(self, X: Any) -> Array:
        """What our model predicts."""
        check_is_fitted(self)
        return self.model_.predict(self._asked(X))


class AsksForClasses(AsksForValues):
    """Probabilities of the classes too."""

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, as `predict` takes its rows."""
        check_is_fitted(self)
        return self.model_.predict_proba(self._asked(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`."""
        check_is_fitted(self)
        return self.model_.predict_log_proba(self._asked(X))


class AsksForStages(_Asks):
    """Predictions after each stage."""

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """`predict` after each stage."""
        check_is_fitted(self)
        yield from self.model_.staged_predict(self._asked(X))


class Alone(DropIn):
    """Models that learn from rows only, without target or weights."""

    def fit(self, X: Any, y: Any = None) -> Any:  # type: ignore[override]  # the signature is scikit-learn's
        """As `DropIn.fit`; y is not used."""
        return super().fit(X, None)

    def _learn(self, data: Data) -> Any:
        return fresh(self._ours, **self._settings(data)).fit(data.X)
