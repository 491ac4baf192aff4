"""Principal components: the plane that is closest to the rows.

    minimize over V (d × k, VᵀV = I)    (1/Σs_i) Σ s_i ‖(x_i − m) − VVᵀ(x_i − m)‖²

The optimum is spanned by the k leading eigenvectors of the covariance, and what it leaves is the sum of the other eigenvalues
(Eckart and Young 1936): the reconstruction error is the discarded variance, and the certificate shows both.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from certifit._types import Array, Matrix
from certifit.data.equal_rows import row_codes
from certifit.data.gate import check_sample_weight, check_x
from certifit.evaluation.metrics.kink import kink
from certifit.models.embedding.dimension import likeliest_dimension
from certifit.models.embedding.projection import Iterative, Projection
from certifit.models.embedding.spectrum import SOLVERS, Effort, Spectrum, choose_solver, spectrum
from certifit.optimization.eigen.leading import exact
from certifit.parameters import Choice, Either, Fitted, Flag, Integer, Nothing, Parameter, Real
from certifit.parameters.common import TOL
from certifit.representation.design.moments import Moments

__all__ = ["PCA", "IncrementalPCA"]

N_COMPONENTS = Parameter(
    None,
    Either(Nothing(), Integer(1), Real(0, 1, open_low=True, open_high=True), Choice("kink", "mle")),
    'How many directions: a number, the share of the variance they must hold at least, "kink" for those before the '
    'variances level off, "mle" for as many as have the greatest evidence (Minka 2000; of at least as many rows as columns), '
    "or None for all that can have variance: min(distinct rows − 1, n_features).",
)
FEW = 4096  # rows that are compared at a time
WHITEN = Parameter(False, Flag(), "Whether coordinates are divided by their standard deviation.")


class _Centered(Projection):
    """Directions of the rows about their mean."""

    n_components: Any
    whiten: bool
    tol: float

    mean_: Array = Fitted("array of shape (n_features,)", "Mean of the rows.")
    n_components_: int = Fitted("int", "How many directions were kept.")
    noise_variance_: float = Fitted("float", "Mean variance along the directions that were not kept.")

    weights_are_counts = True  # variances are those of a sample: over Σs − 1

    def _origin(self) -> Array:
        return self.mean_

    def _unit(self) -> Array:
        if not self.whiten:
            return super()._unit()
        deviation = np.sqrt(self.explained_variance_.astype(np.float64))
        return np.where(deviation > 0, deviation, 1.0)

    def _most(self, n: int, d: int) -> int:
        """How many directions are needed to choose from."""
        wanted = self.n_components
        if wanted is None or isinstance(wanted, str) or not isinstance(wanted, (int, np.integer)):
            return max(1, min(n - 1, d))  # n rows about their mean span n − 1 directions at most
        if wanted > min(n, d):
            raise ValueError(f"n_components must be at most min(n_samples, n_features) = {min(n, d)}; got {wanted}.")
        return int(wanted)

    def _chosen(self, values: Array, total: float, rows: float, d: int) -> int:
        """How many directions are kept, of those found."""
        wanted = self.n_components
        if wanted == "mle":
            if rows < d:
                raise ValueError(
                    f"n_components='mle' is only supported if n_samples >= n_features; got {rows:g} and {d}."
                )
            all_of_them = np.zeros(d)
            all_of_them[: values.shape[0]] = values
            return min(likeliest_dimension(all_of_them, rows), int(values.shape[0]))
        if wanted == "kink":
            return max(1, kink(values))
        if wanted is None or isinstance(wanted, (int, np.integer)):
            return int(values.shape[0])
        shares = np.cumsum(values) / total if total > 0 else np.ones_like(values)
        return min(int(np.searchsorted(shares, float(wanted) - 1e-12)) + 1, int(values.shape[0]))

    def _keep(self, found: Spectrum, weight: float, less: int, dtype: Any, started: float) -> None:
        """The fitted attributes, in scikit-learn's scales."""
        sample = weight / (weight - 1.0) if weight > 1.0 else 1.0
        found.scaled(sample).check_range(dtype)
        found = found.first(self._chosen(found.values, found.total, weight, found.mean.shape[0]))
        self.n_components_ = k = int(found.values.shape[0])
        self.components_ = np.ascontiguousarray(found.vectors.T).astype(dtype)
        self.mean_ = found.mean.astype(dtype)
        self.explained_variance_ = (found.values * sample).astype(dtype)
        self.explained_variance_ratio_ = (found.values / (found.total or 1.0)).astype(dtype)
        self.singular_values_ = (np.sqrt(found.values) * np.sqrt(weight)).astype(dtype)
        rest = max(0.0, found.total - float(found.values.sum()))
        self.noise_variance_ = rest * sample / (less - k) if less > k else 0.0
        self._certify(found.certificate(self.tol, time.perf_counter() - started))


def _distinct(X: Matrix, known: Array, most: int) -> Array:
    """Codes of the distinct rows seen, at most so many: more of them say nothing."""
    for i in range(0, X.shape[0], FEW):
        if known.shape[0] >= most:
            break
        part = X[i : i + FEW]
        known = np.unique(np.concatenate([known, row_codes(part, np.zeros(part.shape[0]))]))
    return known[:most]


