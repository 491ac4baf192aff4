"""What a name, a function or a kernel means for two rows.

    minkowski        (Σ w_j|x_j − z_j|^p)^(1/p); euclidean p = 2, manhattan p = 1, chebyshev p = ∞
    sqeuclidean      Σ (x_j − z_j)²
    seuclidean       √(Σ (x_j − z_j)²/V_j)
    mahalanobis      √((x − z)ᵀV⁻¹(x − z)): Euclidean between rows times a root of V⁻¹
    cosine           1 − x·z/(‖x‖‖z‖) = ½‖x/‖x‖ − z/‖z‖‖²: Euclidean between rows of length one
    correlation      the cosine between rows less their means
    braycurtis       Σ|x_j − z_j| / Σ(|x_j| + |z_j|)
    haversine        the angle between two places (latitude, longitude): Euclidean between points of the globe
    nan_euclidean    Euclidean over the columns that both rows have, as if the others were alike: √(d/known · Σ (x_j − z_j)²)
    a kernel         √(k(x, x) − 2k(x, z) + k(z, z)), the Euclidean distance of its feature space

and SciPy's of counts (canberra), of categories (hamming) and of truth values, where whatever is not zero is true.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit._types import Array, Matrix, is_sparse
from certifit.data.gate import check_numbers
from certifit.representation.kernels.base import Kernel

__all__ = ["DENSE", "NAMES", "TRUTHS", "Metric"]

MAPPED = {
    "euclidean": ("squared", 2.0),
    "l2": ("squared", 2.0),
    "sqeuclidean": ("squared", 2.0),
    "seuclidean": ("squared", 2.0),
    "mahalanobis": ("squared", 2.0),
    "manhattan": ("absolute", 1.0),
    "l1": ("absolute", 1.0),
    "cityblock": ("absolute", 1.0),
    "chebyshev": ("maximum", 1.0),
    "cosine": ("squared", 2.0),
    "correlation": ("squared", 2.0),
    "haversine": ("squared", 2.0),
    "nan_euclidean": ("missing", 2.0),
}
"""Distances that are a norm of a difference, perhaps of rows brought elsewhere before: the norm, and its power."""
TRUTHS = ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule")
COUNTED = ("braycurtis", "canberra", "hamming", *TRUTHS)
"""Distances that SciPy computes in blocks."""
NAMES = (*MAPPED, *COUNTED)
DENSE = ("nan_euclidean", "haversine", "correlation", "mahalanobis", *COUNTED)
"""Distances of dense rows only."""
FURTHER = {"minkowski": ("w",), "seuclidean": ("V",), "mahalanobis": ("V", "VI")}
ANGLES = ("cosine", "correlation")


@dataclass(frozen=True)
class Metric:
    """A distance: by the norm of the difference of two rows, or by blocks of distances that Python computes."""

    kind: Any
    """A name, a function of two rows, or a kernel."""
    norm: str
    p: float
    scale: Array | None = None
    """What rows are multiplied by before: a number for each column, or a matrix."""

    @staticmethod
    def of(metric: Any, p: float, further: Any = None) -> Metric:
        """What the parameters `metric`, `p` and `metric_params` mean."""
        further = {} if further is None else further
        names = FURTHER.get(metric, ()) if isinstance(metric, str) else ()
        function = not isinstance(metric, (str, Kernel))
        if not isinstance(further, Mapping) or not (function or set(further) <= set(names)):
            wanted = f"of {' or '.join(names)}" if names else "for a metric that is a function"
            raise ValueError(
                f"metric_params must be a dict of further arguments {wanted}; got {further!r} for metric={metric!r}."
            )
        if function or isinstance(metric, Kernel) or metric == "precomputed" or metric in COUNTED:
            return Metric(partial(metric, **further) if further else metric, "", 0.0)
        if metric == "minkowski":
            norm = {1.0: "absolute", 2.0: "squared", math.inf: "maximum"}.get(float(p), "power")
            scale = None if further.get("w") is None else _roots(further["w"], 1.0 / float(p))
            return Metric(metric, norm, 1.0 if norm == "maximum" else float(p), scale)
        return Metric(metric, *MAPPED[metric], _whitening(metric, further))

    def check(self, columns: int) -> None:
        """An error unless rows of so many columns can be multiplied."""
        if self.scale is not None and self.scale.shape[0] != columns:
            raise ValueError(
                f"metric_params of metric={self.kind!r} must be of the {columns} columns of X; got {self.scale.shape[0]}."
            )

    def distance(self, reduced: Array, unit: float = 1.0) -> Array:
        """Distances from what the native search compares, the sum before its root, of rows times `unit`."""
        if self.kind in ANGLES:
            return 0.5 * reduced
        if self.kind == "haversine":
            return np.asarray(2.0 * np.arcsin(np.minimum(0.5 * np.sqrt(reduced), 1.0)))
        if self.kind == "sqeuclidean":
            return reduced / unit / unit
        if self.norm in ("squared", "missing"):
            return np.asarray(np.sqrt(reduced)) / unit
        return (np.asarray(reduced ** (1.0 / self.p)) if self.norm == "power" else reduced) / unit

    def reduced(self, distance: float, unit: float = 1.0) -> float:
        """The reverse, a little more than it: what is too far after all is sorted out by the distance itself."""
        if self.kind in ANGLES:
            return 2.0 * distance * (1 + 1e-9) + 1e-15
        if self.kind == "haversine":
            return 4.0 * math.sin(0.5 * min(distance, math.pi)) ** 2 * (1 + 1e-9) + 1e-15
        if self.kind == "sqeuclidean":
            return distance * unit * unit * (1 + 1e-9)
        power = 2.0 if self.norm in ("squared", "missing") else self.p if self.norm == "power" else 1.0
        return float((distance * unit) ** power) * (1 + 1e-9)

    @property
    def has_units(self) -> bool:
        """Whether distances grow with the rows; angles do not."""
        return self.kind not in (*ANGLES, "haversine")

    def rows(self, X: Matrix, side: int) -> Matrix:
        """Rows as they are compared."""
        if self.kind == "haversine":
            return _on_the_globe(X)
        if self.kind in ANGLES:
            return _directions(X - X.mean(axis=1, keepdims=True) if self.kind == "correlation" else X, side)
        if self.scale is None:
            return X
        if is_sparse(X):
            return sp.csr_array(X @ sp.diags_array(self.scale))
        return X @ self.scale if self.scale.ndim == 2 else X * self.scale


def _roots(given: Any, power: float) -> Array:
    """The powers of weights of columns; a weight of zero leaves its column out whatever the power."""
    weights = check_numbers("metric_params['w']", given)
    if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"metric_params['w'] must be finite numbers >= 0, one for each column; got {given!r:.60}.")
    return np.where(weights > 0, weights**power, 0.0)


def _whitening(metric: str, further: Mapping[str, Any]) -> Array | None:
    """What rows are multiplied by so that the distance is Euclidean between them."""
    if metric == "seuclidean":
        variances = check_numbers("metric_params['V']", further.get("V", ()))
        if variances.ndim != 1 or not variances.size or not (np.isfinite(variances) & (variances > 0)).all():
            raise ValueError('metric="seuclidean" wants metric_params={"V": variances}, one > 0 for each column.')
        return np.asarray(1.0 / np.sqrt(variances))
    if metric != "mahalanobis":
        return None
    inverse = further.get("VI") is not None
    name = "VI" if inverse else "V"
    given = check_numbers(f"metric_params[{name!r}]", further.get(name, ()))
    square = given.ndim == 2 and given.shape[0] == given.shape[1] > 0
    if not square or not np.isfinite(given).all() or not np.allclose(given, given.T):
        raise ValueError(
            'metric="mahalanobis" wants metric_params={"V": covariance} or {"VI": its inverse}: a symmetric matrix.'
        )
    values, vectors = np.linalg.eigh(0.5 * (given + given.T))
    least = values[-1] * given.shape[0] * np.finfo(np.float64).eps
    if values[-1] <= 0 or values[0] < (-least if inverse else least):
        raise ValueError(
            f'metric_params["{name}"] of metric="mahalanobis" must be positive {"semi" if inverse else ""}definite, or there '
            f"is no distance; its least eigenvalue is {values[0]:g}."
        )
    return np.asarray(vectors * (np.sqrt(np.maximum(values, 0.0)) if inverse else 1.0 / np.sqrt(values)))


def _on_the_globe(X: Array) -> Array:
    """Points of the unit sphere from latitudes and longitudes in radians: the straight line between two has 2·sin(angle/2)."""
    if X.shape[1] != 2:
        raise ValueError(
            f"Haversine distance only valid in 2 dimensions, latitude and longitude in radians; got {X.shape[1]}."
        )
    latitude, longitude = X.astype(np.float64).T
    return np.column_stack(
        [np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)]
    )


def _directions(X: Matrix, side: int) -> Matrix:
    """Rows of length one.

    A row of zeros has no direction: it gets one of two further columns, by its side, and so the cosine 0 with all rows of the
    other side.
    """
    size = np.asarray(abs(X).max(axis=1).toarray() if is_sparse(X) else np.abs(X).max(axis=1, initial=0.0)).ravel()
    unit = np.where(size > 0, size, 1.0).astype(np.float64)
    empty = np.zeros((X.shape[0], 2))
    empty[size == 0, side] = 1.0
    if is_sparse(X):
        scaled = sp.csr_array(sp.diags_array(1.0 / unit) @ X.astype(np.float64))
        square = np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel()
        rows = sp.diags_array(1.0 / np.sqrt(np.where(size > 0, square, 1.0))) @ scaled
        return sp.csr_array(sp.hstack([rows, sp.csr_array(empty)]))
    scaled = X / unit[:, None]
    length = np.where(size > 0, np.linalg.norm(scaled, axis=1), 1.0)
    return np.hstack([scaled / length[:, None], empty])
