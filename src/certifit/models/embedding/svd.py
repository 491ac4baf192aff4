"""The truncated singular value decomposition: principal components about zero, for rows whose zeros mean something.

    minimize over V (d × k, VᵀV = I)    (1/Σs_i) Σ s_i ‖x_i − VVᵀx_i‖²

Nothing is centered, so sparse rows stay sparse: counts of words become coordinates in which documents on one subject are close
(latent semantic analysis, Deerwester et al. 1990).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from certifit.models.cluster.bound import total_scatter
from certifit.models.embedding.projection import Iterative, Projection
from certifit.models.embedding.spectrum import SOLVERS, Effort, choose_solver, spectrum
from certifit.parameters import Choice, Integer, Parameter

__all__ = ["TruncatedSVD"]


class TruncatedSVD(Iterative, Projection):
    """The leading singular vectors of X, which stays as it is: sparse, and not centered.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from certifit import TruncatedSVD
    >>> X = sp.csr_array([[2.0, 1.0, 0.0, 0.0], [1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    >>> model = TruncatedSVD(n_components=2).fit(X)
    >>> model.singular_values_.round(3)
    array([3.   , 1.414])
    """

    n_components: int = Parameter(2, Integer(1), "How many directions, at most n_features.")
    solver: str = Parameter("auto", Choice(*SOLVERS), "As of `PCA`, without the mean.")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> TruncatedSVD:
        """Find the directions."""
        started = time.perf_counter()
        X, rows, weight = self._rows_of_weight(X, sample_weight)
        n, d = rows.shape
        if self.n_components > d:
            raise ValueError(f"n_components must be at most the number of columns of X, {d}; got {self.n_components}.")
        k = self.n_components
        # Of fewer rows than directions only the columns by columns know that many.
        self.solver_ = choose_solver(n, d, k) if self.solver == "auto" else self.solver
        if self.solver_ in ("gram", "svd") and k > n:
            self.solver_ = "covariance"
        effort = Effort(self.tol, self.max_iter, check_random_state(self.random_state))
        found = spectrum(rows, weight, k, self.solver_, effort, center=False)
        found.check_range(X.dtype)
        total, self.n_iter_ = float(weight.sum()), found.iterations
        self.components_ = np.ascontiguousarray(found.vectors.T).astype(X.dtype)
        self.singular_values_ = (np.sqrt(found.values) * np.sqrt(total)).astype(X.dtype)
        middle = np.asarray(rows.T @ (weight / total), dtype=np.float64).ravel() @ found.vectors
        spread = np.maximum(found.values - middle**2, 0.0)
        whole = total_scatter(rows, weight) / total
        self.explained_variance_ = spread.astype(X.dtype)
        self.explained_variance_ratio_ = (spread / (whole or 1.0)).astype(X.dtype)
        self._certify(found.certificate(self.tol, time.perf_counter() - started))
        return self
