"""Forward stagewise additive models of any loss on any learner: a descent in the space of functions.

    F_m = F_{m−1} + rate · v_m h_m,      h_m ≈ −∂ℓ/∂F at F_{m−1},      v_m = argmin_v mean ℓ(y, F_{m−1} + v·h_m)

The learner is fitted to the negative slopes by least squares, whatever the loss (AnyBoost: Mason et al. 1999; gradient boosting:
Friedman 2001); the line search has a unique answer up to flat parts, since the mean loss is convex in v.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.gate import like_input
from certifit.evaluation.losses import Loss, check_loss, resolve_loss
from certifit.evaluation.losses.base import constant_by_slopes
from certifit.models.boosting.additive import ESTIMATOR, SEED, Additive
from certifit.models.linear.parameters import LOSS
from certifit.models.tree.model import DecisionTreeRegressor
from certifit.parameters import LEARNING_RATE, N_ESTIMATORS, Declared, Fitted
from certifit.progress import Progress

__all__ = ["AdditiveModel"]


class AdditiveModel(Declared, RegressorMixin, Additive):
    """Any loss on any base learner, with a line search for each term.

    Linear learners, stumps, kernels, scikit-learn's regressors or one of your own: whatever fits numbers under weights. For a
    loss of two classes y is 0 or 1, and `predict` is what the loss makes of the score (the probability for ``"logistic"``).
    `BoostedTrees` is the fast special case of trees.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import AdditiveModel, Ridge
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> y[::10] += 50.0
    >>> model = AdditiveModel("absolute", n_estimators=60).fit(X, y)
    >>> bool(np.median(np.abs(model.predict(X) - np.sin(6 * X[:, 0]))) < 0.1)
    True
    >>> linear = AdditiveModel("logistic", Ridge(alpha=1e-9), n_estimators=200).fit(X, X[:, 0] > 0.3 + 0.4 * (X[:, 0] > 0.6))
    >>> bool((np.diff(linear.train_loss_) <= 0).all())
    True
    """

    loss: Any = LOSS
    estimator: Any = ESTIMATOR.but(text="A regressor that takes weights; a stump (a tree with one split) if not given.")
    n_estimators: int = N_ESTIMATORS.but(text="Most terms; it ends before, where no term lowers the training loss.")
    _: KW_ONLY
    learning_rate: float = LEARNING_RATE
    random_state: Any = SEED

    intercept_: float = Fitted("float", "The constant the sum starts from: the best one for the loss.")
    estimators_: list[Any] = Fitted("list", "The learners.")
    estimator_weights_: Array = Fitted("array", "Their coefficients v_m, times the learning rate.")
    train_loss_: Array = Fitted("array", "Weighted mean loss of the training rows after each term; never rises.")
    certificate_: Certificate = Fitted("Certificate", 'Of kind ``"none"``.')

    def _inner(self) -> Any:
        return DecisionTreeRegressor(max_depth=1) if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AdditiveModel:
        """Add one term after the other.

        Parameters
        ----------
        y : array of shape (n_samples,)
            Target, as the loss takes it.
        """
        clock = Progress()
        X, y, weight = self._read_rows(X, y, sample_weight, numeric=True)
        y = y.astype(np.float64)
        loss, p, rng = resolve_loss(self.loss), weight / weight.sum(), check_random_state(self.random_state)
        check_loss(loss, y)
        self._loss, self.intercept_ = loss, float(np.clip(loss.optimal_constant(y, p), -1e300, 1e300))
        F = np.full(y.shape[0], self.intercept_)
        first = before = float(p @ loss.value(y, F))
        self.estimators_, weights, losses = [], [], []
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for _ in range(self.n_estimators):
                slope = loss.derivative(y, F)
                if not slope.any():
                    break
                model = self._fresh(rng).fit(X, -slope, sample_weight=weight)
                term = np.asarray(model.predict(X), dtype=np.float64)
                v = self.learning_rate * _line_search(loss, y, p, F, term)
                after = float(p @ loss.value(y, F + v * term))
                if not after < before:  # nothing left to gain with this learner
                    break
                F, before = F + v * term, after
                self.estimators_.append(model)
                weights.append(v)
                losses.append(after)
        self.estimator_weights_, self.train_loss_ = np.array(weights), np.array(losses)
        note = "Each term is the best multiple of its learner; the sum of all terms is not optimized as a whole."
        made = len(self.estimators_)
        self._certify(Certificate.absent(before, note, scale=first, iterations=made, seconds=clock.seconds))
        return self

    def _staged(self, X: Any) -> Iterator[Array]:
        F = np.full(X.shape[0], self.intercept_)
        yield F
        for model, v in zip(self.estimators_, self.estimator_weights_, strict=True):
            F = F + v * np.asarray(model.predict(X), dtype=np.float64)
            yield F

    def raw_predict(self, X: Any) -> Array:
        """The score F of each row.

        Returns
        -------
        array of shape (n_samples,)
        """
        *_, last = self._staged(self._read_new(X))
        return like_input(X, last)

    def predict(self, X: Any) -> Array:
        """What the loss makes of the scores: the mean, the median, a probability."""
        scores = self.raw_predict(X)
        return like_input(X, self._loss.predict(scores))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """`predict` after each term, the constant first.

        Yields
        ------
        array of shape (n_samples,)
        """
        for F in self._staged(self._read_new(X)):  # reading X says first whether there is a fit
            yield like_input(X, self._loss.predict(F))


def _line_search(loss: Loss, y: Array, p: Array, F: Array, term: Array) -> float:
    """argmin over v of the mean loss of F + v·term: where its slope, which never falls in v, changes its sign."""
    size = float(np.abs(term).max(initial=0.0))
    if not (size > 0 and np.isfinite(size)):
        return 0.0
    unit = term / size  # v·size has the unit of the scores, whatever the unit of the slopes
    bend = (lambda u: float(p @ (loss.second_derivative(y, F + u * unit) * unit**2))) if loss.smooth else None
    found = constant_by_slopes(lambda u: float(p @ (loss.derivative(y, F + u * unit) * unit)), bend)
    return found / size
