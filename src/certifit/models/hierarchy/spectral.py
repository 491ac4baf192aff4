"""Spectral clustering: cut a graph of neighbors where it is thin.

    minimize over clusters C₁ … C_k    Σ cut(C_j) / vol(C_j)        (normalized; unnormalized: over |C_j|)

with cut(C) the weight of the edges that leave C, vol(C) the sum of its degrees. For indicators H this is tr HᵀLH, L the
Laplacian; without the condition that H be an indicator the minimum is the sum of L's k smallest eigenvalues, attained by their
vectors. k-means finds clusters in the rows of these vectors (Shi and Malik 2000; von Luxburg 2007). The sum is a lower bound on
the cut of every clustering of this graph, and the certificate compares.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit._types import Array, Matrix, is_sparse
from certifit.certificate import Certificate
from certifit.data.gate import check_x
from certifit.models.cluster.centers import check_enough
from certifit.models.cluster.kmeans import KMeans
from certifit.models.hierarchy.cuts import by_size, cut_after
from certifit.models.hierarchy.linkage import in_unit, linkage_of_rows
from certifit.models.hierarchy.nearest_row import OfNearestRow
from certifit.models.neighbors.model import NearestNeighbors
from certifit.optimization.eigen.laplacian import LaplacianSpectrum, laplacian, smallest_eigenvalues
from certifit.parameters import Choice, Either, Fitted, Flag, Integer, Nothing, OneOf, Parameter, Real
from certifit.parameters.common import N_JOBS, RANDOM_STATE, VERBOSE
from certifit.progress import progress
from certifit.threads import one_blas_thread

__all__ = ["SpectralClustering"]

FEW_COLUMNS = 3  # in which a graph of neighbors has cheap triangular factors
CLEAR = 0.8  # eigenvalues of a line without any clusters go as 1, 4, 9, …: they jump by 3/4 of the next


class SpectralClustering(OfNearestRow):
    """Clusters of a graph of nearest neighbors, by the eigenvectors of its Laplacian.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import SpectralClustering
    >>> angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> model = SpectralClustering(n_clusters=2, n_neighbors=4).fit(np.concatenate([3 * ring, ring]))
    >>> np.bincount(model.labels_), model.n_components_
    (array([100, 100]), 2)
    """

    n_clusters: Any = Parameter(
        2,
        Either(Integer(1), Choice("eigengap")),
        'How many clusters; "eigengap" takes the number, up to `max_clusters`, after which the eigenvalues jump most.',
    )
    affinity: str = OneOf(
        ("nearest_neighbors", "precomputed"),
        'How rows are connected: each with its nearest ones, or "precomputed": X is the symmetric matrix of weights.',
    )
    n_neighbors: int = Parameter(10, Integer(1), "Neighbors of each row; an edge in one direction is an edge.")
    weights: str = OneOf(
        ("gaussian", "equal"),
        "Of the edges: exp(−d²/2σ²) of the distance d, or all equal.",
    )
    sigma: Any = Parameter(
        "local",
        Either(Choice("local", "median"), Real(0, open_low=True)),
        'σ of the weights: "local" takes σ² = σ_i σ_j with the distance of each row to its last neighbor, so that rows far from '
        'all others are not cut off one by one; "median" of the distances in the graph.',
    )
    n_vectors: int | None = Parameter(
        None, Either(Nothing(), Integer(1)), "How many eigenvectors k-means sees; None is one for each cluster."
    )
    normalized: bool = Parameter(True, Flag(), "Whether cuts are weighed by degrees or by numbers of rows.")
    max_clusters: int = Parameter(10, Integer(2), 'Most clusters for ``n_clusters="eigengap"``.')
    random_state: Any = RANDOM_STATE
    verbose: int = VERBOSE
    n_jobs: int | None = N_JOBS

    eigenvalues_: Array = Fitted(
        "array", "The smallest eigenvalues of the Laplacian: one more than clusters, if there are as many."
    )
    eigenvectors_: Array = Fitted(
        "array of shape (n_samples, n_vectors or n_clusters_)",
        "Coordinates of the rows, in which k-means finds clusters.",
    )
    n_components_: int = Fitted("int", "Connected components of the graph.")
    residual_: float = Fitted("float", "Largest ‖Lv − λv‖ of the eigenvectors.")

    def fit(self, X: Any, y: Any = None) -> SpectralClustering:
        """Build the graph, and cut it."""
        with progress(self.verbose, "spectral clustering") as clock, one_blas_thread():
            sparse: Any = ("csr", "csc") if self.affinity == "precomputed" else False
            X = check_x(self, X, reset=True, accept_sparse=sparse, min_samples=2)
            if isinstance(self.n_clusters, numbers.Integral):
                check_enough(X.shape[0], int(self.n_clusters))
            W = self._graph(X)
            L, root = laplacian(W, self.normalized)
            most = self.max_clusters if self.n_clusters == "eigengap" else int(self.n_clusters)
            flat = self.affinity != "precomputed" and X.shape[1] <= FEW_COLUMNS
            wanted = min(max(most, self.n_vectors or 0), X.shape[0])
            spectrum = smallest_eigenvalues(L, 1.0 / root, wanted, beyond=self.n_clusters == "eigengap", flat=flat)
            k = _by_gap(spectrum.values) if self.n_clusters == "eigengap" else most
            self.eigenvalues_, self.residual_ = spectrum.values[: k + 1], float(spectrum.residuals[:k].max())
            self.eigenvectors_ = root[:, None] * spectrum.vectors[:, : self.n_vectors or k]
            self.n_components_ = int(spectrum.components.max()) + 1
            self.labels_ = self._labels(X, spectrum, k)
            self.n_clusters_ = int(self.labels_.max()) + 1
            self._keep_rows(X)
            self._certify(self._evidence(W, spectrum, clock.seconds))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.affinity == "precomputed"
        return tags

    def _row_metric(self) -> str:
        return "precomputed" if self.affinity == "precomputed" else "euclidean"

    def _nearest_given(self, X: Array) -> Array:
        return np.asarray(X.argmax(axis=1))  # weights: the nearest is the heaviest

    def _graph(self, X: Matrix) -> Any:
        """The symmetric matrix of weights."""
        if self.affinity == "precomputed":
            return _checked_weights(X)
        X, exponent = in_unit(X)
        k = min(self.n_neighbors, X.shape[0] - 1)
        distance, row = NearestNeighbors(n_neighbors=k, n_jobs=self.n_jobs).fit(X).kneighbors()
        weight = np.ones_like(distance)
        if self.weights == "gaussian":
            if self.sigma == "local":
                scale = np.sqrt(distance[:, -1:] * distance[row, -1])
            else:
                scale = np.float64(np.median(distance) if self.sigma == "median" else np.ldexp(self.sigma, -exponent))
            weight = np.exp(-0.5 * (distance / np.where(scale > 0, scale, 1.0)) ** 2)
        start = np.arange(X.shape[0] + 1) * k
        graph = sp.csr_array((weight.ravel(), row.ravel(), start), shape=(X.shape[0],) * 2)
        graph.eliminate_zeros()  # so far beyond sigma that the weight is no number
        return graph.maximum(graph.T).tocsr()

    def _labels(self, X: Matrix, spectrum: LaplacianSpectrum, k: int) -> Array:
        """k clusters of the vertices: the components themselves where these are as many."""
        parts = self.n_components_
        if parts == k:
            return by_size(spectrum.components)
        if parts < k:
            found = KMeans(k, n_init=5, random_state=self.random_state, n_jobs=self.n_jobs)
            found.judged_elsewhere = True
            return by_size(found.fit_predict(self.eigenvectors_))
        # More components than clusters: every union of them is cut at no cost. Those whose means are nearest are joined.
        count, n = np.bincount(spectrum.components), X.shape[0]
        share = sp.csr_array((1.0 / count[spectrum.components], (spectrum.components, np.arange(n))), shape=(parts, n))
        means = share @ X
        means = means.toarray() if is_sparse(means) else means
        joined = cut_after(linkage_of_rows(means, "average", "euclidean", 1), parts - k)
        return by_size(joined[spectrum.components])

    def _evidence(self, W: Any, spectrum: LaplacianSpectrum, seconds: float) -> Certificate:
        """The cut of the clusters beside what no clustering of this graph can go below."""
        k = self.n_clusters_
        size = np.asarray(W.sum(axis=1)).ravel() if self.normalized else np.ones(W.shape[0])
        edges = W.tocoo()
        crossing = self.labels_[edges.row] != self.labels_[edges.col]
        cut = np.bincount(self.labels_[edges.row][crossing], weights=edges.data[crossing], minlength=k)
        volume = np.bincount(self.labels_, weights=size, minlength=k)
        objective = float((cut / np.where(volume > 0, volume, 1.0)).sum())
        words = f"Eigenvectors to a residual of {self.residual_:.1e}."
        if k > spectrum.values.size or not spectrum.complete(k):
            return Certificate.absent(
                objective,
                f"{words} That no eigenvalue below these is missing is not proven.",
                scale=float(k),
                seconds=seconds,
            )
        bound = float(np.maximum(spectrum.values[:k] - spectrum.residuals[:k], 0.0).sum())
        return Certificate(
            "eigen-residual",
            objective=objective,
            bound=min(bound, objective),
            scale=float(k),
            tol=math.inf,
            seconds=seconds,
            claim="cut of this graph",
            note=f"{words} Every clustering of this graph into {k} costs at least {bound:.3g}.",
        )


def _by_gap(values: Array) -> int:
    """The number of eigenvalues before the largest jump from λ_k to λ_{k+1}, relative to λ_{k+1}; one where no jump is clear."""
    if values.size < 3:
        return 1
    jump = 1.0 - values[1:-1] / np.maximum(values[2:], np.finfo(np.float64).tiny)
    jump[values[2:] == 0] = 0.0
    return int(np.argmax(jump)) + 2 if jump.max() > CLEAR else 1


def _checked_weights(X: Matrix) -> Any:
    """Weights as a sparse matrix without loops: square, symmetric, not negative."""
    X = X.astype(np.float64)
    if X.shape[0] != X.shape[1]:
        raise ValueError(f'affinity="precomputed" needs the square matrix of weights; got shape {X.shape}.')
    W = sp.csr_array(X)
    if (W.data < 0).any():
        raise ValueError("weights of a graph must not be negative.")
    largest = float(W.data.max(initial=0.0)) or 1.0
    if abs(W - W.T).max() > 1e-8 * largest:
        raise ValueError("weights of a graph must be symmetric: take (W + W.T) / 2 if either direction will do.")
    W = sp.csr_array(W / largest)
    W.setdiag(0.0)
    W.eliminate_zeros()
    return W
