"""Naive Bayes with one kind of column: Gaussian, counts, yes and no, categories."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array, Matrix, is_sparse
from certifit.models.bayes.naive.factors import FACTORS, LOWEST, Categorical, Factor
from certifit.models.bayes.naive.model import FIT_PRIOR, SMOOTHINGS, VAR_SMOOTHING, BaseNaive
from certifit.models.bayes.shares import PRIORS
from certifit.parameters import Any_, Either, Fitted, Flag, Nothing, Parameter, Real

COUNT = "array of shape (K, n_features)"

__all__ = ["BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB"]


class GaussianNB(BaseNaive):
    """Naive Bayes with a normal density for each class and column.

    Examples
    --------
    >>> from certifit import GaussianNB
    >>> model = GaussianNB().fit([[0.0], [1.0], [4.0], [5.0]], ["a", "a", "b", "b"])
    >>> model.predict([[0.4], [4.4]]).tolist()
    ['a', 'b']
    """

    priors: Any = PRIORS
    var_smoothing: float = VAR_SMOOTHING

    theta_: Array = Fitted(COUNT, "Means.")
    var_: Array = Fitted(COUNT, "Variances.")

    weights_are_counts = False  # what is added is a share of the variance

    def _smoothing_of(self, factor: Factor) -> float:
        return float(self.var_smoothing)

    def _learn(self, X: Any, group: Array, weight: Array, K: int) -> list[Factor]:
        return [FACTORS["gaussian"].of(X, group, weight, K)]

    def _settle(self, started: float) -> None:
        super()._settle(started)
        factor: Any = self._factors[0]
        self.theta_, self.var_ = factor.location, factor.variance


class _CountsNB(BaseNaive):
    """Counts, dense or sparse."""

    _takes_sparse = True

    def _check_values(self, X: Any) -> None:
        values = X.data if is_sparse(X) else X
        least = values.min(initial=0.0)
        if np.isnan(least):
            least = np.fmin.reduce(values, axis=None, initial=0.0)
        if least < 0:
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__} (input X): counts must be >= 0. "
                "GaussianNB takes any numbers."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # on numbers that are no counts
        return tags


class MultinomialNB(_CountsNB):
    """Naive Bayes for counts such as words of a text: each class has shares of all columns.

    Examples
    --------
    >>> from certifit import MultinomialNB
    >>> model = MultinomialNB().fit([[3, 0], [2, 1], [0, 4]], ["spam", "spam", "ham"])
    >>> model.predict([[1, 0], [0, 1]]).tolist()
    ['spam', 'ham']
    """

    alpha: Any = SMOOTHINGS
    fit_prior: bool = FIT_PRIOR
    priors: Any = PRIORS

    feature_count_: Array = Fitted(COUNT, "Counts of each column in each class.")
    feature_log_prob_: Array = Fitted(COUNT, "Logarithms of their smoothed shares.")

    _kind = "multinomial"

    def _learn(self, X: Any, group: Array, weight: Array, K: int) -> list[Factor]:
        return [FACTORS[self._kind].of(X, group, weight, K)]

    def _settle(self, started: float) -> None:
        super()._settle(started)
        factor: Any = self._factors[0]
        self.feature_count_, self.feature_log_prob_ = factor.sums, factor.log_share


class ComplementNB(MultinomialNB):
    """Naive Bayes for counts that learns each class from what the others do not look like; steadier when classes are uneven.

    Examples
    --------
    >>> from certifit import ComplementNB
    >>> ComplementNB().fit([[3, 0], [2, 1], [0, 4]], [1, 1, 0]).predict([[1, 0]])
    array([1])
    """

    norm: bool = Parameter(
        False, Flag(), "Whether the weights of each class are divided by their sum, as Rennie et al. do."
    )

    _kind = "complement"

    def _settle(self, started: float) -> None:
        super()._settle(started)
        if self.norm:
            factor: Any = self._factors[0]
            # The logarithm of a share of zero is beside the others what it is in sums: so large that they do not count.
            share = np.minimum(factor.log_share, -LOWEST)
            total = share.sum(axis=1, keepdims=True)
            factor.log_share = self.feature_log_prob_ = share / np.where(total > 0, total, 1.0)

    def _prior_term(self) -> Array:
        # Scores against all other classes hold the shares already, as Rennie et al. have it.
        return np.zeros(self.classes_.shape[0])


class BernoulliNB(BaseNaive):
    """Naive Bayes for columns of yes and no.

    Examples
    --------
    >>> from certifit import BernoulliNB
    >>> BernoulliNB().fit([[1, 0], [1, 1], [0, 1], [0, 0]], [1, 1, 0, 0]).predict([[1, 1]])
    array([1])
    """

    alpha: Any = SMOOTHINGS
    binarize: float | None = Parameter(
        0.0, Either(Nothing(), Real()), "Values above it count as yes; None when X holds zeros and ones already."
    )
    fit_prior: bool = FIT_PRIOR
    priors: Any = PRIORS

    feature_count_: Array = Fitted(COUNT, "Rows of each class with a yes.")
    feature_log_prob_: Array = Fitted(COUNT, "Logarithms of their smoothed shares.")

    _takes_sparse = True

    def _binary(self, X: Matrix) -> Matrix:
        if self.binarize is None:
            values = X.data if is_sparse(X) else X
            values = values[~np.isnan(values)]
            if values.size and not np.isin(values, (0.0, 1.0)).all():
                raise ValueError(
                    "binarize=None needs X of zeros and ones; set binarize to the value that counts as yes."
                )
            return X
        if is_sparse(X):
            if self.binarize < 0:
                raise ValueError(
                    f"binarize must be >= 0 for sparse X, whose zeros are not stored; got {self.binarize!r}."
                )
            out = X.copy()
            out.data = np.where(np.isnan(X.data), X.data, (X.data > self.binarize).astype(X.dtype))
            return out
        return np.where(np.isnan(X), X, (self.binarize < X).astype(X.dtype))

    def _learn(self, X: Any, group: Array, weight: Array, K: int) -> list[Factor]:
        return [FACTORS["bernoulli"].of(self._binary(X), group, weight, K)]

    def _parts(self, rows: Any) -> list[Any]:
        return [self._binary(rows)]

    def _settle(self, started: float) -> None:
        super()._settle(started)
        factor: Any = self._factors[0]
        self.feature_count_, self.feature_log_prob_ = factor.sums, factor.log_one

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on numbers that are not yes or no
        return tags


class CategoricalNB(BaseNaive):
    """Naive Bayes for columns of category numbers 0, 1, 2, …; categories not seen before are left out of the product.

    Examples
    --------
    >>> from certifit import CategoricalNB
    >>> model = CategoricalNB().fit([[0, 1], [0, 0], [1, 2], [1, 2]], ["no", "no", "yes", "yes"])
    >>> model.predict([[1, 2], [0, 7]]).tolist()
    ['yes', 'no']
    """

    alpha: Any = SMOOTHINGS
    fit_prior: bool = FIT_PRIOR
    priors: Any = PRIORS
    min_categories: Any = Parameter(
        None,
        Any_("int, array of shape (n_features,) or None", wrong=("a", -1, [1.5])),
        "Least number of categories of each column; None takes those that are seen.",
    )

    category_count_: list[Array] = Fitted("list of arrays of shape (K, categories)", "Counts of the categories.")
    feature_log_prob_: list[Array] = Fitted(
        "list of arrays of shape (K, categories)", "Logarithms of their smoothed shares."
    )
    n_categories_: Array = Fitted("array of shape (n_features,)", "Categories of each column.")

    def _check_values(self, X: Any) -> None:
        known = X[~np.isnan(X)] if np.isnan(X.min(initial=0.0)) else X
        if known.size and (float(known.min()) < 0 or not (known == np.floor(known)).all()):
            raise ValueError(
                "Negative values in data passed to CategoricalNB (input X), or fractions: it counts categories in each class; "
                "X must hold category numbers 0, 1, 2, …; certifit.NaiveBayes takes names of categories as they are."
            )
        if known.size and float(known.max()) > 1e6:
            raise ValueError(f"X holds the category number {known.max():g}; number the categories from 0 without gaps.")

    def _learn(self, X: Any, group: Array, weight: Array, K: int) -> list[Factor]:
        d = X.shape[1]
        least = np.zeros(d, dtype=np.int64)
        if self.min_categories is not None:
            given = np.asarray(self.min_categories)
            if given.dtype.kind not in "iu" or given.shape not in ((), (d,)) or (given < 0).any():
                raise ValueError(
                    f"min_categories must be an integer >= 0, or one for each of the {d} columns; got {self.min_categories!r}."
                )
            least[:] = given
        return [Categorical.of(X, group, weight, K, least)]

    def _settle(self, started: float) -> None:
        super()._settle(started)
        factor: Any = self._factors[0]
        self.category_count_, self.feature_log_prob_ = factor.counts, factor.log_share
        self.n_categories_ = np.array([held.shape[1] for held in factor.counts])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        return tags