class PCA(Iterative, _Centered):
    """Principal component analysis.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import PCA
    >>> X = np.array([[0.0, 0.1], [1.0, 0.9], [2.0, 2.1], [3.0, 2.9]])
    >>> model = PCA(n_components=1).fit(X)
    >>> model.components_.round(2), model.explained_variance_ratio_.round(2)
    (array([[0.72, 0.69]]), array([1.]))
    >>> bool(np.isclose(model.reconstruction_error(X).mean(), model.certificate_.objective))
    True
    """

    n_components: Any = N_COMPONENTS
    whiten: bool = WHITEN
    solver: str = Parameter(
        "auto",
        Choice(*SOLVERS),
        'Eigenvectors of the covariance, of the Gram matrix of the rows, the singular value decomposition, "power" iteration '
        'with deflation, or a "randomized" Krylov space; by shape.',
    )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> PCA:
        """Find the directions."""
        started = time.perf_counter()
        X, rows, weight = self._rows_of_weight(X, sample_weight)
        n, d = rows.shape
        asked = isinstance(self.n_components, (int, np.integer))
        # Of a row and its copy the second adds no direction: a weight of 2 is the row twice.
        k = self._most(n if asked else _distinct(rows, np.empty(0, dtype=np.uint64), d + 1).shape[0], d)
        self.solver_ = choose_solver(n, d, k if asked else None) if self.solver == "auto" else self.solver
        effort = Effort(self.tol, self.max_iter, check_random_state(self.random_state))
        found = spectrum(rows, weight, k, self.solver_, effort)
        self.n_iter_ = found.iterations
        self._keep(found, float(weight.sum()), min(n, d), X.dtype, started)
        return self


class IncrementalPCA(_Centered):
    """Principal components of rows that come in blocks: the same as `PCA` of all of them, to rounding.

    What is kept between blocks is the mean and the scatter of the columns, of size n_features².

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import PCA, IncrementalPCA
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [3.0, 2.0, 1.0]
    >>> parts = IncrementalPCA(n_components=2).partial_fit(X[:40]).partial_fit(X[40:])
    >>> bool(np.allclose(parts.components_, PCA(n_components=2).fit(X).components_))
    True
    """

    n_components: Any = N_COMPONENTS
    whiten: bool = WHITEN
    batch_size: int | None = Parameter(
        None, Either(Nothing(), Integer(1)), "Rows that `fit` takes at a time; None is five for each column."
    )
    tol: float = TOL

    n_samples_seen_: float = Fitted("float", "Rows seen, or their weight.")

    def _forget(self) -> None:
        self._moments: Moments | None = None
        self._rows_seen = 0
        self._codes = np.empty(0, dtype=np.uint64)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> IncrementalPCA:
        """Find the directions, block after block."""
        X = check_x(self, X, reset=True, accept_sparse=("csr",))
        weight = check_sample_weight(sample_weight, X.shape[0])
        size = self.batch_size or 5 * X.shape[1]
        self._forget()
        blocks = [slice(i, i + size) for i in range(0, X.shape[0], size)]
        for rows in blocks:
            self._add(X[rows], weight[rows])
        return self._settle(X.dtype)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> IncrementalPCA:
        """Add rows to those already seen."""
        known = getattr(self, "_moments", None) is not None
        if not known:
            self._forget()
        X = check_x(self, X, reset=not known, accept_sparse=("csr",))
        weight = check_sample_weight(sample_weight, X.shape[0])
        before = self._moments, self._rows_seen, self._codes
        try:
            self._add(X, weight)
            return self._settle(X.dtype)
        except ValueError:
            self._moments, self._rows_seen, self._codes = before  # a block that is refused was not seen
            raise

    def _add(self, X: Any, weight: Array) -> None:
        kept = weight > 0
        rows = X[kept] if isinstance(X, np.ndarray) else X[kept].toarray()
        if rows.shape[0]:
            with np.errstate(over="ignore", invalid="ignore"):
                block = Moments.of(rows, weight[kept])
                moments = block if self._moments is None else self._moments + block
            self._moments = moments.checked()
            self._rows_seen += rows.shape[0]
            self._codes = _distinct(rows, self._codes, rows.shape[1] + 1)

    def variances(self) -> Array:
        """Variance of each column, over all rows seen."""
        assert self._moments is not None
        return np.diagonal(self._moments.covariance()[0]).copy()

    def _settle(self, dtype: Any) -> IncrementalPCA:
        started = time.perf_counter()
        assert self._moments is not None
        weight = float(self._moments.weight[0])
        covariance = self._moments.covariance()[0]
        size = float(np.abs(np.diagonal(covariance)).max(initial=0.0)) or 1.0
        d = covariance.shape[0]
        asked = isinstance(self.n_components, (int, np.integer))
        pairs = exact(covariance / size, self._most(self._rows_seen if asked else self._codes.shape[0], d))
        found = Spectrum.of(pairs, self._moments.mean[0], float(np.trace(covariance / size)), "covariance").scaled(size)
        self.n_samples_seen_ = weight
        self._keep(found, weight, min(self._rows_seen, d), dtype, started)
        return self
