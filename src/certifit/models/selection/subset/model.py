"""Regression on the best columns: the L0 penalty, solved exactly.

    minimize over S, w, b    mean ℓ(y, X_S w + b)  +  price · |S|          |S| ≤ max_size

For each size the best subset is found by branch and bound, which leaves aside only what it has proven to be no better: for
least squares from correlations alone (`native/subset/subset.hpp`), for the Poisson and the Gamma deviance by fits whose
curvature bounds those of all subsets (`branching.py`). The size is then the one with the least price, AIC or BIC.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln, polygamma
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.data.gate import check_x, check_xy
from certifit.evaluation.losses import Gamma, Loss, Poisson
from certifit.models.selection.subset.base import BaseSubset, LikelihoodInUnits, SubsetPath
from certifit.models.selection.subset.least_squares import best_subsets
from certifit.models.selection.units import InUnits
from certifit.optimization.objective.units import check_range
from certifit.parameters import Choice, Fitted, Parameter
from certifit.progress import Progress, progress
from certifit.representation.design.products import matvec

__all__ = ["BestSubset"]

PERFECT = 1e-12  # share of the variance of y, or mean deviance: what rounding leaves of a perfect fit
NARROW = 1e-4  # mean ½ deviance below which the first guess of the shape of a Gamma is exact enough
FAMILIES: dict[str, Loss] = {"poisson": Poisson(), "gamma": Gamma()}


class BestSubset(RegressorMixin, BaseSubset):
    """Regression on the best subset of the columns, with proof that no other is better.

    Minimizes the mean loss over all subsets of each size up to `max_size`, and then chooses the size: ½(y − f)², or half the
    Poisson or Gamma deviance of e^f. The search is exact: branch and bound, with bounds that add up over the columns left out.
    It is fast where columns are not nearly dependent (40 columns take milliseconds for least squares, seconds for a deviance);
    where the search must be stopped at `max_nodes` or `time_limit`, the certificate says how far the subset is from the best at
    most.

    Columns that others explain up to 1e-11 of their variance count as combinations of them.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import BestSubset
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 12))
    >>> y = 2 * X[:, 3] - X[:, 7] + 0.5 * rng.normal(size=200)
    >>> model = BestSubset(max_size=5).fit(X, y)
    >>> model.get_support(indices=True), model.certificate_.certified
    (array([3, 7]), True)
    >>> print(model.certificate_.claim)
    best of all subsets of 2 columns
    >>> int(BestSubset(max_size=5, choose=10.0).fit(X, y).support_.sum())  # too dear, each of them
    0
    >>> counts = rng.poisson(np.exp(0.5 * X[:, 1] - 0.5 * X[:, 4]))
    >>> BestSubset(max_size=5, loss="poisson").fit(X, counts).get_support(indices=True)
    array([1, 4])
    """

    loss: str = Parameter(
        "squared", Choice("squared", *FAMILIES), "The loss; the mean is e^f for the Poisson and the Gamma deviance."
    )
    __order__ = ("max_size", "choose", "max_nodes", "tol", "loss", "time_limit", "verbose")

    coef_: Array = Fitted("array of shape (n_features,)", "Coefficients, zero for columns that are not in the subset.")
    intercept_: float = Fitted("float", "Intercept b.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Find the best subsets, and choose one."""
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, accept_sparse=False)
        with progress(int(self.verbose), type(self).__name__) as clock:
            if self.loss == "squared":
                self._least_squares(X, y, weight, clock)
            else:
                self._deviance(X, y, weight, clock)
        check_range(self.coef_, self.intercept_)
        return self

    def _least_squares(self, X: Array, y: Array, weight: Array, clock: Progress) -> None:
        data = InUnits.of(X, y, weight)
        supports, shares, bounds, nodes = best_subsets(data.gram(), self.max_size, self.max_nodes, self._seconds)
        path = SubsetPath(supports, 0.5 * shares, 0.5 * bounds, nodes).limited(0.5 * data.concealed_share())
        price = 0.0 if isinstance(self.choose, str) else float(self.choose) / data.scale[0] / data.scale[0]
        n, rank = float(weight.sum()), _rank(data.rows[:, 1:])
        size = self._size(path, self._spread(n * np.log(np.maximum(shares, PERFECT)), shares, rank), n, price)
        self.support_ = supports[size]
        coef, self.intercept_, share = data.least_squares(self.support_)
        self.coef_ = coef.astype(X.dtype)
        unit = data.scale[0] * data.scale[0]
        self.path_ = path.rescaled(unit)
        certificate = self._proof(path, size, 0.5 * share, 0.5 if shares[0] > 0 else 0.0, price, clock)
        self._certify(certificate.rescaled(unit))

    def _deviance(self, X: Array, y: Array, weight: Array, clock: Progress) -> None:
        loss = FAMILIES[self.loss]
        loss.check_target(y)
        constant = float(loss.optimal_constant(y, weight))
        if not math.isfinite(constant):
            raise ValueError("y is zero in every row: there is nothing to explain, and no finite intercept is best.")
        # With a mean of one, scores are near zero. The Poisson deviance is measured in the unit of y; that of Gamma has none.
        level = math.exp(constant)
        unit = level if isinstance(loss, Poisson) else 1.0
        data = LikelihoodInUnits.of(X, y / level, weight, loss)
        search, path = self._search(data, clock)
        price = 0.0 if isinstance(self.choose, str) else float(self.choose) / unit
        n = float(weight.sum())
        if isinstance(loss, Poisson):
            deviances = 2.0 * n * unit * path.objectives
        else:
            rank = _rank(data.likelihood.Z[:, 1:])
            deviances = self._spread(_gamma_deviances(path.objectives, n), path.objectives, rank)
        size = self._size(path, deviances, n, price)
        self.support_, self.path_ = path.supports[size], path.rescaled(unit)
        w, objective = search.refitted(self.support_[data.useful])
        coef, intercept = data.in_units_of_the_data(w, self.support_)
        self.coef_, self.intercept_ = coef[0].astype(X.dtype), float(intercept[0]) + constant
        self._certify(self._proof(path, size, objective, data.likelihood.scale, price, clock).rescaled(unit))

    def _spread(self, deviances: Array, left: Array, rank: int) -> Array:
        """Deviances where the spread is unknown: a perfect fit of as many columns as there are rows says nothing."""
        sizes = np.arange(left.shape[0])
        idle = (sizes >= max(rank, 1)) & (rank < self.n_features_in_) & (left <= PERFECT)
        return np.where(idle, np.inf, deviances)

    def predict(self, X: Any) -> Array:
        """Predictions of y."""
        check_is_fitted(self)
        X = check_x(self, X, reset=False, accept_sparse=False)
        f = np.asarray(matvec(X, self.coef_.astype(np.float64)) + self.intercept_)
        if self.loss != "squared":
            with np.errstate(over="ignore"):
                f = FAMILIES[self.loss].predict(f)
        return f.astype(X.dtype, copy=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss != "squared"
        return tags

    def _draw(self, ax: Any) -> str:
        super()._draw(ax)
        return "mean ½(y − f)²" if self.loss == "squared" else "mean ½ deviance"


def _rank(columns: Array) -> int:
    """Of a matrix that may have no columns, which NumPy 1 refuses."""
    return int(np.linalg.matrix_rank(columns)) if columns.shape[1] else 0


def _gamma_deviances(objectives: Array, n: float) -> Array:
    """−2 ln likelihood of Gamma, its shape k chosen best: ln k − ψ(k) = mean ½ deviance, since the means fit on average."""
    half = np.maximum(objectives, PERFECT)
    shape = (3.0 - half + np.sqrt((half - 3.0) ** 2 + 24.0 * half)) / (12.0 * half)
    wide = half > NARROW
    for _ in range(4):  # Newton in 1/k (Minka 2002)
        k = shape[wide]
        change = (np.log(k) - digamma(k) - half[wide]) / (k**2 * (1.0 / k - polygamma(1, k)))
        shape[wide] = 1.0 / (1.0 / k + change)
    return np.asarray(-2.0 * n * (shape * np.log(shape) - gammaln(shape) - shape * (1.0 + half)))
