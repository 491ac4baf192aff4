"""Logistic regression with alpha chosen by cross-validation along warm-started paths.

Folds are dealt by content within each class: copies of a row share a fold, so that weights act as repetitions, and
every training part has all classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import log_expit, log_softmax
from sklearn.model_selection import check_cv

from certifit._types import Array
from certifit.data.gate import check_sample_weight
from certifit.evaluation.splits.folds import content_folds
from certifit.models.linear.parameters import EPS, N_ALPHAS, PENALTY
from certifit.models.logistic.fit import LogisticData, solve_logistic
from certifit.models.logistic.model import BaseLogistic
from certifit.models.logistic.path import alpha_grid, fold_path
from certifit.parameters import (
    ALPHAS,
    CLASS_WEIGHT,
    CV,
    FIT_INTERCEPT,
    L1_RATIO,
    MAX_ITER,
    N_JOBS,
    TOL,
    VERBOSE,
    Declared,
)
from certifit.progress import progress

__all__ = ["LogisticRegressionCV"]


class LogisticRegressionCV(Declared, BaseLogistic):
    """Logistic regression with alpha chosen by K-fold cross-validation of the log loss.

    Attributes
    ----------
    alpha_ : float
        The chosen strength.
    alphas_ : array of shape (n_alphas,)
    log_loss_path_ : array of shape (n_alphas, n_folds)
        Mean log loss on each left-out fold.
    classes_, coef_, intercept_, certificate_, solver_, n_iter_
        Of the fit on all rows, as in `LogisticRegression`.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LogisticRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 5))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=100) > 0
    >>> model = LogisticRegressionCV(n_alphas=10).fit(X, y)
    >>> model.log_loss_path_.shape, bool(model.score(X, y) > 0.8)
    ((10, 5), True)
    """

    alphas: Any = ALPHAS.but(
        text="Strengths to try; by default `n_alphas` of them, from one that shrinks everything down."
    )
    n_alphas: int = N_ALPHAS.but(30)
    eps: float = EPS.but(1e-4)
    penalty: Any = PENALTY
    l1_ratio: float = L1_RATIO
    fit_intercept: bool = FIT_INTERCEPT
    class_weight: Any = CLASS_WEIGHT
    cv: Any = CV.but(
        text="An integer deals the distinct rows of each class into folds by their content; anything else is scikit-learn's."
    )
    tol: float = TOL.but(text="Wanted relative gap of every fit.")
    max_iter: int = MAX_ITER.but(text="Most iterations of each fit.")
    n_jobs: int | None = N_JOBS
    verbose: int = VERBOSE

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRegressionCV:
        """Choose alpha by cross-validation and fit on all rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features.
        y : array of shape (n_samples,)
            Labels of two or more classes.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 counts a row twice, a weight of 0 drops it.

        Returns
        -------
        self
        """
        penalty, free, tol, max_iter, threads = self._parameters()
        data = self._data(X, y, sample_weight)
        self.alphas_ = alpha_grid(data, penalty, self.n_alphas, self.eps, self.alphas, free)
        folds = list(self._folds(data, y, sample_weight))
        self.log_loss_path_ = np.zeros((self.alphas_.shape[0], len(folds)))
        share = np.array([data.weight[test].sum() for _, test in folds])
        with progress(int(self.verbose), type(self).__name__) as clock:
            for k, (train, test) in enumerate(folds):
                coefs, intercepts, _ = fold_path(
                    data.rows(train), penalty, self.alphas_, free, tol=tol, max_iter=max_iter, threads=threads
                )
                self.log_loss_path_[:, k] = _log_losses(data.rows(test), coefs, intercepts)
                clock.update(k + 1, len(folds) + 1, float("nan"))
            # Without anything to test on (constant features), the strongest penalty is as good as any.
            mean = self.log_loss_path_ @ share
            self.alpha_ = float(self.alphas_[int(np.argmin(mean))])
            fit = solve_logistic(
                data, penalty, self.alpha_, free, threads=threads, solver="auto", tol=tol, max_iter=max_iter,
                clock=clock, names=getattr(self, "feature_names_in_", None),
            )  # fmt: skip
        self._keep(data, fit)
        return self

    def _folds(self, data: LogisticData, y: Any, sample_weight: Any) -> Iterator[tuple[Array, Array]]:
        """Pairs (train, test) of rows with positive weight; every training part must have all classes."""
        if self.cv is None or isinstance(self.cv, (int, np.integer)):
            k = 5 if self.cv is None else int(self.cv)
            fold = _stratified(data, k)
            pairs = [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(int(fold.max()) + 1)]
        else:
            # Splits number the rows as given; those of weight zero are not in the data.
            labels = np.asarray(y).ravel()
            kept = check_sample_weight(sample_weight, labels.shape[0]) > 0
            position = np.cumsum(kept) - 1
            given = check_cv(self.cv, labels, classifier=True).split(np.zeros((labels.shape[0], 1)), labels)
            pairs = [tuple(position[rows[kept[rows]]] for rows in pair) for pair in given]
        for j, (train, test) in enumerate(pairs):
            missing = np.setdiff1d(np.arange(data.n_classes), data.y[train])
            if missing.size:
                raise ValueError(
                    f"Fold {j}: the training part has no row of class {self.classes_.tolist()[missing[0]]!r}. Use fewer or "
                    "stratified folds (an integer cv stratifies), or drop the class."
                )
            if test.size:
                yield train, test


def _stratified(data: LogisticData, k: int) -> Array:
    """Fold of each row: the distinct rows of each class are dealt in turn.

    A class with one distinct row only cannot be both trained and tested on: its rows get −1, always in training.
    """
    fold = np.full(data.y.shape[0], -1, dtype=np.intp)
    for c in range(data.n_classes):
        rows = np.flatnonzero(data.y == c)
        for count in range(k, 1, -1):
            try:
                fold[rows] = content_folds(data.X[rows], data.y[rows].astype(np.float64), count)
            except ValueError:  # fewer distinct rows than folds
                continue
            break
    return fold


def _log_losses(data: LogisticData, coefs: Array, intercepts: Array) -> Array:
    """Weighted mean log loss for each alpha."""
    losses, rows, p = np.empty(coefs.shape[0]), np.arange(data.y.shape[0]), data.p
    for i, (W, b) in enumerate(zip(coefs, intercepts, strict=True)):
        scores = np.asarray(data.X @ W.T, dtype=np.float64) + b
        if data.n_classes == 2:
            each = -log_expit(np.where(data.y == 1, scores[:, 0], -scores[:, 0]))
        else:
            each = -log_softmax(scores, axis=1)[rows, data.y]
        losses[i] = float(p @ each)
    return losses
