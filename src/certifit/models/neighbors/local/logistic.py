"""Locally weighted logistic regression: for every query a classifier of its own, in which near rows weigh more.

    minimize over β   (1/Σw) Σ_i w_i(x) log(1 + exp(−t_i f_i)) + alpha·½‖β‖²,   f_i = f₀ + β·φ((x_i − x)/h),   t_i = ±1

The log odds at x are f₀ + β_0, with f₀ those of the class among all rows: where the neighbors leave it open, the shares of the
classes answer. Of more than two classes each is told from the others, and the probabilities are brought to the sum one.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

import certifit._native.local as _native
from certifit._types import Array
from certifit.data.gate import check_x, check_xy
from certifit.data.targets import several_classes
from certifit.models.neighbors.local.base import PAIRS, BaseLocal, Blocks, LocalShape
from certifit.parameters import ALPHA, TOL, Fitted, Real

__all__ = ["LocallyWeightedLogisticRegression"]

NOTE = "Every prediction is a strongly convex fit of its own, made when it is asked for; the rows as a whole have no objective."


class LocallyWeightedLogisticRegression(LocalShape, ClassifierMixin, BaseLocal):
    """Logistic regression around every query.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LocallyWeightedLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = np.where((X**2).sum(axis=1) < 1.4, "in", "out")
    >>> LocallyWeightedLogisticRegression(bandwidth=0.5).fit(X, y).predict([[0.0, 0.0], [2.0, 0.0]])
    array(['in', 'out'], dtype='<U3')
    """

    alpha: float = ALPHA.but(0.01, domain=Real(0, open_low=True))
    tol: float = TOL

    classes_: Array = Fitted("array of shape (n_classes,)", "The labels in sorted order.")

    weights_are_counts = True  # one copy is left out

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LocallyWeightedLogisticRegression:
        """Keep the rows, and choose the width."""
        started = time.perf_counter()
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, accept_sparse=False, numeric_target=False)
        self._check_terms(X.shape[1])
        check_classification_targets(y)
        self.classes_, codes = several_classes(self, y)
        self._single, K = X.dtype == np.float32, self.classes_.shape[0]
        member = (codes[:, None] == (np.arange(1, 2) if K == 2 else np.arange(K))).astype(np.float64)
        # Not of a share and one minus it: of a class of nearly all the weight nothing is left of the difference.
        self._base = np.log(weight @ member) - np.log(weight @ (1.0 - member))
        self._blocks = Blocks.of(X, member, weight, self._threads())
        every = np.bincount(codes, weights=weight)
        every = every / every.sum()
        self._settle(started, NOTE, float(-(every * np.log(every)).sum()))
        return self

    def decision_function(self, X: Any) -> Array:
        """Log odds: of the second class of two, shape (n_queries,); of each class against the others, (n_queries, n_classes)."""
        odds = self._odds(self._queries(X), self.bandwidth_, self.fraction_, None)
        shown = odds[:, 0] if odds.shape[1] == 1 else odds
        return shown.astype(np.float32) if self._single else shown

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, shape (n_queries, n_classes)."""
        found = _probabilities(self._odds(self._queries(X), self.bandwidth_, self.fraction_, None))
        return found.astype(np.float32) if self._single else found

    def predict(self, X: Any) -> Array:
        """The most probable label of each query."""
        odds = self._odds(self._queries(X), self.bandwidth_, self.fraction_, None)
        best = (odds[:, 0] > 0).astype(np.intp) if odds.shape[1] == 1 else odds.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _queries(self, X: Any) -> Array:
        check_is_fitted(self, "bandwidth_")
        return self._blocks.queries(check_x(self, X, reset=False, accept_sparse=False))

    def _odds(self, queries: Array, width: float | None, fraction: float | None, left: Array | None) -> Array:
        """Log odds at queries in the units of the blocks; query i leaves one copy of row left[i] out."""
        blocks = self._blocks
        odds, missing = np.empty((queries.shape[0], blocks.y.shape[1])), np.empty(queries.shape[0])
        objective = _native.Objective(self.alpha, self.tol)
        lens = self._lens(width, fraction)
        _native.classify(
            blocks.table(),
            lens,
            objective,
            self._base,
            queries,
            left,
            1.0 / blocks.copy,
            odds,
            missing,
            self._threads(),
        )
        return odds

    def _error(self, width: float | None, fraction: float | None) -> float:
        """The mean logarithmic loss of rows that are left out."""
        blocks = self._blocks
        rows = blocks.some(PAIRS / 20, 100).astype(np.int64)
        p = _probabilities(self._odds(blocks.X[rows], width, fraction, rows))
        member = blocks.y[rows]
        truth = np.column_stack([1 - member, member]) if member.shape[1] == 1 else member
        lost = -np.log(np.maximum((p * truth).sum(axis=1), 1e-300))
        return float(np.average(lost, weights=blocks.s[rows]))


def _probabilities(odds: Array) -> Array:
    if odds.shape[1] == 1:
        return np.column_stack([expit(-odds[:, 0]), expit(odds[:, 0])])
    return np.asarray(softmax(log_expit(odds), axis=1))
