"""Naive Bayes: columns independent given the class, each with a distribution of its own kind.

    P(y = k | x)  ∝  π_k · Π_j P(x_j | k)            missing x_j are left out of the product

Everything is learned by counting, in closed form: the certificate is that of a maximum (of the smoothed likelihood).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.data.gate import check_x, check_xy
from certifit.data.targets import encode_labels
from certifit.models.bayes.gaussian import log_posterior
from certifit.models.bayes.parts import FACTORS, Categorical, Factor
from certifit.parameters import Any_, Declared, Either, Flag, Given, Nothing, Parameter, Real

__all__ = ["BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB"]

PRIORS = Parameter(
    None,
    Either(Nothing(), Given("array of shape (K,)", wrong=([0.5, 0.6], [1.5, -0.5], "a", 3))),
    "Probabilities of the classes in sorted order; None takes their (smoothed) shares of the weight.",
)
SMOOTHING = Parameter(
    1.0,
    Real(0),
    "Added to every count (Laplace; a Dirichlet prior of alpha + 1): nothing is impossible for not having been seen.",
)
VAR_SMOOTHING = Parameter(
    1e-9, Real(0), "Share of a column's variance over all rows that is added to its variance in each class."
)
FIT_PRIOR = Parameter(True, Flag(), "Whether shares of the classes are learned; otherwise all are equally probable.")


class BaseNaive(Declared, ClassifierMixin, CertifiedEstimator):
    """What all naive Bayes models share: class shares, the product of factors, explanations."""

    n_features_in_: int
    classes_: Array
    class_count_: Array

    def _learn(self, X: Any, group: Array, weight: Array, K: int) -> list[Factor]:
        """Counts of a block of rows."""
        raise TypeError(f"{type(self).__name__} must say how it counts.")

    def _smoothing_of(self, factor: Factor) -> float:
        """What `settle` of a factor gets."""
        return float(getattr(self, "alpha", 0.0))

    def _checked(self, X: Any, y: Any, sample_weight: Any, more: bool = False) -> tuple[Any, Array, Array]:
        """Rows as the factors take them, labels and weights; `more` rows join those of an earlier call."""
        X, y, weight = check_xy(
            self,
            X,
            y,
            sample_weight=sample_weight,
            accept_sparse=("csr",) if self._takes_sparse else False,
            allow_nan=self._takes_missing,
            numeric_target=False,
        )
        return X, y, weight

    _takes_sparse = False
    _takes_missing = True
    weights_are_counts = True  # smoothing adds rows to those counted

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Count.

        Parameters
        ----------
        X : array, sparse matrix (for counts) or data frame of shape (n_samples, n_features)
            Features; NaN is missing.
        y : array of shape (n_samples,)
            Labels, of any type.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 counts a row twice, a weight of 0 drops it.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        X, y, weight = self._checked(X, y, sample_weight)
        self.classes_, group = encode_labels(y)
        self._check_values(X)
        self._factors = self._learn(X, group, weight, self.classes_.shape[0])
        self.class_count_ = np.bincount(group, weights=weight, minlength=self.classes_.shape[0])
        self._settle(started)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Add rows to those already counted: the same model as from all of them at once.

        Parameters
        ----------
        X : array, sparse matrix (for counts) or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array, optional
            All labels that will ever come; needed in the first call.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        started = time.perf_counter()
        first = not hasattr(self, "_factors")
        width = None if first else self.n_features_in_
        names = getattr(self, "feature_names_in_", None)
        X, y, weight = self._checked(X, y, sample_weight, more=not first)
        if width is not None and self.n_features_in_ != width:
            found, self.n_features_in_ = self.n_features_in_, width
            if names is not None:
                self.feature_names_in_ = names
            raise ValueError(
                f"X has {found} features, but {type(self).__name__} is expecting {width} features as input."
            )
        if first:
            if classes is None:
                raise ValueError(
                    "classes must be given in the first call of partial_fit: all labels that will ever come."
                )
            self.classes_ = np.unique(np.asarray(classes))
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(f"y holds labels that are not in classes: {unknown.tolist()!r}.")
        self._check_values(X)
        group, K = np.searchsorted(self.classes_, y), self.classes_.shape[0]
        factors = self._learn(X, group, weight, K)
        count = np.bincount(group, weights=weight, minlength=K)
        self._factors = factors if first else [a + b for a, b in zip(self._factors, factors, strict=True)]
        self.class_count_ = count if first else self.class_count_ + count
        self._settle(started)
        return self

    def _check_values(self, X: Any) -> None:
        """Raise where values are not of the kind that is counted."""

    def _settle(self, started: float) -> None:
        for factor in self._factors:
            factor.settle(self._smoothing_of(factor))
        K = self.classes_.shape[0]
        share = self.class_count_ / self.class_count_.sum()
        given = getattr(self, "priors", None)
        if given is not None:
            share = self._checked_priors(given)
        elif not getattr(self, "fit_prior", True):
            share = np.full(K, 1.0 / K)
        self.class_prior_ = share
        with np.errstate(divide="ignore"):
            self.class_log_prior_ = np.log(share)
        # Sums over columns of ever more rows are all that is kept: there is nothing left to improve.
        self._certify(
            Certificate(
                "closed form",
                objective=0.0,
                bound=0.0,
                scale=1.0,
                tol=0.0,
                iterations=1,
                seconds=time.perf_counter() - started,
                note="Counts are the greatest (smoothed) likelihood, in closed form; the objective is the distance from it.",
            )
        )

    def _checked_priors(self, priors: Any) -> Array:
        try:
            share = np.asarray(priors, dtype=np.float64)
        except (TypeError, ValueError):
            share = np.zeros(0)
        K = self.classes_.shape[0]
        fine = share.shape == (K,) and np.isfinite(share).all() and (share >= 0).all() and abs(share.sum() - 1.0) < 1e-6
        if not fine:
            raise ValueError(
                f"priors must be {K} probabilities that sum to 1, one for each of the classes "
                f"{self.classes_.tolist()!r}; got {priors!r}."
            )
        return np.asarray(share / share.sum())

    def _rows(self, X: Any) -> tuple[list[Any], Any]:
        """The columns of each factor, and the precision that predictions are given in."""
        check_is_fitted(self, "classes_")
        checked = check_x(
            self, X, reset=False, accept_sparse=("csr",) if self._takes_sparse else False, allow_nan=self._takes_missing
        )
        self._check_values(checked)
        return self._parts(checked), checked.dtype

    def _parts(self, rows: Any) -> list[Any]:
        """The columns of each factor."""
        return [rows]

    def _joint(self, X: Any) -> tuple[Array, Any]:
        """ln P(x, class) in double precision, and the precision of the rows."""
        parts, dtype = self._rows(X)
        terms = (factor.scores(part) for factor, part in zip(self._factors, parts, strict=True))
        return reduce(np.add, terms) + self._prior_term(), dtype

    def predict_joint_log_proba(self, X: Any) -> Array:
        """ln P(x, class), shape (n_samples, n_classes)."""
        joint, dtype = self._joint(X)
        return np.asarray(joint, dtype=dtype)

    def _prior_term(self) -> Array:
        """What the shares of the classes add."""
        return self.class_log_prior_

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the posterior probabilities, shape (n_samples, n_classes)."""
        joint, dtype = self._joint(X)
        return log_posterior(joint, dtype)

    def predict_proba(self, X: Any) -> Array:
        """Posterior probabilities of the classes, shape (n_samples, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:
        """The most probable class.

        Parameters
        ----------
        X : array, sparse matrix (for counts) or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        joint, _ = self._joint(X)
        return np.asarray(self.classes_[joint.argmax(axis=1)])

    def explain(self, x: Any) -> Explanation:
        """What each feature of one row adds to the log odds of every class.

        Parameters
        ----------
        x : one row, of shape (n_features,) or (1, n_features), or a data frame of one row

        Returns
        -------
        Explanation

        Examples
        --------
        >>> from certifit import GaussianNB
        >>> model = GaussianNB().fit([[0.0, 1.0], [1.0, 3.0], [4.0, 2.0], [5.0, 2.5]], [0, 0, 1, 1])
        >>> model.explain([4.5, 2.0]).sentence
        'Class 1: x0 speaks most for it, x1 next.'
        """
        one = x if hasattr(x, "columns") or is_sparse(x) or np.ndim(x) == 2 else np.asarray(x)[None, :]
        parts, _ = self._rows(one)
        terms = np.vstack(
            [
                f.terms(np.asarray(p.toarray() if is_sparse(p) else p)[0])
                for f, p in zip(self._factors, parts, strict=True)
            ]
        )
        names = getattr(self, "feature_names_in_", None)
        labels = [str(n) for n in names] if names is not None else [f"x{j}" for j in range(self.n_features_in_)]
        return Explanation(self.classes_, self._ordered(labels), terms, self.class_log_prior_)

    def _ordered(self, names: list[str]) -> list[str]:
        """Names of the columns in the order of the factors."""
        return names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        tags.input_tags.allow_nan = self._takes_missing
        return tags


