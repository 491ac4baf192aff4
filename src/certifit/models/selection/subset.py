"""Least squares on the best columns: the L0 penalty, solved exactly.

    minimize over S, w, b    mean ½(y − X_S w − b)²  +  price · |S|          |S| ≤ max_size

For each size the best subset is found by branch and bound (`native/subset/subset.hpp`), which leaves aside only what it has
proven to be no better. The size is then the one with the least price, AIC or BIC.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

import certifit._native.subset as _native
from certifit._types import Array
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.data.gate import check_x, check_xy
from certifit.models.selection.selector import SelectorOfSizes
from certifit.models.selection.units import LEAST_PIVOT, InUnits
from certifit.names import stored
from certifit.parameters import TOL, Choice, Either, Fitted, Integer, Nothing, Parameter, Real
from certifit.progress import progress
from certifit.representation.design.products import matvec

__all__ = ["BestSubset", "SubsetPath"]

PERFECT = 1e-12  # share of the variance of y


@stored("SubsetPath")
class SubsetPath(NamedTuple):
    """The best subset of each size; unpacks as ``supports, objectives, bounds, nodes``."""

    supports: Array
    """Which columns, shape (max_size + 1, n_features): row s has s of them (fewer where columns depend on each other)."""
    objectives: Array
    """mean ½(y − f)² of each, in the units of y."""
    bounds: Array
    """What no subset of that size can go below."""
    nodes: int
    """Subsets that were looked at."""


class BestSubset(SelectorOfSizes, RegressorMixin, CertifiedEstimator):
    """Least squares on the best subset of the columns, with proof that no other is better.

    Minimizes mean ½(y − X_S w − b)² over all subsets S of each size up to `max_size`, and then chooses the size. The search
    is exact: branch and bound on the correlations, with bounds that add up over the columns left out. It is fast where columns
    are not nearly dependent (40 columns take milliseconds); where the search must be stopped at `max_nodes`, the certificate
    says how far the subset is from the best at most.

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
    >>> BestSubset(max_size=5, choose=10.0).fit(X, y).support_.sum()  # too dear, each of them
    np.int64(0)
    """

    max_size: int | None = Parameter(10, Either(Integer(0), Nothing()), "Most columns of a subset; None sets no limit.")
    choose: Any = Parameter(
        "bic",
        Either(Choice("bic", "aic", "size"), Real(0)),
        'Which size: the one with the least BIC or AIC, `max_size` itself ("size"), or the one with the least '
        "mean ½(y − f)² + price·size for a number, the price of a column.",
    )
    max_nodes: int = Parameter(1_000_000, Integer(1), "Most subsets to look at before the search is stopped.")
    tol: float = TOL

    coef_: Array = Fitted("array of shape (n_features,)", "Coefficients, zero for columns that are not in the subset.")
    intercept_: float = Fitted("float", "Intercept b.")
    path_: SubsetPath = Fitted("SubsetPath", "The best subset of each size.")
    certificate_: Certificate = Fitted("Certificate", "Proof that no other subset is better.")

    weights_are_counts = True
    """BIC knows how many rows there are."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Find the best subsets, and choose one."""
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, accept_sparse=False)
        with progress(0, type(self).__name__) as clock:
            data = InUnits.of(X, y, weight)
            supports, shares, bounds, nodes = best_subsets(data.gram(), self.max_size, self.max_nodes)
            price = 0.0 if isinstance(self.choose, str) else float(self.choose) / data.scale[0] / data.scale[0]
            size = self._size(shares, float(weight.sum()), price, np.linalg.matrix_rank(data.rows[:, 1:]))
            self.support_ = supports[size]
            coef, self.intercept_, share = data.least_squares(self.support_)
            self.coef_ = coef.astype(X.dtype)
            words = f"subsets of {size} column{'' if size == 1 else 's'}"
            objective, bound = 0.5 * share, 0.5 * bounds[size]
            if not isinstance(self.choose, str):
                words = f"subsets of at most {supports.shape[0] - 1} columns"
                costs = price * np.arange(supports.shape[0])
                objective, bound = objective + costs[size], float((0.5 * bounds + costs).min())
            unit = data.scale[0] * data.scale[0]
            self.path_ = SubsetPath(supports, 0.5 * unit * shares, 0.5 * unit * bounds, nodes)
            certificate = Certificate(
                "branch and bound",
                objective=objective,
                bound=bound,
                scale=0.5 if shares[0] > 0 else 0.0,
                tol=self.tol,
                iterations=nodes,
                seconds=clock.seconds,
                note=""
                if nodes < self.max_nodes
                else f"The search was stopped after max_nodes={self.max_nodes} subsets.",
                claim=f"best of all {words}",
            )
        self._certify(certificate.rescaled(unit))
        return self

    def _size(self, shares: Array, n: float, price: float, rank: int) -> int:
        """The size that is wanted."""
        sizes = np.arange(shares.shape[0])
        if self.choose == "size":
            return int(sizes[-1])
        if not isinstance(self.choose, str):
            return int(np.argmin(0.5 * shares + price * sizes))
        # What rounding leaves of a perfect fit says nothing, nor does the perfect fit of as many columns as there are rows.
        deviance = n * np.log(np.maximum(shares, PERFECT))
        deviance[(sizes >= max(rank, 1)) & (rank < self.n_features_in_) & (shares <= PERFECT)] = np.inf
        return int(np.argmin(deviance + sizes * (np.log(n) if self.choose == "bic" else 2.0)))

    def predict(self, X: Any) -> Array:
        """Predictions of y."""
        check_is_fitted(self)
        X = check_x(self, X, reset=False, accept_sparse=False)
        return np.asarray(matvec(X, self.coef_.astype(np.float64)) + self.intercept_).astype(X.dtype, copy=False)

    def _draw(self, ax: Any) -> str:
        sizes = np.arange(self.path_.objectives.shape[0])
        ax.fill_between(sizes, self.path_.bounds, self.path_.objectives, alpha=0.25, label="not ruled out")
        ax.plot(sizes, self.path_.objectives, marker="o", label="best subset found")
        return "mean ½(y − f)²"


