"""Linear models fitted by stochastic gradient descent.

    minimize over w, b    (1/Σs_i) Σ s_i · loss(y_i, x_i·w + b)  +  alpha · penalty(w)

The objective and its certificate are those of `LinearModel`; only the way there differs: one batch of rows a step, so that a
pass over the data is already a model, and `partial_fit` learns from rows that come and go.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix
from certifit.certificate import Certificate
from certifit.data.columns import known_columns, same_columns
from certifit.data.gate import check_x, check_xy
from certifit.data.targets import announced_classes, class_weights, codes_of, several_classes
from certifit.evaluation.losses import Loss, PerceptronLoss, Softmax, check_loss, resolve_loss
from certifit.models.linear.classifier import LinearClassifier
from certifit.models.linear.parameters import LOSS
from certifit.models.sgd.base import (
    BaseSGD,
    by_rows,
    partial_certificate,
    quiet_blas,
)
from certifit.optimization.stochastic.descent import (
    Descent,
)
from certifit.parameters import CLASS_WEIGHT, N_JOBS, RANDOM_STATE, VERBOSE, Fitted, OneOf
from certifit.progress import Progress, progress
from certifit.representation.design.products import matvec
from certifit.threads import n_threads

__all__ = ["SGDClassifier", "SGDRegressor"]


class SGDRegressor(RegressorMixin, BaseSGD):
    """Any loss with a penalty, fitted by stochastic gradient descent.

    Minimizes ``mean loss(y, Xw + b) + alpha · penalty(w)``. Scale the features first: one step size serves all columns.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import SGDRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = X @ [1.0, -2.0, 3.0] + 0.1 * rng.normal(size=200)
    >>> model = SGDRegressor(random_state=0).fit(X, y)
    >>> model.coef_.round(1), model.certificate_.certified
    (array([ 1., -2.,  3.]), True)
    """

    n_jobs: int | None = N_JOBS.but(text="Threads, over classes and in evaluations. The model does not depend on it.")
    random_state: Any = RANDOM_STATE.but(text="Draws the order of the rows.")
    verbose: int = VERBOSE

    coef_: Array = Fitted()
    intercept_: float = Fitted()

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SGDRegressor:
        """Fit the model."""
        loss = self._options()[0]
        with quiet_blas(X):
            X, y, weight = check_xy(self, X, y, sample_weight=sample_weight)
        check_loss(loss, y)
        X, y, weight = self._ordered(X, y, weight)
        with progress(self.verbose, type(self).__name__) as clock:
            result, certificate = self._descend(X, y, weight, self._split(X, y), self._rng(), clock)
        self._keep(loss, result.coef, result.intercept, X.dtype)
        self.n_iter_, self.step_, self.t_ = result.epochs, result.step, self._steps_taken
        self.loss_curve_, self.validation_loss_ = result.history, result.validation or None
        self._state: Any = None
        self._certify(certificate)
        return self

    def _keep(self, loss: Loss, coef: Array, intercept: float, dtype: Any) -> None:
        self._loss = loss
        self.coef_ = coef.astype(dtype)
        self.intercept_ = float(intercept)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> SGDRegressor:
        """One pass over these rows, from where the last call (or `fit`) ended."""
        loss = self._options()[0]
        first = not hasattr(self, "coef_")
        names = known_columns(self, first)
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight)
        same_columns(self, names)
        check_loss(loss, y)
        problem = self._partial_problem(by_rows(X), y, weight)
        with progress(0, type(self).__name__) as clock:
            if getattr(self, "_state", None) is None:
                self._generator, self._state = self._rng(), None
            start = None if first else (self.coef_, self.intercept_, self.t_)
            self._state, coef, intercept = self._one_pass(problem, weight, self._state, start, self._generator)
        self._keep(loss, coef, intercept, X.dtype)
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        self._certify(partial_certificate(self.n_iter_, clock))
        return self

    def predict(self, X: Any) -> Array:
        """Predictions of y: the inverse link of the scores x·w + b."""
        check_is_fitted(self)
        X = check_x(self, X, reset=False)
        scores = np.asarray(matvec(X, self.coef_.astype(np.float64)) + self.intercept_)
        return self._loss.predict(scores.astype(X.dtype, copy=False))


def _has_probabilities(self: Any) -> bool:
    """Whether the loss estimates probabilities."""
    if getattr(self, "multi_class", "ovr") == "softmax":
        return True
    loss = resolve_loss(self.loss)
    return loss.task == "binary" and type(loss).predict is not Loss.predict


class SGDClassifier(BaseSGD, LinearClassifier):
    """A linear classifier with any loss, fitted by stochastic gradient descent.

    Minimizes ``mean loss(y, Xw + b) + alpha · penalty(w)``, for K > 2 classes once for each class against the rest, or once
    with the softmax loss. Scale the features first: one step size serves all columns.

    Attributes
    ----------
    classes_ : array of shape (K,)
    coef_ : array of shape (1, n_features) for two classes, (K, n_features) for more
    intercept_ : array of shape (1,) or (K,)

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import SGDClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = np.where(X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=300) > 0, "yes", "no")
    >>> model = SGDClassifier(alpha=0.01, random_state=0).fit(X, y)
    >>> model.predict([[2.0, -1.0, 0.0]]), model.certificate_.certified
    (array(['yes'], dtype='<U3'), True)
    """

    loss: Any = LOSS.but(
        "logistic",
        'A name from ``certifit.losses.LOSSES`` or a loss object: "logistic", "hinge", "squared_hinge", "exponential", … A loss '
        "for regression sees the targets −1 and 1. Built-in losses run in native code; one of your own runs in NumPy through "
        "its `derivative`, best with a `batch_size` of 32 or more.",
    )
    class_weight: Any = CLASS_WEIGHT
    multi_class: str = OneOf(
        ("ovr", "softmax"),
        "For K > 2 classes: each against the rest, or the softmax loss of all scores together (`loss` is then not used).",
    )
    n_jobs: int | None = N_JOBS.but(text="Threads, over classes and in evaluations. The model does not depend on it.")
    random_state: Any = RANDOM_STATE.but(text="Draws the order of the rows.")
    verbose: int = VERBOSE

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SGDClassifier:
        """Fit the model."""
        loss = self._options()[0]
        with quiet_blas(X):
            X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, numeric_target=False)
        classes, codes = several_classes(self, y)
        if self.class_weight is not None:
            weight = weight * class_weights(self.class_weight, classes, codes, weight)[codes]
        X, codes, weight = self._ordered(X, codes, weight)
        aside = self._split(X, codes)
        if aside is not None and np.unique(codes[~aside]).shape[0] < classes.shape[0]:
            raise ValueError(
                "early_stopping would set aside all rows of a class of y: give more rows, or do without it."
            )
        self.classes_ = classes
        with progress(self.verbose, type(self).__name__) as clock:
            if classes.shape[0] > 2 and self.multi_class == "softmax":
                parts = [self._descend(X, codes, weight, aside, self._rng(), clock, Softmax(classes.shape[0]))]
            else:
                parts = self._one_against_rest(loss, X, codes, weight, aside, clock)
        results = [part[0] for part in parts]
        self._keep_results(results, X.dtype)
        self._state: Any = None
        self._certify(Certificate.total([part[1] for part in parts]))
        return self

    def _one_against_rest(
        self, loss: Loss, X: Matrix, codes: Array, weight: Array, aside: Array | None, clock: Progress
    ) -> list[tuple[Descent, Certificate]]:
        K, rng = self.classes_.shape[0], self._rng()
        positive = [1] if K == 2 else list(range(K))
        # Every class draws from its own generator, so that threads do not change the draws.
        seeds = rng.integers(2**63, size=len(positive))

        if isinstance(loss, PerceptronLoss):
            if self.constraint is not None or self.split:
                raise ValueError(
                    "loss='perceptron' is the perceptron's algorithm, which takes neither constraint nor split."
                )
        elif loss.task != "binary":  # 0 and 1 are what every binary loss takes
            check_loss(loss, _binary_target(loss, codes, positive[0]))

        def one(k: int, seed: int) -> tuple[Descent, Certificate]:
            target = _binary_target(loss, codes, k)
            if isinstance(loss, PerceptronLoss):
                return self._perceptron(X, target, weight, seed)
            return self._descend(X, target, weight, aside, np.random.default_rng(seed), clock)

        threads = 1 if self.n_jobs is None else min(n_threads(self.n_jobs), len(positive))
        if threads == 1:
            return [one(k, int(seed)) for k, seed in zip(positive, seeds, strict=True)]
        jobs = (delayed(one)(k, int(seed)) for k, seed in zip(positive, seeds, strict=True))
        return list(Parallel(n_jobs=threads, require="sharedmem")(jobs))  # the fits count their steps here

    def _perceptron(self, X: Matrix, target: Array, weight: Array, seed: int) -> tuple[Descent, Certificate]:
        """The perceptron's algorithm, which is what its loss is asked for: the loss itself is minimized by zero."""
        from certifit.models.perceptron.model import Perceptron

        machine = Perceptron(
            averaged=bool(self.average),
            fit_intercept=self.fit_intercept,
            max_iter=int(self.max_iter),
            shuffle=self.shuffle,
            random_state=seed % 2**32,
        ).fit(X, target, weight)
        w, b = machine.coef_[0].astype(np.float64), float(machine.intercept_[0])
        self._steps_taken = float(machine.n_iter_ * target.shape[0])
        result = Descent(w, b, np.nan, 0.0, machine.n_iter_, 1.0, [], [], "", False)
        return result, machine.certificate_

    def _keep_results(self, results: list[Descent], dtype: Any) -> None:
        self._keep([result.coef for result in results], [result.intercept for result in results], dtype)
        self.n_iter_ = max(result.epochs for result in results)
        self.step_, self.t_ = results[0].step, self._steps_taken
        one = len(results) == 1
        curves, losses = [r.history for r in results], [r.validation for r in results]
        self.loss_curve_ = curves[0] if one else curves
        self.validation_loss_ = None if not losses[0] else losses[0] if one else losses

    def _keep(self, coefs: list[Array], intercepts: list[Any], dtype: Any) -> None:
        self.coef_ = np.vstack([np.atleast_2d(coef) for coef in coefs]).astype(dtype)
        self.intercept_ = np.concatenate([np.atleast_1d(b) for b in intercepts]).astype(np.float64)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> SGDClassifier:
        """One pass over these rows, from where the last call (or `fit`) ended.

        Parameters
        ----------
        y : array of shape (n_samples,)
            Labels, a part of `classes`.
        classes : array of shape (K,), optional
            All labels there will ever be; needed at the first call.
        """
        loss = self._options()[0]
        first = not hasattr(self, "coef_")
        known = announced_classes(self, classes, first)
        names = known_columns(self, first)
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, numeric_target=False)
        same_columns(self, names)
        codes = codes_of(known, y)
        if self.class_weight is not None:
            weight = weight * class_weights(self.class_weight, known, codes, weight)[codes]
        X, self.classes_, K = by_rows(X), known, known.shape[0]
        if K > 2 and self.multi_class == "softmax":
            problems = [self._partial_problem(X, codes, weight, K)]
        else:
            targets = [_binary_target(loss, codes, k) for k in ([1] if K == 2 else range(K))]
            for target in targets:
                check_loss(loss, target)
            problems = [self._partial_problem(X, target, weight) for target in targets]
        with progress(0, type(self).__name__) as clock:
            if getattr(self, "_state", None) is None:
                seeds = self._rng().integers(2**63, size=len(problems))
                self._generators = [np.random.default_rng(int(seed)) for seed in seeds]
                self._state = [None] * len(problems)
            starts: list[Any] = [None] * len(problems)
            if not first:
                together = len(problems) < self.coef_.shape[0]
                points = [(self.coef_, self.intercept_)] if together else zip(self.coef_, self.intercept_, strict=True)
                starts = [(w, b, self.t_) for w, b in points]
            jobs = zip(problems, self._state, starts, self._generators, strict=True)
            passes = [self._one_pass(problem, weight, *job) for problem, *job in jobs]
        self._state = [part[0] for part in passes]
        self._keep([part[1] for part in passes], [part[2] for part in passes], X.dtype)
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        self._certify(partial_certificate(self.n_iter_, clock))
        return self

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes; one-against-rest estimates are normalized to sum to one."""
        scores = self.decision_function(X)
        if scores.ndim == 2 and self.multi_class == "softmax":
            return np.asarray(softmax(scores, axis=1))
        loss = resolve_loss(self.loss if self.multi_class == "ovr" else "logistic")
        if scores.ndim == 1:
            positive = loss.predict(scores)
            return np.column_stack([1.0 - positive, positive])
        each = loss.predict(scores)
        total = each.sum(axis=1, keepdims=True)
        return np.where(total > 0, each / np.where(total > 0, total, 1.0), 1.0 / each.shape[1]).astype(each.dtype)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


def _binary_target(loss: Loss, codes: Array, k: int) -> Array:
    """1 for class k and 0 for the rest, or ±1 for losses of regression."""
    target = (codes == k).astype(np.float64)
    return target if loss.task == "binary" else 2.0 * target - 1.0
