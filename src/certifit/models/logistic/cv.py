"""Logistic regression with alpha chosen by cross-validation along warm-started paths.

Folds are dealt by content within each class: copies of a row share a fold, so that weights act as repetitions, and
every training part has all classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.data.gate import kept_rows
from certifit.evaluation.splits.choice import folds_of, over_folds
from certifit.models.linear.parameters import EPS, N_ALPHAS, PENALTY, ChosenByFolds
from certifit.models.logistic.fit import LogisticData, solve_logistic
from certifit.models.logistic.model import BaseLogistic
from certifit.models.logistic.parameters import SOFT_LABELS
from certifit.models.logistic.path import fold_path, logistic_alphas
from certifit.parameters import ALPHAS, CLASS_WEIGHT, CV, FIT_INTERCEPT, L1_RATIO, MAX_ITER
from certifit.progress import progress

__all__ = ["LogisticRegressionCV"]


class LogisticRegressionCV(ChosenByFolds, BaseLogistic):
    """Logistic regression with alpha chosen by K-fold cross-validation of the log loss.

    Attributes
    ----------
    log_loss_path_ : array of shape (n_alphas, n_folds)
        Mean log loss on each left-out fold; of soft labels, what it exceeds their entropy by.
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
    soft_labels: bool = SOFT_LABELS
    cv: Any = CV.but(
        text="An integer deals the distinct rows of each class into folds by their content; anything else is scikit-learn's."
    )
    max_iter: int = MAX_ITER.but(text="Most iterations of each fit.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRegressionCV:
        """Choose alpha by cross-validation and fit on all rows."""
        penalty, free, tol, max_iter, threads = self._parameters()
        data = self._data(X, y, sample_weight)
        self.alphas_ = logistic_alphas(data, penalty, self)
        kept, names = kept_rows(sample_weight, data.y.shape[0]), None if data.soft else self.classes_.tolist()
        given = np.asarray(y) if data.soft else np.asarray(y).ravel()
        folds = folds_of(self.cv, data.X, data.y, kept=kept, given=given, classes=names)

        def errors(train: Array, test: Array) -> Array:
            coefs, intercepts, _ = fold_path(
                data.rows(train), penalty, self.alphas_, free, tol=tol, max_iter=max_iter, threads=threads
            )
            return _log_losses(data.rows(test), coefs, intercepts)

        with progress(int(self.verbose), type(self).__name__) as clock:
            curve = over_folds(
                folds, data.weight, self.alphas_.shape[0], errors,
                told=lambda done: clock.update(done, len(folds) + 1, float("nan")),
            )  # fmt: skip
            self.log_loss_path_ = curve.errors
            self.alpha_ = float(self.alphas_[curve.best(self.alphas_, one_standard_error=self.one_standard_error)])
            fit = solve_logistic(
                data, penalty, self.alpha_, free, threads=threads, solver="auto", tol=tol, max_iter=max_iter,
                clock=clock, names=getattr(self, "feature_names_in_", None),
            )  # fmt: skip
        self._keep(data, fit)
        return self


def _log_losses(data: LogisticData, coefs: Array, intercepts: Array) -> Array:
    """Weighted mean log loss for each alpha."""
    losses, p, loss = np.empty(coefs.shape[0]), data.p, data.loss
    for i, (W, b) in enumerate(zip(coefs, intercepts, strict=True)):
        scores = np.asarray(data.X @ W.T, dtype=np.float64) + b
        losses[i] = float(p @ loss.value(data.y, scores if data.n_classes > 2 else scores[:, 0]))
    return losses