def best_subsets(gram: Array, most: int | None = None, max_nodes: int = 1_000_000) -> tuple[Array, Array, Array, int]:
    """Best subsets of every size up to `most`, from the correlations of (y, X).

    Parameters
    ----------
    gram : array of shape (1 + d, 1 + d)
        Diagonal 1, or 0 for what is constant.
    most : int, optional
        Largest size; all by default.
    max_nodes : int
        Most subsets to look at.

    Returns
    -------
    supports : array of bool of shape (most + 1, d)
    shares, bounds : array of shape (most + 1,)
        Residual sum of squares of each subset, and what none of its size goes below.
    nodes : int
        Subsets looked at.
    """
    d = gram.shape[0] - 1
    most = d if most is None else min(most, d)
    useful = np.flatnonzero(np.diag(gram)[1:] > 0.5)
    supports = np.zeros((most + 1, d), dtype=bool)
    if not useful.size:
        return supports, np.full(most + 1, gram[0, 0]), np.full(most + 1, gram[0, 0]), 0
    kept = np.r_[0, 1 + useful]
    inner = np.ascontiguousarray(gram[np.ix_(kept, kept)])
    delta, smallest = separable_part(inner[1:, 1:])
    # An entry of an inverse is wrong by its size times this, and so is what is computed from it.
    slack = 16.0 * useful.size * np.finfo(np.float64).eps / smallest
    found, aside, chosen, nodes = _native.best_subsets(
        inner, delta, min(most, useful.size), LEAST_PIVOT, slack, max_nodes
    )
    shares = np.full(most + 1, np.inf)
    bounds = np.full(most + 1, np.inf)
    shares[: found.shape[0]], bounds[: found.shape[0]] = found, np.minimum(found, aside)
    supports[: found.shape[0], useful] = chosen.astype(bool)
    for size in range(1, most + 1):  # fewer columns that do as well: a further one adds nothing
        if not shares[size] < shares[size - 1]:
            shares[size], supports[size] = shares[size - 1], supports[size - 1]
        bounds[size] = min(bounds[size], bounds[size - 1])
    return supports, shares, np.maximum(0.0, bounds - slack), int(nodes)


def separable_part(correlation: Array) -> tuple[Array, float]:
    """A diagonal below the matrix, diag(δ) ⪯ R, and the least eigenvalue of R that is not rounding.

    With v_j the share of x_j that the other columns leave unexplained, δ = λ·v for the largest λ: the smallest
    eigenvalue of R in the units √v.
    """
    spectrum = np.linalg.eigvalsh(correlation)
    smallest = float(spectrum[spectrum > LEAST_PIVOT][0])
    if spectrum[0] <= LEAST_PIVOT:
        return np.zeros(correlation.shape[0]), smallest
    unexplained = 1.0 / np.diag(np.linalg.inv(correlation))
    root = np.sqrt(unexplained)
    factor = float(np.linalg.eigvalsh(correlation / np.outer(root, root))[0])
    rounding = 16.0 * correlation.shape[0] * np.finfo(np.float64).eps / smallest
    return np.maximum(0.0, factor - rounding) * unexplained, smallest