@dataclass(frozen=True)
class Explanation:
    """Why a row got its class: evidence of each feature, as log odds against the average of the other classes.

    Parameters
    ----------
    classes : array of shape (K,)
    features : list of str
    terms : array of shape (d, K)
        ln P(x_j | k).
    prior : array of shape (K,)
        ln π_k.
    """

    classes: Array
    features: list[str]
    terms: Array
    prior: Array

    @property
    def log_odds(self) -> Array:
        """What each feature adds to ln P(k|x) − the mean of that of the other classes, shape (d, K)."""
        K = self.terms.shape[1]
        if K == 1:
            return np.zeros_like(self.terms)
        with np.errstate(invalid="ignore"):
            others = (self.terms.sum(axis=1, keepdims=True) - self.terms) / (K - 1)
            return np.nan_to_num(self.terms - others, nan=0.0)

    @property
    def winner(self) -> Any:
        """The most probable class."""
        return self.classes[int((self.terms.sum(axis=0) + self.prior).argmax())]

    @property
    def sentence(self) -> str:
        """The winner and the features that speak most for it."""
        k = int((self.terms.sum(axis=0) + self.prior).argmax())
        order = np.argsort(-self.log_odds[:, k], kind="stable")
        speaking = [self.features[j] for j in order if self.log_odds[j, k] > 0]
        if not speaking:
            return f"Class {self.classes[k]}: no feature speaks for it, its share of the classes does."
        rest = f", {speaking[1]} next" if len(speaking) > 1 else ""
        return f"Class {self.classes[k]}: {speaking[0]} speaks most for it{rest}."

    def plot(self, ax: Any = None, most: int = 12) -> Any:
        """Bars of the evidence for the winner, strongest first; returns the axes."""
        from certifit.axes import axes_of

        ax = axes_of(ax)
        k = int((self.terms.sum(axis=0) + self.prior).argmax())
        value = self.log_odds[:, k]
        order = np.argsort(-np.abs(value), kind="stable")[:most][::-1]
        colors = ["tab:blue" if value[j] >= 0 else "tab:red" for j in order]
        ax.barh([self.features[j] for j in order], value[order], color=colors)
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set_xlabel(f"log odds added for class {self.classes[k]}")
        return ax


