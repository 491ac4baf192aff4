"""Bagging: the mean of an estimator fitted on bootstrap samples (Breiman 1996).

Rows are drawn with probabilities proportional to their weights; the rows an estimator did not draw (out of
bag, OOB) test it.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed

from certifit._types import Array, is_sparse
from certifit.base import CertifiedEstimator, CopiesMixin
from certifit.certificate import Certificate
from certifit.data.equal_rows import repetitions
from certifit.data.gate import check_sample_weight, like_input
from certifit.evaluation.risk.risk import clopper_pearson
from certifit.models.forest.base import OutOfBag, amount, drawing_order, drawn_counts, fit_drawn, r_squared
from certifit.models.forest.parameters import BOOTSTRAP, DRAWS, OOB_SCORE, SHARE
from certifit.models.tree.coding import TakesCategories
from certifit.models.tree.model import DecisionTreeClassifier, DecisionTreeRegressor
from certifit.parameters import N_ESTIMATORS, N_JOBS, Declared, Either, Fitted, Learner, Nothing, OneOf, Parameter
from certifit.parameters.methods import weights
from certifit.progress import Progress

__all__ = ["BaggingClassifier", "BaggingRegressor"]


def _fit_one(estimator: Any, X: Any, y: Array, counts: Array, columns: Array) -> Any:
    """Fit on the drawn rows and columns."""
    return fit_drawn(estimator, X[:, columns] if columns.shape[0] < X.shape[1] else X, y, counts)


class BaseBagging(
    Declared,
    TakesCategories,
    OutOfBag,
    CopiesMixin,
    MetaEstimatorMixin,
    CertifiedEstimator,
    takes={"fit.sample_weight": weights("Chances of a row to be drawn; 0 drops it.")},
):
    """Draws, fits and out-of-bag means."""

    estimator: Any = Parameter(
        None,
        Either(Learner(), Nothing()),
        "What is fitted, ours or scikit-learn's; a decision tree if not given.",
    )
    n_estimators: int = N_ESTIMATORS.but(10, "Number of copies.")
    _: KW_ONLY
    max_samples: Any = Parameter(
        1.0,
        SHARE,
        "Draws of each copy, as a number or as a share of the rows. Whole weights of up to 100 on average count rows; other "
        "weights are relative, and say nothing about their number.",
    )
    max_features: Any = Parameter(1.0, SHARE, "Features of each copy, drawn without replacement.")
    bootstrap: bool = BOOTSTRAP
    oob_score: bool = OOB_SCORE
    random_state: Any = DRAWS
    n_jobs: int | None = N_JOBS

    estimators_: list[Any] = Fitted("list", "The copies.")
    estimators_features_: list[Array] = Fitted("list", "Their features.")
    certificate_: Certificate = Fitted("Certificate", 'Of kind ``"none"``.')

    def _fit(self, X: Any, y: Array, weight: Array) -> None:
        clock = Progress()
        if self.oob_score and not self.bootstrap:
            raise ValueError("oob_score=True needs bootstrap=True: without it no row is out of bag.")
        n, d = X.shape
        draws = amount(self.max_samples, repetitions(weight) if self.bootstrap else n)
        width = min(amount(self.max_features, d), d)
        rng = check_random_state(self.random_state)
        # Rows in the order of their content: draws depend neither on the order they are given in nor on how
        # copies are written.
        order = drawing_order(X, y)
        self._counts, self.estimators_features_, fresh = [], [], []
        for _ in range(self.n_estimators):
            # All draws are made here, in order, so that threads cannot change them.
            if self.bootstrap:
                counts = drawn_counts(rng, order, weight, draws)
            else:
                counts = np.zeros(n, dtype=np.int64)
                counts[rng.choice(n, size=min(draws, n), replace=False, p=weight / weight.sum())] = 1
            columns = np.sort(rng.choice(d, size=width, replace=False)) if width < d else np.arange(d)
            model = self._told(clone(self._inner()), columns)
            if "random_state" in model.get_params(deep=False):
                model.set_params(random_state=rng.randint(0, 2**31 - 1))
            self._counts.append(counts)
            self.estimators_features_.append(columns)
            fresh.append(model)
        self.estimators_ = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(_fit_one)(model, X, y, counts, columns)
            for model, counts, columns in zip(fresh, self._counts, self.estimators_features_, strict=True)
        )
        self._certify(
            Certificate.absent(
                self._training_loss(X, y, weight),
                "A mean of fits optimizes no objective as a whole: the objective is its training loss.",
                iterations=self.n_estimators,
                seconds=clock.seconds,
            )
        )

    def _predict_one(self, model: Any, X: Any) -> Array:
        """What one copy says of the rows."""
        raise TypeError(f"{type(self).__name__} must say what its copies predict.")

    def _training_loss(self, X: Any, y: Array, weight: Array) -> float:
        """Mean loss of the training rows."""
        raise TypeError(f"{type(self).__name__} must say what it loses.")

    def _mean(self, X: Any) -> Array:
        """Mean prediction, one row for each row of X."""
        each = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._predict_one)(model, X[:, columns] if columns.shape[0] < X.shape[1] else X)
            for model, columns in zip(self.estimators_, self.estimators_features_, strict=True)
        )
        return np.asarray(sum(each) / len(self.estimators_))

    def _out_of_bag(self, X: Any, *width: int) -> tuple[Array, Array]:
        """Mean of the estimators that did not draw a row (`width` numbers), and how many there are."""
        n = X.shape[0]
        total, seen = np.zeros((n, *width)), np.zeros(n)
        for model, counts, columns in zip(self.estimators_, self._counts, self.estimators_features_, strict=True):
            out = np.flatnonzero(counts == 0)
            if out.size == 0:
                continue
            part = X[out][:, columns] if columns.shape[0] < X.shape[1] else X[out]
            total[out] += self._predict_one(model, part)
            seen[out] += 1
        with np.errstate(invalid="ignore", divide="ignore"):
            return total / seen.reshape(n, *[1] * len(width)), seen

    def _oob_rises(self, X: Any, y: Any, sample_weight: Any, rng: np.random.RandomState) -> Array:
        rows = self._read_new(X)
        weight = check_sample_weight(sample_weight, rows.shape[0])
        truth = np.asarray(y)
        if truth.shape != weight.shape or int((weight > 0).sum()) != self._counts[0].shape[0]:
            raise ValueError("X, y and sample_weight are not those of the fit: give the training rows.")
        rows, truth, weight = rows[weight > 0], truth[weight > 0], weight[weight > 0]
        found = np.zeros((len(self.estimators_), rows.shape[1]))
        for m, (model, columns) in enumerate(zip(self.estimators_, self.estimators_features_, strict=True)):
            out = np.flatnonzero(self._counts[m] == 0)
            if out.size == 0:
                continue
            part = rows[out][:, columns]
            part = part.toarray() if is_sparse(part) else part
            share = weight[out] / weight[out].sum()
            whole = share @ self._misses(self._predict_one(model, part), truth[out])
            for k, j in enumerate(columns):
                mixed = part.copy()
                mixed[:, k] = part[rng.permutation(out.size), k]
                found[m, j] = share @ self._misses(self._predict_one(model, mixed), truth[out]) - whole
        return found

    def _misses(self, said: Array, truth: Array) -> Array:
        """What a copy's predictions lose on each row."""
        raise TypeError(f"{type(self).__name__} must say what it loses.")


