"""One class: the smallest weighted mean of the rows in feature space, and the region where rows look like it.

    minimize over β    ½‖Σ β_i φ(x_i)‖²      0 ≤ β_i ≤ s_i,   Σβ = ν·Σs

The function f(x) = Σ β_i k(x_i, x) is at least ρ on all but a share ν of the rows; what is below ρ is an outlier.
Schölkopf et al. (2001), Estimating the support of a high-dimensional distribution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import OutlierMixin

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.gate import check_sample_weight, check_x, like_input
from certifit.models.kernel.machine import FIRST, LAST, Machine
from certifit.optimization.dual.smo import Dual
from certifit.parameters import Fitted, Parameter, Real, check_parameters
from certifit.progress import progress

__all__ = ["OneClassSVM"]

ROUNDING = 1e-6  # share of ρ below it that still is the edge of the region
CENTERED = 1e-8  # of what parallel rows would have: where rows cancel, the value of equal weights is rounding


class OneClassSVM(OutlierMixin, Machine):
    """The region where a share 1 − `nu` of the rows lives; rows outside are outliers.

    Minimizes ½‖Σ β_i φ(x_i)‖² over weights 0 ≤ β_i ≤ 1 with Σβ = nu·n. At most `nu` of the rows are outliers, at least `nu` of
    them support. The gap is relative to the value of equal weights, which make f a kernel density (where rows cancel, to 1e-8 of
    what it would be if all were the longest of them).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import OneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = OneClassSVM(nu=0.1, gamma=0.5).fit(X)
    >>> model.predict([[0.0, 0.0], [6.0, 6.0]]), bool((model.predict(X) < 0).mean() <= 0.11)
    (array([ 1, -1]), True)
    """

    nu: float = Parameter(
        0.5, Real(0, 1, open_low=True), "Upper limit of the share of outliers, lower limit of that of support vectors."
    )

    offset_: float = Fitted("float", "ρ: `decision_function` is `score_samples` minus it.")
    certificate_: Certificate = Fitted("Certificate", "How far the weights are from the best ones.")

    __order__ = (*FIRST, "nu", *LAST)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Fit the model.

        With ``kernel="precomputed"`` X is the square matrix of similarities; where a kernel takes no numbers, a sequence of
        what it takes.
        """
        check_parameters(self)
        gated = check_x(self, self._gated(X), reset=True)
        weight = check_sample_weight(sample_weight, gated.shape[0])
        kept = weight > 0
        gated, weight = gated[kept], weight[kept]
        with progress(self.verbose, type(self).__name__) as clock:
            sample = self._sample(X, gated, np.zeros(weight.shape[0]), weight, kept)
            gram, zero, most = sample.gram, np.zeros((1, sample.weight.shape[0])), sample.weight[None]
            dual = Dual(np.arange(most.shape[1]), zero, zero, zero, most, float(self.nu) * most)
            parallel = float(dual.start.sum()) ** 2 * max(gram.largest(), 0.0)  # βᵀKβ of rows that point the same way
            scale = 0.5 * max(self._energy(gram, dual), CENTERED * parallel)
            (solved,) = self._solved(gram, [dual], np.array([scale]), clock)
            certificate = self._certificate(solved.turned(), solved.mass**2, scale, clock, self._proof(gram))
        self.intercept_ = solved.evidence.intercepts.copy()
        self.offset_ = -float(self.intercept_[0])
        self._keep_one(sample, solved, certificate)
        return self

    def score_samples(self, X: Any) -> Array:
        """f(x), large where rows are dense.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        array of shape (n_samples,)
        """
        rows, scores = self._scores(X)
        return like_input(rows, scores[:, 0])

    def decision_function(self, X: Any) -> Array:
        """f(x) − ρ: negative for outliers."""
        rows, scores = self._scores(X)
        return like_input(rows, scores[:, 0] - self.offset_)

    def predict(self, X: Any) -> Array:
        """1 for rows of the class, −1 for outliers."""
        # Rows on the edge have f = ρ exactly: they belong to the class, and rounding must not decide.
        edge = ROUNDING * max(abs(self.offset_), 1e-300) if hasattr(self, "offset_") else 0.0
        return np.where(self.decision_function(X) >= -edge, 1, -1)