class GaussianNB(BaseNaive):
    """Naive Bayes with a normal density for each class and column.

    Attributes
    ----------
    classes_, class_count_, class_prior_ : arrays of shape (K,)
    theta_, var_ : arrays of shape (K, n_features)
        Means and variances.
    certificate_ : Certificate

    Examples
    --------
    >>> from certifit import GaussianNB
    >>> model = GaussianNB().fit([[0.0], [1.0], [4.0], [5.0]], ["a", "a", "b", "b"])
    >>> model.predict([[0.4], [4.4]]).tolist()
    ['a', 'b']
    """

    priors: Any = PRIORS
    var_smoothing: float = VAR_SMOOTHING

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
        if values.size and float(np.fmin.reduce(values, axis=None, initial=0.0)) < 0:
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

    Attributes
    ----------
    classes_, class_count_, class_prior_ : arrays of shape (K,)
    feature_count_, feature_log_prob_ : arrays of shape (K, n_features)
    certificate_ : Certificate

    Examples
    --------
    >>> from certifit import MultinomialNB
    >>> model = MultinomialNB().fit([[3, 0], [2, 1], [0, 4]], ["spam", "spam", "ham"])
    >>> model.predict([[1, 0], [0, 1]]).tolist()
    ['spam', 'ham']
    """

    alpha: float = SMOOTHING
    fit_prior: bool = FIT_PRIOR
    priors: Any = PRIORS

    _kind = "multinomial"

    def _learn(self, X: Any, group: Array, weight: Array, K: int) -> list[Factor]:
        return [FACTORS[self._kind].of(X, group, weight, K)]

    def _settle(self, started: float) -> None:
        super()._settle(started)
        factor: Any = self._factors[0]
        self.feature_count_, self.feature_log_prob_ = factor.sums, factor.log_share


class ComplementNB(MultinomialNB):
    """Naive Bayes for counts that learns each class from what the others do not look like; steadier when classes are uneven.

    Attributes
    ----------
    classes_, class_count_, class_prior_ : arrays of shape (K,)
    feature_count_, feature_log_prob_ : arrays of shape (K, n_features)
    certificate_ : Certificate

    Examples
    --------
    >>> from certifit import ComplementNB
    >>> ComplementNB().fit([[3, 0], [2, 1], [0, 4]], [1, 1, 0]).predict([[1, 0]])
    array([1])
    """

    _kind = "complement"

    def _prior_term(self) -> Array:
        # Scores against all other classes hold the shares already, as Rennie et al. have it.
        return np.zeros(self.classes_.shape[0])


class BernoulliNB(BaseNaive):
    """Naive Bayes for columns of yes and no.

    Attributes
    ----------
    classes_, class_count_, class_prior_ : arrays of shape (K,)
    feature_count_, feature_log_prob_ : arrays of shape (K, n_features)
    certificate_ : Certificate

    Examples
    --------
    >>> from certifit import BernoulliNB
    >>> BernoulliNB().fit([[1, 0], [1, 1], [0, 1], [0, 0]], [1, 1, 0, 0]).predict([[1, 1]])
    array([1])
    """

    alpha: float = SMOOTHING
    binarize: float | None = Parameter(
        0.0, Either(Nothing(), Real()), "Values above it count as yes; None when X holds zeros and ones already."
    )
    fit_prior: bool = FIT_PRIOR
    priors: Any = PRIORS

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

    Attributes
    ----------
    classes_, class_count_, class_prior_ : arrays of shape (K,)
    category_count_, feature_log_prob_ : lists of arrays of shape (K, categories)
    n_categories_ : array of shape (n_features,)
    certificate_ : Certificate

    Examples
    --------
    >>> from certifit import CategoricalNB
    >>> model = CategoricalNB().fit([[0, 1], [0, 0], [1, 2], [1, 2]], ["no", "no", "yes", "yes"])
    >>> model.predict([[1, 2], [0, 7]]).tolist()
    ['yes', 'no']
    """

    alpha: float = SMOOTHING
    fit_prior: bool = FIT_PRIOR
    priors: Any = PRIORS
    min_categories: Any = Parameter(
        None,
        Any_("int, array of shape (n_features,) or None", wrong=("a", -1, [1.5])),
        "Least number of categories of each column; None takes those that are seen.",
    )

    def _check_values(self, X: Any) -> None:
        known = X[~np.isnan(X)]
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