class BaggingClassifier(ClassifierMixin, BaseBagging):
    """Bagging of any classifier: the mean of the probabilities, or of the votes, of its copies.

    Attributes
    ----------
    classes_ : array
        Labels.
    oob_score_ : float
        Out-of-bag accuracy (if `oob_score`).
    oob_interval_ : tuple of float
        95 % Clopper–Pearson interval of the out-of-bag error.
    oob_decision_function_ : array of shape (n_samples, n_classes)
        Out-of-bag probabilities; NaN where every copy drew the row.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import BaggingClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> model = BaggingClassifier(n_estimators=30, oob_score=True, random_state=0).fit(X, X[:, 0] > X[:, 1])
    >>> model.oob_score_ > 0.85
    True
    """

    voting: str = OneOf(
        ("probability", "majority"),
        "The mean of the copies' probabilities (of their votes, where they have none), or one vote for each copy.",
    )

    def _misses(self, said: Array, truth: Array) -> Array:
        return (self.classes_[np.argmax(said, axis=1)] != truth).astype(np.float64)

    def _inner(self) -> Any:
        return DecisionTreeClassifier() if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BaggingClassifier:
        """Fit the copies."""
        X, y, weight = self._read_rows_and_target(X, y, sample_weight, numeric=False)
        check_classification_targets(y)
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity: the class of every training row must be known.")
        self.classes_, labels = np.unique(y, return_inverse=True)
        self._fit(X, labels, weight)
        if self.oob_score:
            probability, seen = self._out_of_bag(X, self.classes_.shape[0])
            tested = seen > 0
            wrong = np.argmax(probability[tested], axis=1) != labels[tested]
            error = float(weight[tested] @ wrong / weight[tested].sum()) if tested.any() else float("nan")
            self.oob_decision_function_, self.oob_score_ = probability, 1.0 - error
            self.oob_interval_ = (
                clopper_pearson(error * tested.sum(), float(tested.sum())) if tested.any() else (0.0, 1.0)
            )
        return self

    def _training_loss(self, X: Any, y: Array, weight: Array) -> float:
        return float(weight / weight.sum() @ (np.argmax(self._mean(X), axis=1) != y))

    def _predict_one(self, model: Any, X: Any) -> Array:
        found = np.zeros((X.shape[0], self.classes_.shape[0]))
        if self.voting == "probability" and hasattr(model, "predict_proba"):
            found[:, model.classes_.astype(np.int64)] = model.predict_proba(X)
        else:
            found[np.arange(X.shape[0]), model.predict(X).astype(np.int64)] = 1.0
        return found

    def predict_proba(self, X: Any) -> Array:
        """Mean probabilities of the copies, or their shares of the votes."""
        return like_input(X, self._mean(self._read_new(X)))

    def predict(self, X: Any) -> Array:
        """The class with the largest mean probability."""
        probability = self._mean(self._read_new(X))
        return np.asarray(self.classes_[np.argmax(probability, axis=1)])


