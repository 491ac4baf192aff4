"""Naive Bayes: columns independent given the class, each with a distribution of its own kind.

    P(y = k | x)  ∝  π_k · Π_j P(x_j | k)            missing x_j are left out of the product

Everything is learned by counting, in closed form: the certificate is that of a maximum (of the smoothed likelihood).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, is_sparse
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.data.columns import known_columns, same_columns
from certifit.data.gate import check_x, check_xy
from certifit.data.targets import announced_classes, codes_of, encode_labels
from certifit.models.bayes.gaussian import PosteriorMixin
from certifit.models.bayes.naive.explanation import Explanation
from certifit.models.bayes.naive.factors import Factor
from certifit.models.bayes.shares import checked_priors
from certifit.parameters import Declared, Either, Fitted, Flag, Parameter, Real, Reals

__all__ = ["FIT_PRIOR", "SMOOTHING", "SMOOTHINGS", "VAR_SMOOTHING", "BaseNaive"]

SMOOTHING = Parameter(
    1.0,
    Real(0),
    "Added to every count (Laplace; a Dirichlet prior of alpha + 1): nothing is impossible for not having been seen.",
)
SMOOTHINGS = Parameter(
    1.0,
    Either(Real(0), Reals(0, shape="array of shape (n_features,)")),
    "Added to every count (Laplace; a Dirichlet prior of alpha + 1), a number or one for each column: nothing is impossible for "
    "not having been seen.",
)
VAR_SMOOTHING = Parameter(
    1e-9, Real(0), "Share of a column's variance over all rows that is added to its variance in each class."
)
FIT_PRIOR = Parameter(True, Flag(), "Whether shares of the classes are learned; otherwise all are equally probable.")


class BaseNaive(Declared, PosteriorMixin, ClassifierMixin, CertifiedEstimator):
    """What all naive Bayes models share: class shares, the product of factors, explanations."""

    n_features_in_: int
    classes_: Array = Fitted("array of shape (K,)", "The labels.")
    class_count_: Array = Fitted("array of shape (K,)", "Weight of the rows of each class.")
    class_prior_: Array = Fitted("array of shape (K,)", "Probabilities of the classes.")

    def _learn(self, X: Any, group: Array, weight: Array, K: int) -> list[Factor]:
        """Counts of a block of rows."""
        raise TypeError(f"{type(self).__name__} must say how it counts.")

    def _smoothing_of(self, factor: Factor) -> Any:
        """What `settle` of a factor gets."""
        alpha = np.asarray(getattr(self, "alpha", 0.0), dtype=np.float64)
        if alpha.ndim and alpha.shape != (self.n_features_in_,):
            raise ValueError(
                f"alpha must be a number, or one for each of the {self.n_features_in_} columns; got {alpha.shape[0]} numbers."
            )
        return alpha if alpha.ndim else float(alpha)

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
        classes : array, optional
            All labels that will ever come; needed in the first call.
        """
        started = time.perf_counter()
        first = not hasattr(self, "_factors")
        known = known_columns(self, first)
        X, y, weight = self._checked(X, y, sample_weight, more=not first)
        same_columns(self, known)
        self.classes_ = announced_classes(self, classes, first, fewest=1)
        group, K = codes_of(self.classes_, y), self.classes_.shape[0]
        self._check_values(X)
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
            share = checked_priors(given, self.classes_)
        elif not getattr(self, "fit_prior", True):
            share = np.full(K, 1.0 / K)
        self.class_prior_ = share
        with np.errstate(divide="ignore"):
            self.class_log_prior_ = np.log(share)
        # Sums over columns of ever more rows are all that is kept: there is nothing left to improve.
        note = "Counts are the greatest (smoothed) likelihood, in closed form; the objective is the distance from it."
        self._certify(Certificate.exact(0.0, note, seconds=time.perf_counter() - started))

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

    def predict(self, X: Any) -> Array:
        """The most probable class.

        Parameters
        ----------
        X : array, sparse matrix (for counts) or data frame of shape (n_samples, n_features)
        """
        joint, _ = self._joint(X)
        return np.asarray(self.classes_[joint.argmax(axis=1)])

    def explain(self, x: Any) -> Explanation:
        """What each feature of one row adds to the log odds of every class.

        Parameters
        ----------
        x : one row, of shape (n_features,) or (1, n_features), a data frame of one row, or a mapping of columns to values

        Examples
        --------
        >>> from certifit import GaussianNB
        >>> model = GaussianNB().fit([[0.0, 1.0], [1.0, 3.0], [4.0, 2.0], [5.0, 2.5]], [0, 0, 1, 1])
        >>> model.explain([4.5, 2.0]).sentence
        'Class 1: x0 speaks most for it, x1 next.'
        """
        check_is_fitted(self, "classes_")
        parts, _ = self._rows(_one_row(x, getattr(self, "feature_names_in_", None)))
        if parts[0].shape[0] != 1:
            raise ValueError(f"x must be one row; it has {parts[0].shape[0]}: explain them one by one.")
        terms = np.vstack(
            [
                f.terms(np.asarray(p.toarray() if is_sparse(p) else p)[0])
                for f, p in zip(self._factors, parts, strict=True)
            ]
        )
        names = getattr(self, "feature_names_in_", None)
        labels = [str(n) for n in names] if names is not None else [f"x{j}" for j in range(self.n_features_in_)]
        return Explanation(self.classes_, self._ordered(labels), terms, self._prior_term())

    def _ordered(self, names: list[str]) -> list[str]:
        """Names of the columns in the order of the factors."""
        return names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        tags.input_tags.allow_nan = self._takes_missing
        return tags


def _one_row(x: Any, names: Array | None) -> Any:
    """A row as the factors read it; one with names, such as a mapping or a row of a frame, as a frame of one row."""
    series = hasattr(x, "index") and hasattr(x, "to_dict") and not hasattr(x, "columns")
    named = dict(x.items()) if isinstance(x, Mapping) or series else None
    if named is not None and names is not None and set(named) == set(names):
        import polars as pl

        return pl.DataFrame({name: [named[name]] for name in names}, strict=False)
    if named is not None and isinstance(x, Mapping):
        raise ValueError(
            f"x must have a value for each column of the fit, {'which had no names' if names is None else list(names)!r}; "
            f"its columns are {list(named)!r}."
        )
    if hasattr(x, "columns") or is_sparse(x) or np.ndim(x) == 2:
        return x
    if np.ndim(x) != 1:
        raise ValueError(f"x must be one row of numbers or values; got {x!r:.60}.")
    return np.asarray(x)[None, :]
