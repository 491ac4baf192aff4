"""Selection by leaving out, again and again, what a model finds least important (Guyon, Weston, Barnhill and Vapnik 2002)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.axes import drawn
from certifit.data.gate import check_xy
from certifit.models.linear.regression import Ridge
from certifit.models.selection.by_model import ESTIMATOR, importance_of, weighs
from certifit.models.selection.selector import Selector
from certifit.parameters import Either, Fitted, Integer, Nothing, Parameter, Real, check_parameters

__all__ = ["RecursiveElimination", "eliminate"]


def eliminate(
    fit: Callable[[Array], Any], importance: Callable[[Any], Array], d: int, wanted: int, step: int
) -> tuple[Array, Any]:
    """The rank of each column, 1 for those that are kept, and the model on these.

    `fit(columns)` is a fitted model, `importance(model)` what it makes of each of its columns. Of equal importances the first
    column goes first.
    """
    rank = np.ones(d, dtype=np.int64)
    while (size := int((rank == 1).sum())) > wanted:
        columns = np.flatnonzero(rank == 1)
        order = np.argsort(importance(fit(columns)), kind="stable")
        gone = columns[order[: min(step, size - wanted)]]
        rank[rank > 1] += 1
        rank[gone] = 2
    return rank, fit(np.flatnonzero(rank == 1))


class RecursiveElimination(Selector, BaseEstimator):
    """Fit, leave out the least important columns, and fit again, until so many are left.

    What a model makes of a column depends on the columns beside it; after each step the others are judged anew, where
    `SelectFromModel` judges once. Coefficients compare columns only in like units: scale them first.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import RecursiveElimination
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> y = X[:, 1] - X[:, 4] + 0.1 * rng.normal(size=100)
    >>> model = RecursiveElimination(n_features=2).fit(X, y)
    >>> model.get_support(indices=True), int(model.ranking_.max())
    (array([1, 4]), 5)
    """

    estimator: Any = ESTIMATOR.but(text="What is fitted: copies of it. None is `Ridge`.")
    n_features: Any = Parameter(
        None,
        Either(Nothing(), Integer(1)),
        "How many columns to keep (all, where there are fewer); None is half of them.",
    )
    step: Any = Parameter(
        1,
        Either(Integer(1), Real(0, 1, open_low=True, open_high=True)),
        "How many columns leave at a time, or what share of all columns.",
    )

    ranking_: Array = Fitted(
        "array of shape (n_features,)", "1 for the columns that are kept, 2 for those that left last, and so on."
    )
    estimator_: Any = Fitted("estimator", "The model on the columns that are kept.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Eliminate columns."""
        check_parameters(self)
        model = self._model()
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, numeric_target=not is_classifier(model))
        options = {"sample_weight": weight} if weighs(model, weight) else {}
        d = X.shape[1]
        wanted = max(1, d // 2) if self.n_features is None else min(int(self.n_features), d)
        step = int(self.step) if self.step >= 1 else max(1, int(self.step * d))
        self.ranking_, self.estimator_ = eliminate(
            lambda columns: clone(model).fit(X[:, columns], y, **options), importance_of, d, wanted, step
        )
        self.support_ = self.ranking_ == 1
        return self

    @drawn
    def plot(self, ax: Any = None) -> Any:
        """How many fits each column stayed for: those that are kept for all."""
        check_is_fitted(self)
        fits = self.ranking_.max() + 1 - self.ranking_
        ax = self._bars(ax, fits, np.inf, "columns, those that are kept first", "fits with the column")
        ax.yaxis.get_major_locator().set_params(integer=True)
        return ax

    def _model(self) -> Any:
        return Ridge() if self.estimator is None else self.estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse, tags.input_tags.allow_nan = get_tags(self._model()).input_tags.sparse, False
        return tags
