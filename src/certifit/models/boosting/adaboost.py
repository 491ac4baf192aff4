"""AdaBoost: an additive model that minimizes the exponential loss one classifier at a time.

With the exponential loss e^(−y F), y = ±1, and classifiers h = ±1 the best new term minimizes the weighted error
ε = Σ w_i [h(x_i) ≠ y_i] / Σ w_i under the weights w_i = s_i e^(−y_i F(x_i)), and its coefficient is
v = ½ ln((1 − ε)/ε): this is AdaBoost (Freund and Schapire 1997; Friedman, Hastie, Tibshirani 2000). Written with
α = 2v the weights of the rows in error grow by e^α. After M terms the share of training errors is at most
Π 2 √(ε_m (1 − ε_m)).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.gate import like_input
from certifit.models.boosting.additive import ESTIMATOR, LEAST_ERROR, SEED, Additive
from certifit.models.boosting.stagewise import ForwardStagewise
from certifit.models.tree.model import DecisionTreeClassifier
from certifit.parameters import LEARNING_RATE, N_ESTIMATORS, Declared, OneOf
from certifit.progress import Progress

__all__ = ["AdaBoostClassifier", "ForwardStagewise"]


class AdaBoostClassifier(Declared, ClassifierMixin, Additive):
    """AdaBoost with any classifier that takes weights.

    ``"discrete"``: two classes, F = Σ v_m h_m with v_m = ½ ln((1 − ε_m)/ε_m).
    ``"samme"``: K classes, F_k = Σ α_m [h_m = k] with α_m = ln((1 − ε_m)/ε_m) + ln(K − 1) (Zhu et al. 2009);
    for two classes α_m = 2 v_m and the predictions are those of ``"discrete"``.
    ``"real"``: uses the probabilities p of the learner, F_k = Σ (K − 1)(ln p_k − mean ln p).

    Attributes
    ----------
    classes_ : array
        Labels.
    estimators_ : list
        The learners.
    estimator_weights_ : array
        Their coefficients: v_m for "discrete", α_m for "samme", 1 for "real".
    estimator_errors_ : array
        Weighted error ε_m = Σ w_i [wrong] / Σ w_i of each learner.
    training_bound_ : array
        Bound on the share of training errors after each term: Π 2√(ε(1 − ε)) for two classes and learning
        rate 1, in general Π ((1 − ε) + ε e^α) e^(−α/2). With "real" the product of the normalizers for two
        classes, NaN for more.
    certificate_ : Certificate
        Of kind ``"none"``; its objective is the weighted mean exponential loss.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import AdaBoostClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = (X**2).sum(axis=1) > 1.4
    >>> model = AdaBoostClassifier(n_estimators=100).fit(X, y)
    >>> bool(1 - model.score(X, y) <= model.training_bound_[-1])
    True
    """

    estimator: Any = ESTIMATOR
    n_estimators: int = N_ESTIMATORS.but(50, "Most terms; fewer if a learner is perfect or no better than chance.")
    _: KW_ONLY
    algorithm: str = OneOf(("samme", "discrete", "real"), "See above.")
    learning_rate: float = LEARNING_RATE.but(text="Factor of every coefficient.")
    random_state: Any = SEED

    def _inner(self) -> Any:
        return DecisionTreeClassifier(max_depth=1) if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AdaBoostClassifier:
        """Fit one learner after the other."""
        clock = Progress()
        X, y, start = self._read_rows(X, y, sample_weight, numeric=False)
        labels = self._read_classes(y)
        K = self.classes_.shape[0]
        if self.algorithm == "discrete" and K > 2:
            raise ValueError(f"algorithm='discrete' is for two classes; y has {K}: use algorithm='samme'.")
        if self.algorithm == "real" and not hasattr(self._inner(), "predict_proba"):
            raise ValueError("algorithm='real' needs an estimator with predict_proba: use algorithm='samme'.")
        rng, weight, total = check_random_state(self.random_state), start.copy(), float(start.sum())
        self.estimators_: list[Any] = []
        weights, errors, bounds = [], [], []
        for _ in range(self.n_estimators):
            model = self._fresh(rng).fit(X, self.classes_[labels], sample_weight=weight)
            wrong = model.predict(X) != self.classes_[labels]
            error = float(weight @ wrong / weight.sum())
            if self.algorithm == "real":
                coefficient, factor, shrink = self._real(model, X, labels)
            else:
                coefficient, factor, shrink = self._discrete(error, wrong, K)
            useless = K > 1 and error >= 1 - 1 / K - 1e-12
            if useless and self.estimators_:
                break  # no better than chance: the best term to add is none
            self.estimators_.append(model)
            weights.append(coefficient if not useless or self.algorithm == "real" else 1.0)
            errors.append(error)
            grown = weight * factor
            bounds.append(shrink * float(grown.sum() / weight.sum()) if not useless else 1.0)
            if useless or error <= 0 or not np.isfinite(grown.sum()):
                break
            weight = grown * (total / grown.sum())  # weights keep their sum, so that they still count rows
        self.estimator_weights_, self.estimator_errors_ = np.array(weights), np.array(errors)
        self.training_bound_ = np.cumprod(bounds)
        if self.algorithm == "real" and K > 2:
            self.training_bound_ = np.full(len(bounds), np.nan)
        self._certify(self._certificate(X, labels, start, clock))
        return self

    def _discrete(self, error: float, wrong: Array, K: int) -> tuple[float, Array, float]:
        """Coefficient, growth of the weights, and the factor e^(−α/2) of the bound."""
        held = min(max(error, LEAST_ERROR), 1 - LEAST_ERROR)
        alpha = self.learning_rate * (np.log((1 - held) / held) + (np.log(K - 1) if K > 2 else 0.0))
        coefficient = 0.5 * alpha if self.algorithm == "discrete" else alpha
        return float(coefficient), np.where(wrong, np.exp(alpha), 1.0), float(np.exp(-0.5 * alpha))

    def _real(self, model: Any, X: Any, labels: Array) -> tuple[float, Array, float]:
        K = self.classes_.shape[0]
        score = self._real_score(model, X)
        # y·F/K with the codes y_k = 1 for the class and −1/(K − 1) elsewhere; F sums to zero.
        own = score[np.arange(labels.shape[0]), labels] / max(K - 1, 1)
        return 1.0, np.exp(-self.learning_rate * own), 1.0

    def _real_score(self, model: Any, X: Any) -> Array:
        K = self.classes_.shape[0]
        p = np.full((X.shape[0], K), LEAST_ERROR)
        p[:, np.searchsorted(self.classes_, model.classes_)] = np.clip(model.predict_proba(X), LEAST_ERROR, None)
        log = np.log(p)
        # For two classes ± half of the log odds: the minimizer of the exponential loss.
        return np.asarray((K - 1) * (log - log.mean(axis=1, keepdims=True)))

    def _certificate(self, X: Any, labels: Array, weight: Array, clock: Progress) -> Certificate:
        votes = self._votes(X)
        K = self.classes_.shape[0]
        if K == 1:
            objective = 0.0
        else:
            own = votes[np.arange(labels.shape[0]), labels]
            margin = 0.5 * K / (K - 1) * (own - votes.mean(axis=1)) if self.algorithm != "real" else own
            with np.errstate(over="ignore"):
                objective = float(weight @ np.exp(-margin) / weight.sum())
        note = (
            f"The share of training errors is at most {self.training_bound_[-1]:.3g} (Freund and Schapire); each learner "
            "is fitted greedily, and the sum of all terms is not optimized as a whole. The objective is the mean "
            "exponential loss."
        )
        return Certificate.absent(objective, note, iterations=len(self.estimators_), seconds=clock.seconds)

    def _staged_votes(self, X: Any) -> Iterator[Array]:
        K = self.classes_.shape[0]
        total = np.zeros((X.shape[0], K))
        for model, coefficient in zip(self.estimators_, self.estimator_weights_, strict=True):
            if self.algorithm == "real":
                total = total + self.learning_rate * self._real_score(model, X)
            else:
                alpha = 2 * coefficient if self.algorithm == "discrete" else coefficient
                total = total + alpha * (model.predict(X)[:, None] == self.classes_)
            yield total

    def _votes(self, X: Any) -> Array:
        found = np.zeros((X.shape[0], self.classes_.shape[0]))
        for stage in self._staged_votes(X):
            found = stage
        return found

    def _decision(self, votes: Array) -> Array:
        return 0.5 * (votes[:, 1] - votes[:, 0]) if self.classes_.shape[0] == 2 else votes

    def _probability(self, votes: Array) -> Array:
        if self.classes_.shape[0] == 2:
            positive = expit(2 * self._decision(votes))
            return np.column_stack([1 - positive, positive])
        rivals = max(self.classes_.shape[0] - 1, 1) if self.algorithm == "real" else 1
        return np.asarray(softmax(votes / rivals, axis=1))

    def decision_function(self, X: Any) -> Array:
        """F for two classes (positive: the second one), F_k for more."""
        return like_input(X, self._decision(self._votes(self._read_new(X))))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities for which the exponential loss would have this F: 1 / (1 + e^(−2F)) for two classes."""
        return like_input(X, self._probability(self._votes(self._read_new(X))))

    def predict(self, X: Any) -> Array:
        """The class with the largest F."""
        return self._named(self._votes(self._read_new(X)))

    def _named(self, votes: Array) -> Array:
        return np.asarray(self.classes_[np.argmax(votes, axis=1)])

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """`decision_function` after each term."""
        for votes in self._staged_votes(self._read_new(X)):
            yield self._decision(votes)

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """`predict` after each term."""
        for votes in self._staged_votes(self._read_new(X)):
            yield self._named(votes)
