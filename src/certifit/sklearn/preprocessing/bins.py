"""Columns cut into bins: the edges are scikit-learn's, the bins are ours."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.preprocessing as theirs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import resample
from sklearn.utils.validation import check_array, validate_data

from certifit._types import Array
from certifit.data.gate import check_sample_weight, check_x
from certifit.models.cluster.kmeans import KMeans
from certifit.representation.basis import pieces
from certifit.representation.basis.columns import lower_quantiles, weighted_quantiles
from certifit.sklearn.translation import Data, DropIn, Here, Table, fresh

__all__ = ["KBinsDiscretizer"]

NARROW = 1e-8
"""Scikit-learn joins bins that are not wider."""


EDGES = Here("edges are found by scikit-learn's rule, and given to our model")


class KBinsDiscretizer(DropIn, theirs.KBinsDiscretizer):
    """Columns cut into bins of equal width, of equal weight, or around the centers of k-means."""

    _ours = pieces.Discretizer
    _reads_columns = True
    _table: ClassVar[Table] = {
        "n_bins": EDGES,
        "encode": Here("the matrix that `transform` gives is of this kind"),
        "strategy": EDGES,
        "quantile_method": EDGES,
        "dtype": Here("the matrix that `transform` gives is of this kind"),
        "subsample": EDGES,
        "random_state": EDGES,
    }

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """As `DropIn.fit`; y is not used."""
        return super().fit(X, None, sample_weight)

    def _learn(self, data: Data) -> Any:
        plain = (
            isinstance(data.X, np.ndarray) and data.X.dtype.kind == "f"
        )  # to ask scikit-learn takes longer than the bins
        X = (
            check_x(self, data.X, reset=True, accept_sparse=False)
            if plain
            else validate_data(self, data.X, dtype="numeric")
        )
        weight = None if data.sample_weight is None else check_sample_weight(data.sample_weight, X.shape[0])
        wanted = self._wanted(X.shape[1])
        if weight is not None and self.strategy == "quantile" and self.quantile_method not in WEIGHTED:
            raise ValueError(
                "When fitting with strategy='quantile' and sample weights, quantile_method should either be set to "
                f"'averaged_inverted_cdf' or 'inverted_cdf', got quantile_method='{self.quantile_method}' instead."
            )
        rows = X
        if self.subsample is not None and X.shape[0] > self.subsample:
            rows = resample(
                X, replace=True, n_samples=self.subsample, random_state=self.random_state, sample_weight=weight
            )
            weight = None
        quantiles = self._quantiles(rows, weight, wanted) if self.strategy == "quantile" else None
        self._edges = [
            self._cut(rows[:, j], weight, int(wanted[j]), j, None if quantiles is None else quantiles[j])
            for j in range(X.shape[1])
        ]
        inner = [edges[1:-1] for edges in self._edges]
        numeric = X if X.dtype in (np.float64, np.float32) else X.astype(np.float64)
        return fresh(self._ours, bins=inner, encode="onehot", sparse_output=True).fit(numeric)

    def _wanted(self, d: int) -> Array:
        """How many bins each column shall have."""
        if isinstance(self.n_bins, numbers.Integral):
            return np.full(d, int(self.n_bins))
        found = check_array(self.n_bins, dtype=int, copy=True, ensure_2d=False)
        if found.ndim > 1 or found.shape[0] != d:
            raise ValueError("n_bins must be a scalar or array of shape (n_features,).")
        wrong = np.flatnonzero((found < 2) | (found != self.n_bins))
        if wrong.size:
            raise ValueError(
                f"KBinsDiscretizer received an invalid number of bins at indices {', '.join(str(j) for j in wrong)}. Number of "
                "bins must be at least 2, and must be an int."
            )
        return np.asarray(found)

    def _cut(self, column: Array, weight: Array | None, count: int, j: int, quantiles: Array | None) -> Array:
        """Edges of one column, outer ones included."""
        kept = column if weight is None else column[weight > 0]
        low, high = kept.min(), kept.max()
        if low == high:
            warnings.warn(f"Feature {j} is constant and will be replaced with 0.", UserWarning, stacklevel=6)
            return np.array([-np.inf, np.inf])
        edges = quantiles
        if edges is None:
            even = np.linspace(low, high, count + 1)
            if self.strategy == "uniform":
                return even
            edges = np.r_[low, _between(column, weight, (even[1:] + even[:-1]) * 0.5), high]
        wide = edges[1:] - edges[:-1] > NARROW
        edges = edges if wide.all() else edges[np.r_[True, wide]]
        if edges.size - 1 != count:
            warnings.warn(
                f"Bins whose width are too small (i.e., <= 1e-8) in feature {j} are removed. Consider decreasing the number of "
                "bins.",
                UserWarning,
                stacklevel=6,
            )
        return edges

    def _quantiles(self, X: Array, weight: Array | None, counts: Array) -> list[Array]:
        """Quantiles of each column; of columns with as many bins all at once, which takes no longer than of one."""
        if weight is not None:
            kept, rule = weight > 0, WEIGHTED[self.quantile_method]
            X, weight = X[kept], weight[kept]
            return [rule(X[:, j], weight, np.linspace(0.0, 1.0, count + 1)) for j, count in enumerate(counts.tolist())]
        found: dict[int, Array] = {}
        for count in {*counts.tolist()}:
            columns = np.flatnonzero(counts == count)
            shares = np.linspace(0, 100, count + 1)
            told = np.percentile(X[:, columns], shares, axis=0, method=self.quantile_method)
            found |= dict(zip(columns.tolist(), np.ascontiguousarray(told.T, dtype=np.float64), strict=True))
        return [found[j] for j in range(len(counts))]

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        edges = np.zeros(len(self._edges), dtype=object)
        edges[:] = self._edges
        del self._edges
        self._late: dict[str, Any] = {}
        self._kind = self.dtype if self.dtype is not None else getattr(data.X, "dtype", np.float64)
        return {"bin_edges_": edges, "n_bins_": model.n_bins_}

    @property
    def _encoder(self) -> Any:
        """Numbers of bins as columns, which the inherited `transform` asks for; it takes longer to make than the bins."""
        if "onehot" not in self.encode or "n_bins_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no columns of bins.")
        if "columns" not in self._late:
            known = [np.arange(count) for count in self.n_bins_]
            columns = theirs.OneHotEncoder(categories=known, sparse_output=self.encode == "onehot", dtype=self._kind)
            self._late["columns"] = columns.fit(np.zeros((1, len(known))))
        return self._late["columns"]

    n_bins_: Array


def _between(column: Array, weight: Array | None, start: Array) -> Array:
    """Edges between the centers of k-means from this start; centers without rows do not count."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fewer values than centers the bins speak
        model = KMeans(start.size, init=start[:, None], n_init=1, min_shift=1e-4, random_state=0).fit(
            column[:, None], None, weight
        )
    centers = np.sort(model.cluster_centers_[np.unique(model.labels_), 0])
    return np.asarray((centers[1:] + centers[:-1]) * 0.5)


WEIGHTED = {"averaged_inverted_cdf": weighted_quantiles, "inverted_cdf": lower_quantiles}
"""Quantiles under weights, by NumPy's names."""
