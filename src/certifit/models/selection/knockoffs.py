"""Knockoffs: columns selected such that, on average, at most a given share of them is of no use.

Every column x_j gets a copy x̃_j that has the same correlations with all others but was made without y (Barber and Candès 2015):

    X̃ᵀX̃ = XᵀX = Σ,    X̃ᵀX = Σ − diag(s)

A column that says nothing beside the others is as likely to look better than its copy as worse. So among the columns with
W_j = |w_j| − |w̃_j| ≥ t, w from a lasso on both, about as many are useless as there are columns with W_j ≤ −t; the least t
at which (1 + #{W ≤ −t}) / #{W ≥ t} ≤ q bounds the expected share of useless ones by q, for y = Xβ + Gaussian noise and
any number of rows.

With rows drawn from a Gaussian law the copies may be drawn from their law given the row instead (Candès, Fan, Janson and Lv
2018): then nothing is asked of y. The copies are never made, since the lasso asks only for correlations, and these are drawn
directly (`copies.py`).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from certifit._types import Array
from certifit.axes import drawn
from certifit.data.gate import check_xy
from certifit.models.linear.regression import Lasso
from certifit.models.selection.copies import equal_distances, fixed_copies, largest_distances, model_copies
from certifit.models.selection.selector import DenseSelector
from certifit.models.selection.units import LEAST_PIVOT, InUnits
from certifit.parameters import RANDOM_STATE, Fitted, OneOf, Parameter, Real

__all__ = ["Knockoffs"]


class Knockoffs(DenseSelector, BaseEstimator):
    """Select columns with a bound on the expected share of useless ones among them.

    Each column is compared with a copy that was made without y; what does not beat its copy clearly is not selected. Without
    twice as many rows as columns, or where columns are combinations of others, nothing is, with a warning.

    The bound holds on average over the draw of copies and over the noise of y, which must be Gaussian around a linear model of
    the columns. With ``copies="model"`` it holds over the draw of the rows of X instead, which must be Gaussian, and y may be
    anything that depends on them, a class number too; their covariance is that of the rows given. Of few useful columns often
    none is selected, for a share of q among k columns can only be shown if k ≥ 1/q.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import Knockoffs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 40))
    >>> y = X[:, :12].sum(axis=1) + rng.normal(size=500)
    >>> Knockoffs(q=0.1, random_state=0).fit(X, y).get_support(indices=True)  # one of thirteen says nothing
    array([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 39])
    """

    q: float = Parameter(
        0.1,
        Real(0, 1, open_low=True, open_high=True),
        "Most useless columns among the selected ones, as an expected share.",
    )
    copies: str = OneOf(
        ("fixed", "model"),
        '"fixed": y is a linear model of the columns with Gaussian noise, whatever the columns are; "model": the rows of X are '
        "Gaussian, whatever y has to do with them.",
    )
    distance: str = OneOf(
        ("equal", "largest"),
        'How far copies are from their columns: "equal" for all, or with the "largest" sum, so that a few columns that are alike '
        "hold back no others.",
    )
    random_state: Any = RANDOM_STATE.but(text="Seed of the copies.")

    statistics_: Array = Fitted("array of shape (n_features,)", "W: by how much each column is better than its copy.")
    threshold_: float = Fitted("float", "Least W of a selected column; infinite if none can be selected.")

    weights_are_counts = True
    """How many rows there are decides what is noise."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Compare columns and copies."""
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, accept_sparse=False)
        data = InUnits.of(X, y, weight)
        gram, rows = data.gram(), float(weight.sum())
        useful = np.flatnonzero(np.diag(gram)[1:] > 0.5)
        self.statistics_ = np.zeros(X.shape[1])
        if useful.size and gram[0, 0] > 0.5:
            kept = 1 + useful
            self.statistics_[useful] = self._statistics(gram[np.ix_(kept, kept)], gram[kept, 0], rows)
        self.threshold_ = knockoff_threshold(self.statistics_, self.q)
        self.support_ = self.statistics_ >= self.threshold_
        return self

    def _statistics(self, correlations: Array, with_y: Array, rows: float) -> Array:
        d = correlations.shape[0]
        if rows - 1 < 2 * d:
            return self._nothing(
                f"copies need more than twice as many rows as columns; there are {rows:g} by weight, and {d} columns that are "
                "not constant. Give more rows, or fewer columns (SelectBest)",
                d,
            )
        least = float(np.linalg.eigvalsh(correlations)[0])
        if least <= LEAST_PIVOT:
            return self._nothing("columns are combinations of others; remove those that depend on others", d)
        s = equal_distances(correlations) if self.distance == "equal" else largest_distances(correlations)[0]
        draw = fixed_copies if self.copies == "fixed" else model_copies
        drawn_copies = draw(correlations, with_y, rows, s, check_random_state(self.random_state))
        both = np.block([[correlations, drawn_copies.with_columns.T], [drawn_copies.with_columns, drawn_copies.among]])
        # Rows with these correlations: the lasso sees no difference.
        factor = np.linalg.cholesky(both).T
        target = np.linalg.solve(factor.T, np.concatenate([with_y, drawn_copies.with_y]))
        noise = max(1.0 - float(target @ target), 0.0) / max(rows - 1 - 2 * d, 1.0)
        alpha = float(np.sqrt(2.0 * np.log(2 * d) * noise)) if d else 0.0
        model = Lasso(alpha=max(alpha, 1e-6) / (2 * d), fit_intercept=False, max_iter=10_000).fit(factor, target)
        size = np.abs(np.asarray(model.coef_, dtype=np.float64))
        return np.asarray(size[:d] - size[d:])

    @staticmethod
    def _nothing(why: str, d: int) -> Array:
        warnings.warn(f"Knockoffs: nothing can be selected, since {why}.", UserWarning, stacklevel=4)
        return np.zeros(d)

    @drawn
    def plot(self, ax: Any = None) -> Any:
        """The statistics in falling order, and the threshold."""
        return self._bars(
            ax, self.statistics_, self.threshold_, "columns, best first", "column less copy, |coefficient|"
        )


def knockoff_threshold(statistics: Array, q: float) -> float:
    """The least t > 0 with (1 + #{W ≤ −t}) / #{W ≥ t} ≤ q; infinite if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.models.selection.knockoffs import knockoff_threshold
    >>> knockoff_threshold(np.array([3.0, 2.0, 1.5, -1.0, 0.0]), 0.4)
    1.5
    """
    for t in np.unique(np.abs(statistics[statistics != 0])):
        if (1 + np.sum(statistics <= -t)) <= q * np.sum(statistics >= t):
            return float(t)
    return float("inf")
