"""Scales of columns: ours learn them, block by block, and scikit-learn's `transform` applies them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.preprocessing as theirs

from certifit._types import Array, is_sparse
from certifit.representation.basis import robust, scaling
from certifit.sklearn.translation import By, Data, DropIn, Here, Same, Table, fresh
from certifit.sklearn.translation.asking import Alone

__all__ = ["MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler"]

COPY = Here("`fit` never writes to X; `transform` does, if it is told to")
KEPT: Mapping[str, Any] = {"missing": "keep"}
NEARLY = 10 * np.finfo(np.float64).eps
"""Scikit-learn does not divide by less."""


class _Blocks(DropIn):
    """Scales that are a sum over rows."""

    _always = KEPT

    def _block(self, X: Any, sample_weight: Any = None, *, first: bool) -> Any:
        """Learn from a block of rows, the first or one more."""
        self._checked(self)
        data = Data(self, X, None, sample_weight)
        model = fresh(self._ours, **self._settings(data)) if first else self.model_
        self._seen: Any = 0 if first else self.n_samples_seen_
        self._keep(model.partial_fit(X, None, sample_weight), data)
        return self

    def _known(self) -> bool:
        return hasattr(self, "n_samples_seen_")

    n_samples_seen_: Any


class _Extremes(_Blocks):
    """Scales by extremes, to which weights do not matter."""

    def fit(self, X: Any, y: Any = None) -> Any:  # type: ignore[override]  # the signature is scikit-learn's
        """As `DropIn.fit`; y is not used."""
        return self._block(X, first=True)

    def partial_fit(self, X: Any, y: Any = None) -> Any:
        """Learn from one more block of rows; y is not used."""
        return self._block(X, first=not self._known())


def _divisor(scale: Array) -> Array:
    return np.where(scale < NEARLY, 1.0, scale)


def _centered(value: bool, data: Data) -> bool:
    name = "with_mean" if isinstance(data.estimator, StandardScaler) else "with_centering"
    if value and is_sparse(data.X):
        raise ValueError(f"Cannot center sparse matrices: pass `{name}=False` instead. Centers would fill the zeros.")
    return value


class StandardScaler(_Blocks, theirs.StandardScaler):
    """Mean zero and variance one. A column whose variance is within rounding of zero is not divided."""

    _ours = scaling.StandardScaler
    _table: ClassVar[Table] = {
        "copy": COPY,
        "with_mean": By(_centered, "the same"),
        "with_std": Same(),
    }

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """As `DropIn.fit`; y is not used."""
        return self._block(X, sample_weight, first=True)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn from one more block of rows; y is not used."""
        return self._block(X, sample_weight, first=not self._known())

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        seen = model.moments_.weight
        if data.sample_weight is None:
            seen = np.round(seen).astype(np.int64)
        n: Any = seen[0] if (seen == seen[0]).all() else seen
        told: dict[str, Any] = {"n_samples_seen_": n, "mean_": None, "var_": None, "scale_": None}
        if self.with_mean or self.with_std:
            told["mean_"] = model.mean_ if self.with_std or not is_sparse(data.X) else None
        if self.with_std:
            # Scikit-learn's bound on the rounding of a variance in two passes.
            bound = n * EPSILON * model.var_ + (n * model.mean_ * EPSILON) ** 2
            told |= {"var_": model.var_, "scale_": np.where(model.var_ <= bound, 1.0, np.sqrt(model.var_))}
        return told


EPSILON = np.finfo(np.float64).eps


def _interval(value: Any, data: Data) -> tuple[float, float]:
    low, high = value
    if low >= high:
        raise ValueError(f"Minimum of desired feature range must be smaller than maximum. Got {value}.")
    if is_sparse(data.X):
        raise TypeError("MinMaxScaler does not support sparse input. Consider using MaxAbsScaler instead.")
    return float(low), float(high)


class MinMaxScaler(_Extremes, theirs.MinMaxScaler):
    """Columns on an interval."""

    _ours = scaling.MinMaxScaler
    _table: ClassVar[Table] = {"feature_range": By(_interval, "the same"), "copy": COPY, "clip": Same()}

    def partial_fit(self, X: Any, y: Any = None) -> Any:
        """Learn from one more block of rows; y is not used."""
        _interval(self.feature_range, Data(self, X))
        return super().partial_fit(X)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        low, high = model.data_min_, model.data_max_
        first, second = self.feature_range
        scale = (second - first) / _divisor(high - low)
        return {
            "n_samples_seen_": self._seen + data.rows,
            "scale_": scale,
            "min_": first - low * scale,
            "data_min_": low,
            "data_max_": high,
            "data_range_": high - low,
        }


class MaxAbsScaler(_Extremes, theirs.MaxAbsScaler):
    """Columns divided by their largest entry."""

    _ours = scaling.MaxAbsScaler
    _table: ClassVar[Table] = {"copy": COPY, "clip": Same()}

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {
            "n_samples_seen_": self._seen + data.rows,
            "max_abs_": model.max_abs_,
            "scale_": _divisor(model.max_abs_),
        }


def _percentages(value: Any, data: Data) -> tuple[float, float]:
    low, high = value
    if not 0 <= low <= high <= 100:
        raise ValueError(f"Invalid quantile range: {value}")
    return float(low), float(high)


class RobustScaler(Alone, theirs.RobustScaler):
    """Median zero and distance one between two quantiles, those of NumPy's default."""

    _ours = robust.RobustScaler
    _always: ClassVar[Mapping[str, Any]] = {**KEPT, "quantiles": "linear"}
    _table: ClassVar[Table] = {
        "with_centering": By(_centered, "the same"),
        "with_scaling": Same(),
        "quantile_range": By(_percentages, "the same"),
        "copy": COPY,
        "unit_variance": Same(),
    }

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {
            "center_": model.center_ if self.with_centering else None,
            "scale_": model.scale_ if self.with_scaling else None,
        }