class BaggingRegressor(RegressorMixin, BaseBagging):
    """Bagging of any regressor: the mean of its copies.

    Attributes
    ----------
    oob_score_ : float
        Out-of-bag R² (if `oob_score`).
    oob_prediction_ : array of shape (n_samples,)
        Out-of-bag predictions; NaN where every copy drew the row.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import BaggingRegressor
    >>> x = np.linspace(0, 1, 200)
    >>> model = BaggingRegressor(n_estimators=30, oob_score=True, random_state=0).fit(x[:, None], np.sin(6 * x))
    >>> model.oob_score_ > 0.99
    True
    """

    def _misses(self, said: Array, truth: Array) -> Array:
        return np.asarray((said - truth) ** 2)

    def _inner(self) -> Any:
        return DecisionTreeRegressor() if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BaggingRegressor:
        """Fit the copies."""
        X, y, weight = self._read_rows_and_target(X, y, sample_weight, numeric=True)
        self._fit(X, y, weight)
        if self.oob_score:
            self.oob_prediction_, seen = self._out_of_bag(X)
            self.oob_score_ = r_squared(y, self.oob_prediction_, weight, seen > 0)
        return self

    def _training_loss(self, X: Any, y: Array, weight: Array) -> float:
        return float(weight / weight.sum() @ (0.5 * (self._mean(X) - y) ** 2))

    def _predict_one(self, model: Any, X: Any) -> Array:
        return np.asarray(model.predict(X), dtype=np.float64)

    def predict(self, X: Any) -> Array:
        """Mean prediction of the copies."""
        return like_input(X, self._mean(self._read_new(X)))
