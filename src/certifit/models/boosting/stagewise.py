"""Forward stagewise additive modeling: F = Σ v_m h_m grows by one term at a time; the terms before never change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import ClassifierTags, RegressorTags, check_random_state
from sklearn.utils.metaestimators import available_if

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.gate import like_input
from certifit.models.boosting.additive import ESTIMATOR, LEAST_ERROR, SEED, Additive
from certifit.models.tree.model import DecisionTreeClassifier, DecisionTreeRegressor
from certifit.parameters import LEARNING_RATE, N_ESTIMATORS, Declared, Fitted, OneOf
from certifit.progress import Progress

__all__ = ["ForwardStagewise"]


class ForwardStagewise(Declared, Additive):
    """Forward stagewise additive modeling: F_m = F_{m−1} + rate · v_m h_m, the earlier terms fixed.

    ``loss="squared"`` (regression): h_m is fitted to the residuals r, and
    v_m = Σ w r h / Σ w h² minimizes Σ w ½ (r − v h)².
    ``loss="exponential"`` (two classes): h_m = ±1 is fitted under the weights e^(−y F), and
    v_m = ½ ln((1 − ε)/ε).

    Attributes
    ----------
    intercept_ : float
        The constant the sum starts from: the mean for "squared", 0 for "exponential".
    estimators_ : list
        The learners.
    estimator_weights_ : array
        Their coefficients v_m (times the learning rate).
    train_loss_ : array
        Weighted mean loss of the training rows after each term; never rises.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import ForwardStagewise
    >>> x = np.linspace(0, 1, 200)
    >>> model = ForwardStagewise(n_estimators=200).fit(x[:, None], np.sin(6 * x))
    >>> bool((np.diff(model.train_loss_) < 0).all()), model.score(x[:, None], np.sin(6 * x)) > 0.99
    (True, True)
    """

    loss: str = OneOf(("squared", "exponential"), "What each term decreases most.")
    estimator: Any = ESTIMATOR.but(
        text='A regressor for "squared", a classifier for "exponential"; a stump if not given.'
    )
    n_estimators: int = N_ESTIMATORS.but(text="Most terms.")
    _: KW_ONLY
    learning_rate: float = LEARNING_RATE
    random_state: Any = SEED

    certificate_: Certificate = Fitted("Certificate", 'Of kind ``"none"``.')

    def _classifies(self) -> bool:
        return bool(self.loss == "exponential")

    def _inner(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        return DecisionTreeClassifier(max_depth=1) if self._classifies() else DecisionTreeRegressor(max_depth=1)

    def __sklearn_tags__(self) -> Any:
        # The loss decides what kind of estimator this is; the tags say so.
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if self._classifies():
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags(multi_class=False)
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ForwardStagewise:
        """Add one term after the other.

        Parameters
        ----------
        y : array of shape (n_samples,)
            Target, or two classes.
        """
        clock = Progress()
        X, y, weight = self._read_rows(X, y, sample_weight, numeric=not self._classifies())
        if self._classifies():
            labels = self._read_classes(y)
            K = self.classes_.shape[0]
            if K > 2:
                raise ValueError(
                    f"Only binary classification is supported by loss='exponential': y has {K} classes. Use "
                    "AdaBoostClassifier."
                )
            y = 2.0 * labels - 1.0 if K == 2 else np.ones(labels.shape[0])
        p = weight / weight.sum()
        self.intercept_ = 0.0 if self._classifies() else float(p @ y)
        F = np.full(y.shape[0], self.intercept_)
        self.estimators_: list[Any] = []
        weights, losses = [], []
        rng, before = check_random_state(self.random_state), self._mean_loss(p, y, F)
        first = before
        for _ in range(self.n_estimators):
            model, term, v = self._term(X, y, F, weight, rng)
            trial = F + self.learning_rate * v * term
            after = self._mean_loss(p, y, trial)
            if v == 0 or not after < before:  # nothing left to gain
                break
            F, before = trial, after
            self.estimators_.append(model)
            weights.append(self.learning_rate * v)
            losses.append(after)
        self.estimator_weights_, self.train_loss_ = np.array(weights), np.array(losses)
        self._certify(
            Certificate.absent(
                before,
                "Every term decreases the training loss as much as its learner can; the sum is not optimized as a whole.",
                scale=first,
                iterations=len(self.estimators_),
                seconds=clock.seconds,
            )
        )
        return self

    def _mean_loss(self, p: Array, y: Array, F: Array) -> float:
        with np.errstate(over="ignore"):
            return float(p @ (np.exp(-y * F) if self._classifies() else 0.5 * (y - F) ** 2))

    def _term(self, X: Any, y: Array, F: Array, weight: Array, rng: Any) -> tuple[Any, Array, float]:
        """The next learner, its values on the training rows, and its coefficient."""
        if not self._classifies():
            r = y - F
            model = self._fresh(rng).fit(X, r, sample_weight=weight)
            h = np.asarray(model.predict(X), dtype=np.float64)
            p = weight / weight.sum()
            squares = float(p @ (h * h))
            return model, h, float(p @ (r * h)) / squares if squares > 0 else 0.0
        w = weight * np.exp(np.min(y * F) - y * F)  # only ratios matter: the largest weight is kept from overflowing
        w *= weight.sum() / w.sum()
        kept = w > 0
        labels = self._named(y)[kept]
        model = self._fresh(rng).fit(X[kept], labels, sample_weight=w[kept])
        h = self._signs(model, X)
        error = min(max(float(w @ (h != y) / w.sum()), LEAST_ERROR), 1 - LEAST_ERROR)
        return model, h, float(0.5 * np.log((1 - error) / error)) if abs(error - 0.5) > 1e-12 else 0.0

    def _signs(self, model: Any, X: Any) -> Array:
        if self.classes_.shape[0] == 1:
            return np.ones(X.shape[0])
        return np.where(model.predict(X) == self.classes_[1], 1.0, -1.0)

    def _staged(self, X: Any) -> Iterator[Array]:
        F = np.full(X.shape[0], self.intercept_)
        yield F
        for model, v in zip(self.estimators_, self.estimator_weights_, strict=True):
            F = F + v * (
                self._signs(model, X) if self._classifies() else np.asarray(model.predict(X), dtype=np.float64)
            )
            yield F

    def _score_of(self, X: Any) -> Array:
        found = np.empty(0)
        for stage in self._staged(X):
            found = stage
        return found

    def _named(self, F: Array) -> Array:
        if not self._classifies():
            return F
        return np.asarray(
            self.classes_[(F > 0).astype(int) if self.classes_.shape[0] == 2 else np.zeros(F.shape[0], dtype=int)]
        )

    def predict(self, X: Any) -> Array:
        """F, or the class its sign stands for."""
        return like_input(X, self._named(self._score_of(self._read_new(X))))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """`predict` after each term."""
        for k, F in enumerate(self._staged(self._read_new(X))):
            if k > 0:
                yield self._named(F)

    @available_if(lambda self: self._classifies())  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """F; positive for the second class.

        Returns
        -------
        array of shape (n_samples,)
        """
        return like_input(X, self._score_of(self._read_new(X)))

    @available_if(lambda self: self._classifies())  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """1 / (1 + e^(−2F)) for the second class."""
        positive = expit(2 * self.decision_function(X))
        if self.classes_.shape[0] == 1:
            return np.ones((positive.shape[0], 1))
        return np.column_stack([1 - positive, positive])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy for classes, R² for numbers.

        Parameters
        ----------
        y : array of shape (n_samples,)
            Truth.
        sample_weight : array of shape (n_samples,), optional
            Weights.
        """
        said, y = self.predict(X), np.asarray(y)
        weight = np.ones(y.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if self._classifies():
            return float(weight @ (said == y) / weight.sum())
        spread = float(weight @ (y - weight @ y / weight.sum()) ** 2)
        missed = float(weight @ (y - said) ** 2)
        return 1.0 - missed / spread if spread > 0 else float(missed == 0)
