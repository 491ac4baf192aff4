"""Stability selection: the columns that are chosen again and again, whatever half of the rows chooses.

The rows are dealt into two halves many times, and each half names the `n_features` columns it finds best. A column is
selected if it is named by at least a share `threshold` of the halves. Of d columns, at most

    n_features² / ((2 · threshold − 1) · d)

useless ones are expected to be selected (Meinshausen and Bühlmann 2010; halves in pairs: Shah and Samworth 2013), if useless
columns are named as often as each other, and no more often than at random.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import check_random_state

from certifit._types import Array
from certifit.axes import drawn
from certifit.data.equal_rows import MOST_REPETITIONS, merge_rows
from certifit.data.gate import check_xy
from certifit.data.targets import encode_labels
from certifit.models.linear.path.path import ElasticPath
from certifit.models.selection.by_model import importance_of, weighs
from certifit.models.selection.selector import DenseSelector
from certifit.parameters import (
    RANDOM_STATE,
    Either,
    Fitted,
    Integer,
    Learner,
    Nothing,
    Parameter,
    Real,
    check_parameters,
)

__all__ = ["StabilitySelection"]


class StabilitySelection(DenseSelector, BaseEstimator):
    """Select the columns that most halves of the rows choose.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import StabilitySelection
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = X[:, 3] - X[:, 7] + X[:, 20] + rng.normal(size=200)
    >>> model = StabilitySelection(n_features=5, random_state=0).fit(X, y)
    >>> model.get_support(indices=True), model.error_bound_
    (array([ 3,  7, 20]), 0.625)
    """

    estimator: Any = Parameter(
        None,
        Either(Nothing(), Learner(example="LogisticRegression(penalty='l1')")),
        "What is fitted on each half: it needs `coef_` or `feature_importances_`. None is the lasso, of which the first columns "
        "to enter count.",
    )
    n_features: int = Parameter(5, Integer(1), "How many columns each half names.")
    threshold: float = Parameter(
        0.9, Real(0.5, 1, open_low=True), "Share of the halves that must name a column for it to be selected."
    )
    n_pairs: int = Parameter(50, Integer(1), "How often the rows are dealt into two halves.")
    random_state: Any = RANDOM_STATE

    frequencies_: Array = Fitted("array of shape (n_features,)", "Share of the halves that name each column.")
    error_bound_: float = Fitted("float", "How many useless columns are expected to be selected, at most.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Deal, and count who is named."""
        check_parameters(self)
        classes = self.estimator is not None and is_classifier(self.estimator)
        X, y, weight = check_xy(
            self, X, y, sample_weight=sample_weight, accept_sparse=False, numeric_target=not classes
        )
        d = X.shape[1]
        codes = encode_labels(y)[1] if classes else y
        X, codes, weight = merge_rows(X, codes.astype(np.float64), weight)
        rng = check_random_state(self.random_state)
        named = np.zeros(d)
        for _ in range(self.n_pairs):
            first = halved(weight, rng)
            for half in (first, weight - first):
                named[self._best(X, codes, half)] += 1
        self.frequencies_ = named / (2 * self.n_pairs)
        self.support_ = self.frequencies_ >= self.threshold
        self.error_bound_ = min(self.n_features, d) ** 2 / ((2 * self.threshold - 1) * d)
        return self

    def _best(self, X: Array, y: Array, weight: Array) -> Array:
        """The columns that a half names: the best, none that says nothing."""
        kept = weight > 0
        if kept.sum() < 2 or np.ptp(y[kept]) == 0:
            return np.empty(0, dtype=np.intp)
        if self.estimator is None:
            coefs = ElasticPath(n_alphas=50).solve(X[kept], y[kept], weight[kept]).coefs != 0
            score = np.where(coefs.any(axis=0), coefs.shape[0] - coefs.argmax(axis=0), 0).astype(np.float64)
        else:
            options = {"sample_weight": weight[kept]} if weighs(self.estimator, weight) else {}
            score = importance_of(clone(self.estimator).fit(X[kept], y[kept], **options))
        best = np.argsort(-score, kind="stable")[: self.n_features]
        return np.asarray(best[score[best] > 0])

    @drawn
    def plot(self, ax: Any = None) -> Any:
        """How often each column is named, in falling order, and the threshold."""
        return self._bars(
            ax, self.frequencies_, self.threshold, "columns, most stable first", "share of halves that name it"
        )


def halved(weight: Array, rng: Any) -> Array:
    """The part of each weight in the first half: a coin for each repetition where weights count them, else for each row."""
    if not np.mod(weight, 1.0).any() and weight.sum() <= MOST_REPETITIONS * weight.shape[0]:
        return np.asarray(rng.binomial(weight.astype(np.int64), 0.5), dtype=np.float64)
    return np.where(rng.uniform(size=weight.shape) < 0.5, weight, 0.0)
