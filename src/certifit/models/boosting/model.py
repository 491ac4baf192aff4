"""Gradient boosted trees with any loss.

    score(x) = start + learning_rate · Σ_t tree_t(x),      each tree fitted to the gradients and curvatures of

    (1/Σs_i) Σ s_i · loss(y_i, score(x_i))

The loss is any `Loss` object, the same ones the linear models use. Where it has curvature, the leaves take
Newton's step −Σg/(Σh + l2); where it has none, trees follow the gradient and each leaf gets its exact line
search.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from certifit._types import Array
from certifit.data.targets import positive_class_weights
from certifit.evaluation.losses import (
    ALIASES,
    LOSSES,
    Hinge,
    Logistic,
    Loss,
    MulticlassHinge,
    Softmax,
    check_loss,
    resolve_loss,
)
from certifit.models.boosting.base import LEAF_L2, BaseBoosting
from certifit.models.boosting.fit import OF_CLASSES, PIECE, formula
from certifit.models.linear.parameters import LOSS
from certifit.optimization.closed_form.magnitudes import power_of_two
from certifit.parameters import CLASS_WEIGHT, N_JOBS, RANDOM_STATE, VERBOSE, Any_, Fitted, Parameter

__all__ = ["BoostedTrees", "GradientBoostingClassifier", "GradientBoostingRegressor"]

# Two classes need one score, the difference of the two that these losses speak of.
ONE_SCORE: dict[type[Loss], type[Loss]] = {Softmax: Logistic, MulticlassHinge: Hinge}


class BoostedTrees(RegressorMixin, BaseBoosting):
    """Boosted trees with any loss of ``certifit.losses``, also one of your own.

    The loss is resolved as for ``LinearModel``: a name or an object. Binary losses take targets 0 and 1, and
    predictions are those of the loss (the probability, for the logistic loss).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import BoostedTrees
    >>> from certifit.losses import Quantile
    >>> X, noise = np.linspace(0, 1, 500)[:, None], 0.3 * np.random.default_rng(0).normal(size=500)
    >>> y = np.sin(6 * X[:, 0]) + noise
    >>> model = BoostedTrees(loss=Quantile(0.9)).fit(X, y)
    >>> bool(0.88 < np.mean(y <= model.predict(X)) < 0.95)
    True
    """

    n_jobs: int | None = N_JOBS
    random_state: Any = RANDOM_STATE.but(text="Draws rows and columns.")
    verbose: int = VERBOSE

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the trees.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features; NaN marks missing values.
        """
        loss = self._resolved_loss()
        X, y, weight, plan = self._checked_input(X, y, sample_weight, numeric=True)
        check_loss(loss, y)
        inner, unit, factor = _in_units(loss, y)
        if unit != 1.0:
            # ½ l2 v² in units of the score: v = unit · v', loss = unit^p · loss', which may be too small for a double.
            _, factor_of_two = loss.rescaled(2.0) or (loss, 1.0)
            with np.errstate(over="ignore", under="ignore"):
                ratio = float(np.exp2((2.0 - np.log2(factor_of_two)) * np.log2(unit)))
            plan = plan.replace(l2=plan.l2 * ratio if plan.l2 > 0 else 0.0)
        result = self._boost(X, y / unit if unit != 1.0 else y, weight, inner, 1, plan, unit)
        if unit != 1.0:
            result = result.rescaled(unit, factor)
        self._keep(result, loss, 1)
        return self

    def _resolved_loss(self) -> Loss:
        return resolve_loss(self.loss)

    def predict(self, X: Any) -> Array:
        """Predictions of y: the inverse link of the scores."""
        scores = self._scores(X)[:, 0]
        return self._loss.predict(scores)

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions after each stage."""
        for scores in self._staged_scores(X):
            yield self._loss.predict(scores[:, 0])


class GradientBoostingRegressor(BoostedTrees):
    """Boosted trees for a number: ``BoostedTrees`` with the parameters of common losses at hand.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import GradientBoostingRegressor
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> y = np.where(X[:, 0] > 0.5, 3.0, 1.0)
    >>> model = GradientBoostingRegressor(n_estimators=50, learning_rate=0.3).fit(X, y)
    >>> model.predict([[0.2], [0.9]]).round(3)
    array([1., 3.])
    >>> print(model.trees_[0])
    if x0 <= 0.5:  (gain 100, weight 200)
      then: -0.3  (weight 100)
      else: +0.3  (weight 100)
    """

    loss: Any = LOSS.but(
        text='A name from ``certifit.losses.LOSSES`` ("squared", "absolute", "huber", "quantile", "poisson", "gamma", …) or '
        "a loss object, such as ``Quantile(0.9)`` or ``Huber(delta=2.0)``."
    )


def _has_probabilities(model: Any) -> bool:
    loss = getattr(model, "_loss", None)
    if loss is None:
        return type(model._binary_loss()).predict is not Loss.predict
    return type(loss).predict is not Loss.predict


class GradientBoostingClassifier(ClassifierMixin, BaseBoosting):
    """Boosted trees for classes: logistic loss for two, softmax for more, or the hinge of two or more.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import GradientBoostingClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> model = GradientBoostingClassifier().fit(X, np.where(X[:, 0] * X[:, 1] > 0, "same", "different"))
    >>> model.predict([[1.0, 1.0], [-1.0, 1.0]])
    array(['same', 'different'], dtype='<U9')
    """

    # Which losses there are for classes is judged by name, before any data is read.
    loss: Any = Parameter(
        "logistic",
        Any_("str or Loss", wrong=("no such loss", 3, None)),
        '"logistic" (also named "softmax") or "multiclass_hinge" for any number of classes; for two also "exponential", '
        '"squared_hinge", "hinge" or any binary loss object. Only losses with a link to probabilities have `predict_proba`.',
    )
    # Where nearly all rows of a leaf are of one class their curvature vanishes, and Newton's step would have no bound.
    l2: float = LEAF_L2.but(1.0)
    class_weight: Any = CLASS_WEIGHT
    n_jobs: int | None = N_JOBS
    random_state: Any = RANDOM_STATE.but(text="Draws rows and columns.")
    verbose: int = VERBOSE

    classes_: Array = Fitted()

    def _of_classes(self, K: int) -> Loss:
        """The loss of K classes, of one score for two and of K for more."""
        binary = self._binary_loss()
        costs = getattr(self.loss, "costs", None)
        if costs is not None and (K <= 2 or len(costs) != K):
            raise ValueError(
                f"The costs of loss={self.loss!r} must be those of all classes, three or more; y has {K}. With two, use "
                "loss='hinge' and class_weight."
            )
        if K <= 2:
            return binary
        if type(binary) is Logistic:
            return Softmax(K)
        if self.loss == MulticlassHinge.name:
            return MulticlassHinge(n_classes=K)
        if isinstance(self.loss, MulticlassHinge):
            return self.loss
        raise ValueError(
            f"loss={self.loss!r} is for two classes; y has {K}. Use loss='logistic' or loss='multiclass_hinge'."
        )

    def _binary_loss(self) -> Loss:
        if isinstance(self.loss, Loss) and self.loss.task == "binary":
            return self.loss
        for several, single in ONE_SCORE.items():
            if self.loss == several.name or type(self.loss) is several:
                return single()
        binary = {name: cls for name, cls in LOSSES.items() if cls.task == "binary"}
        if isinstance(self.loss, str) and ALIASES.get(self.loss, self.loss) in binary:
            return binary[ALIASES.get(self.loss, self.loss)]()
        names = ", ".join(map(repr, [*binary, *(several.name for several in ONE_SCORE)]))
        raise ValueError(f"loss must be one of {names}, or such a loss object of certifit.losses; got {self.loss!r}.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the trees.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features; NaN marks missing values.
        y : array of shape (n_samples,)
            Classes: numbers or strings.
        """
        self._binary_loss()  # a loss that is none is refused before the rows are read
        X, y, weight, plan = self._checked_input(X, y, sample_weight, numeric=False)
        check_classification_targets(y)
        labels = self._numbered(y)
        if self.class_weight is not None:
            weight = positive_class_weights(self.class_weight, self.classes_, labels, weight)
        K = self.classes_.shape[0]
        loss, n_outputs = self._of_classes(K), K if K > 2 else 1
        if K > 2 and plan.monotone.any():
            raise ValueError(
                f"monotone_constraints has no meaning for {K} classes: use it with two, or with a regressor."
            )
        target = np.ones_like(labels) if K == 1 else labels
        if formula(loss) not in OF_CLASSES:
            target = target.astype(np.float64)  # other losses see the whole vector at once
        del labels, y
        self._keep(self._boost(X, target, weight, loss, n_outputs, plan), loss, n_outputs)
        return self

    def _numbered(self, y: Array) -> Array:
        """Class numbers in a small type; sets `classes_`, which a warm start must not change."""
        classes = np.unique(y)
        if self.warm_start and hasattr(self, "trees_") and not np.array_equal(classes, self.classes_):
            raise ValueError(
                "warm_start=True continues a model: y must hold the same classes as before; set it to False to start anew."
            )
        self.classes_ = classes
        labels = np.empty(y.shape[0], dtype=np.uint8 if classes.shape[0] <= 256 else np.int32)
        for k in range(0, y.shape[0], PIECE):
            labels[k : k + PIECE] = np.searchsorted(classes, y[k : k + PIECE])
        return labels

    def decision_function(self, X: Any) -> Array:
        """Raw scores: shape (n_samples,) for two classes, (n_samples, n_classes) for more."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """The most likely class of each row."""
        return self._classes_of(self._scores(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, shape (n_samples, n_classes)."""
        return self._probabilities_of(self._scores(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Classes after each stage."""
        for scores in self._staged_scores(X):
            yield self._classes_of(scores)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Probabilities after each stage."""
        for scores in self._staged_scores(X):
            yield self._probabilities_of(scores)

    def _classes_of(self, scores: Array) -> Array:
        if self.classes_.shape[0] == 1:
            return np.repeat(self.classes_, scores.shape[0])
        which = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[which])

    def _probabilities_of(self, scores: Array) -> Array:
        if self.classes_.shape[0] == 1:
            return np.ones((scores.shape[0], 1), dtype=scores.dtype)
        if scores.shape[1] > 1:
            return self._loss.predict(scores)
        positive = self._loss.predict(scores[:, 0])
        return np.stack([1.0 - positive, positive], axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags


def _in_units(loss: Loss, y: Array) -> tuple[Loss, float, float]:
    """For extreme targets of a homogeneous loss: an equal problem near one, its unit, the factor of its loss."""
    size = float(np.abs(y).max())
    if size == 0.0 or 1e-60 < size < 1e60:
        return loss, 1.0, 1.0
    unit = power_of_two(size)
    scaled = loss.rescaled(unit)
    return (loss, 1.0, 1.0) if scaled is None else (scaled[0], unit, scaled[1])
