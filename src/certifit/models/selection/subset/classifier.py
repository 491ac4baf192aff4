"""Logistic regression on the best columns.

    minimize over S, w, b    mean log loss of X_S w + b  +  price · |S|          |S| ≤ max_size

Two classes have one score, more have one each under the softmax; a column is in the subset for all classes or for none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.data.gate import check_x, check_xy
from certifit.data.targets import positive_class_weights, several_classes
from certifit.evaluation.losses import Logistic, Softmax
from certifit.models.linear.classifier import LinearClassifier
from certifit.models.logistic.probabilities import LogisticScores
from certifit.models.margin.separability import separability
from certifit.models.selection.subset.base import BaseSubset, LikelihoodInUnits
from certifit.optimization.objective.units import check_range
from certifit.parameters import CLASS_WEIGHT, Fitted
from certifit.progress import progress

__all__ = ["BestSubsetClassifier"]

LARGE = 4.0  # coefficient of a column in its own units, from which the classes may be separated


class BestSubsetClassifier(BaseSubset, LogisticScores, LinearClassifier):
    """Logistic regression on the best subset of the columns, with proof that no other is better.

    Minimizes the mean log loss over all subsets of each size up to `max_size`, and then chooses the size. The fit of many columns
    bounds that of all subsets of them: the third derivative of the loss is bounded by the second, so that its curvature cannot
    vanish suddenly. Where the search must be stopped at `max_nodes` or `time_limit`, the certificate says how far the subset is
    from the best at most.

    Where a plane of the chosen columns separates the classes no finite coefficients are best: the certificate is about the
    infimum, and says so.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import BestSubsetClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 12))
    >>> y = X[:, 3] - X[:, 7] + rng.logistic(size=300) > 0
    >>> model = BestSubsetClassifier(max_size=5).fit(X, y)
    >>> model.get_support(indices=True), model.certificate_.certified
    (array([3, 7]), True)
    >>> model.transform(X).shape, model.certificate_.claim
    ((300, 2), 'best of all subsets of 2 columns')
    """

    class_weight: Any = CLASS_WEIGHT
    __order__ = ("max_size", "choose", "max_nodes", "tol", "class_weight", "time_limit", "verbose")

    classes_: Array = Fitted("array of shape (n_classes,)", "Labels.")
    coef_: Array = Fitted(
        "array of shape (1, n_features) or (n_classes, n_features)",
        "Coefficients, zero for columns that are not in the subset.",
    )
    intercept_: Array = Fitted("array of shape (1,) or (n_classes,)", "Intercepts.")

    ylabel = "mean log loss"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BestSubsetClassifier:
        """Find the best subsets, and choose one."""
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, numeric_target=False, accept_sparse=False)
        self.classes_, codes = several_classes(self, y)
        K = self.classes_.shape[0]
        weight = positive_class_weights(self.class_weight, self.classes_, codes, weight)
        loss, target = (Logistic(), codes.astype(np.float64)) if K == 2 else (Softmax(K), codes)
        price = 0.0 if isinstance(self.choose, str) else float(self.choose)
        with progress(int(self.verbose), type(self).__name__) as clock:
            data = LikelihoodInUnits.of(X, target, weight, loss)
            search, path = self._search(data, clock)
            n = float(weight.sum())
            size = self._size(path, 2.0 * n * path.objectives, n, price, data.likelihood.n_scores)
            self.support_, self.path_ = path.supports[size], path
            w, objective = search.refitted(self.support_[data.useful])
            coef, intercept = data.in_units_of_the_data(w, self.support_)
            if K > 2:  # the first class has no score of its own: now all have, and they sum to zero
                coef, intercept = np.vstack([np.zeros((1, X.shape[1])), coef]), np.r_[0.0, intercept]
                coef, intercept = coef - coef.mean(axis=0), intercept - intercept.mean()
            self.coef_, self.intercept_ = coef.astype(X.dtype), intercept
            check_range(self.coef_, self.intercept_)
            note = self._separated(X[:, self.support_], codes, float(np.abs(w[1:]).max(initial=0.0)))
            self._certify(self._proof(path, size, objective, data.likelihood.scale, price, clock, note))
        return self

    def _separated(self, X: Array, codes: Array, largest: float) -> str:
        """Whether coefficients in units of the columns are large for a reason."""
        if largest <= LARGE or not separability(X, codes, self.classes_.shape[0], fit_intercept=True).separable:
            return ""
        return "A plane of these columns separates the classes: larger coefficients would fit ever better."

    def decision_function(self, X: Any) -> Array:
        """Scores: shape (n,) for two classes (positive: the second class), (n, K) for more."""
        check_is_fitted(self)
        return super().decision_function(check_x(self, X, reset=False, accept_sparse=False))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the probability of each class, zero where the probability rounds to one in the precision of X."""
        found = super().predict_log_proba(X)
        return np.asarray(np.where(found > -0.5 * np.finfo(found.dtype).eps, np.zeros_like(found), found))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
