"""Multilayer perceptrons: any loss, a number, classes.

    minimize over W, b    (1/Σs_i) Σ s_i · loss(y_i, f(x_i))  +  alpha · ½ Σ_l ‖W_l‖²

with f the network of `certifit.models.neural.base`. The objective is not convex: training finds a good point, not the best
one, and the certificate says so. Given the features of the last hidden layer the output layer is a convex problem, and
`polish` solves it with a proof.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix
from certifit.base import HighestScoreMixin
from certifit.data.columns import known_columns, same_columns
from certifit.data.gate import check_xy, numbers_of, target_array
from certifit.data.targets import (
    announced_classes,
    check_labels,
    check_several_labels,
    class_weights,
    codes_of,
    several_labels,
)
from certifit.evaluation.losses import MULTICLASS, Logistic, Loss, Softmax, check_loss, resolve_loss
from certifit.evaluation.metrics.values import r2
from certifit.models.linear.parameters import LOSS
from certifit.models.neural.base import BaseNetwork, takes_steps
from certifit.models.neural.objective import Target
from certifit.models.neural.parameters import ANY_LOSS, SCORING, VISITS_OF_AN_EPOCH, check_hidden
from certifit.parameters import CLASS_WEIGHT, N_JOBS, RANDOM_STATE, VERBOSE, Choice, Fitted, check_parameters
from certifit.parameters.methods import SEVERAL

__all__ = ["MLPClassifier", "MLPRegressor", "NeuralNetwork"]

DRAWS = RANDOM_STATE.but(text="Draws the first weights, the order of the rows, and what dropout leaves out.")
PROGRESS = VERBOSE.but(text="1 shows a progress bar with the losses of the epochs.")


class NeuralNetwork(RegressorMixin, BaseNetwork, takes={"fit.y": SEVERAL, "fit.sample_weight": VISITS_OF_AN_EPOCH}):
    """A multilayer perceptron with any loss of ``certifit.losses``, also one of your own.

    Binary losses take targets 0 and 1, the softmax loss class numbers from 0; predictions are those of the loss
    (probabilities for the logistic and the softmax loss). A y of several columns has a score for each, and their losses add up.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import NeuralNetwork
    >>> from certifit.losses import Poisson
    >>> x = np.linspace(-3, 3, 500)
    >>> counts = np.random.default_rng(0).poisson(np.exp(np.sin(x)))
    >>> model = NeuralNetwork(loss=Poisson(), hidden=(32,), random_state=0).fit(x[:, None], counts)
    >>> bool(np.abs(model.predict(x[:, None]) - np.exp(np.sin(x))).mean() < 0.2)
    True
    """

    loss: Any = ANY_LOSS
    scoring: str = SCORING
    n_jobs: int | None = N_JOBS
    random_state: Any = DRAWS
    verbose: int = PROGRESS

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train the network."""
        check_parameters(self)
        check_hidden(self.hidden)
        loss = self._resolved_loss()
        judge, X, y, sample_weight = self._spread(X, y, sample_weight, first=not self._goes_on())
        X, y, weight = check_xy(judge, X, y, sample_weight=sample_weight, multi_output=True)
        loss, y = self._checked_target(loss, y)
        self._train(X, y, weight, loss, self._seed())
        return self

    @available_if(takes_steps)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """One pass over these rows, from where the last call (or `fit`) ended; the first call sets the units of X and y.

        Parameters
        ----------
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Target. Class numbers need a loss that knows how many there are: ``Softmax(n_classes=3)``.
        sample_weight : array of shape (n_samples,), optional
            Visits of each row.
        """
        check_parameters(self)
        check_hidden(self.hidden)
        first = not hasattr(self, "coefs_")
        loss, names = self._resolved_loss(), known_columns(self, first)
        judge, X, y, sample_weight = self._spread(X, y, sample_weight, first)
        X, y, weight = check_xy(judge, X, y, sample_weight=sample_weight, multi_output=True)
        same_columns(self, names)
        loss, y = self._checked_target(loss, y)
        self._train_once(X, y, weight, loss)
        return self

    def _resolved_loss(self) -> Loss:
        if isinstance(self.loss, Loss):
            return self.loss
        return MULTICLASS[self.loss]() if self.loss in MULTICLASS else resolve_loss(self.loss)

    def _checked_target(self, loss: Loss, y: Array) -> tuple[Loss, Array]:
        """Targets the loss takes; class numbers are whole, and the loss knows how many there are."""
        if not loss.coupled:
            for column in np.ascontiguousarray(y.reshape(y.shape[0], -1).T):
                check_loss(loss, column)
            return loss, y
        loss.check_target(y)
        if self.scoring != "loss":
            raise ValueError(
                f"scoring={self.scoring!r} is for targets that are numbers; {loss!r} takes classes: choose 'loss'."
            )
        if y.ndim == 2:
            return loss, y
        y = y.astype(np.intp)
        return type(loss)(**{**loss.get_params(), "n_classes": loss.n_scores(y)}), y

    def _examined(self, X: Matrix, y: Any) -> Target:
        y = numbers_of(target_array(y, multi_output=True))
        self._check_rows(X, y)
        if not self._loss.coupled:
            y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 and not self._several else y
            return self._again(*self._checked_target(self._loss, y), np.ones(X.shape[0]))
        self._loss.check_target(y)
        return self._again(self._loss, y.astype(np.intp) if y.ndim == 1 else y, np.ones(X.shape[0]))

    def _score(self, target: Target, scores: Array) -> float:
        found, y = target.inner.predict(scores), target.plain()
        if not np.isfinite(found).all():
            return float("nan")
        columns = zip(y.T, found.T, strict=True)
        return float(np.mean([r2(actual, told, sample_weight=target.weight) for actual, told in columns]))

    def predict(self, X: Any) -> Array:
        """Predictions of y: the inverse link of the scores."""
        scores = self._scores(X)
        return self._loss.predict(scores if self._several else scores[:, 0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class MLPRegressor(NeuralNetwork):
    """A multilayer perceptron for a number, or for several at once.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MLPRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(600, 2))
    >>> y = 1e6 + 100 * X[:, 0] * X[:, 1]
    >>> model = MLPRegressor(hidden=(64, 32), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    loss: Any = LOSS.but(
        text='A name from ``certifit.losses.LOSSES`` ("squared", "absolute", "huber", "quantile", "poisson", "gamma", …) or '
        "a loss object, such as ``Quantile(0.9)`` or ``Huber(delta=2.0)``."
    )

    def _resolved_loss(self) -> Loss:
        return resolve_loss(self.loss)


class MLPClassifier(HighestScoreMixin, ClassifierMixin, BaseNetwork):
    """A multilayer perceptron for classes: logistic loss for two, softmax with cross-entropy for more.

    A row may have several labels: a y of several columns, a 1 for each label that a row has, is learned with a logistic loss for
    each column.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes; the numbers of the columns of y where rows have several labels.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MLPClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(500, 2))
    >>> y = np.where((X**2).sum(axis=1) < 2, "inside", "outside")
    >>> model = MLPClassifier(hidden=(32, 16), random_state=0).fit(X, y)
    >>> model.predict([[0.1, 0.2], [1.5, 1.5]])
    array(['inside', 'outside'], dtype='<U7')
    """

    class_weight: Any = CLASS_WEIGHT
    scoring: str = SCORING.but(
        domain=Choice("loss", "accuracy"),
        text="What `early_stopping` watches of the rows set aside: their loss, or their accuracy, of which `tol` is then the "
        "improvement that counts.",
    )
    n_jobs: int | None = N_JOBS
    random_state: Any = DRAWS
    verbose: int = PROGRESS

    classes_: Array = Fitted()

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train the network."""
        check_parameters(self)
        check_hidden(self.hidden)
        known = self.classes_ if self._goes_on() else None
        judge, X, y, sample_weight = self._spread(X, y, sample_weight, first=not self._goes_on())
        if (labels := several_labels(y)) is not None:
            X, codes, weight, classes = check_several_labels(judge, X, labels, sample_weight, self.class_weight)
        else:
            X, codes, weight, classes = check_labels(judge, X, y, sample_weight, self.class_weight)
        if known is not None and (not np.array_equal(known, classes) or (codes.ndim == 2) != self._of_columns()):
            raise ValueError(
                "warm_start=True continues a model: y must hold the same classes as before; set it to False to start anew."
            )
        self.classes_ = classes
        loss, target = self._coded(codes)
        self._train(X, target, weight, loss, self._seed())
        return self

    @available_if(takes_steps)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """One pass over these rows, from where the last call (or `fit`) ended; the first call sets the units of X.

        Parameters
        ----------
        y : array of shape (n_samples,) or (n_samples, K)
            Labels, a part of `classes`; or a column of 0 and 1 for each of them.
        classes : array of shape (K,), optional
            All labels there will ever be; needed at the first call.
        sample_weight : array of shape (n_samples,), optional
            Visits of each row.
        """
        check_parameters(self)
        check_hidden(self.hidden)
        first = not hasattr(self, "coefs_")
        known, names = announced_classes(self, classes, first), known_columns(self, first)
        judge, X, y, sample_weight = self._spread(X, y, sample_weight, first)
        if (labels := several_labels(y)) is not None:
            X, codes, weight, known = check_several_labels(judge, X, labels, sample_weight, self.class_weight, known)
        else:
            X, y, weight = check_xy(judge, X, y, sample_weight=sample_weight, numeric_target=False)
            codes = codes_of(known, y)
            weight = weight * class_weights(self.class_weight, known, codes, weight)[codes]
        same_columns(self, names)
        self.classes_ = known
        loss, target = self._coded(codes)
        self._train_once(X, target, weight, loss)
        return self

    def _coded(self, codes: Array) -> tuple[Loss, Array]:
        """Loss and targets of class numbers, or of columns of labels."""
        K = self.classes_.shape[0]
        if codes.ndim == 2:
            return Logistic(), codes
        return (Logistic(), codes.astype(np.float64)) if K == 2 else (Softmax(K), codes)

    def _examined(self, X: Matrix, y: Any) -> Target:
        labels = several_labels(y)
        loss, target = self._coded(
            codes_of(self.classes_, target_array(y)) if labels is None else labels.astype(np.float64)
        )
        self._check_rows(X, target)
        if (target.ndim == 2) != self._of_columns():
            wanted = "a column for each label" if self._of_columns() else "one class for each row"
            raise ValueError(f"y must hold {wanted}, as in training; got an array of shape {target.shape}.")
        return self._again(loss, target, np.ones(X.shape[0]))

    def _of_columns(self) -> bool:
        """Whether rows have several labels."""
        return self._several and isinstance(self._loss, Logistic)

    def _score(self, target: Target, scores: Array) -> float:
        if not np.isfinite(scores).all():
            return float("nan")
        if target.inner.coupled:
            hits = scores.argmax(axis=1) == target.y
        else:
            hits = ((scores > 0) == (target.plain() > 0.5)).all(axis=1)
        return float(np.average(hits, weights=target.weight))

    def predict(self, X: Any) -> Array:
        """The class of the highest score; where rows have several labels, a column of 0 and 1 for each label."""
        check_is_fitted(self)
        return (self._scores(X) > 0).astype(np.intp) if self._of_columns() else super().predict(X)

    def decision_function(self, X: Any) -> Array:
        """Scores: shape (n,) for two classes (positive: the second class), (n, K) for more, or for labels."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes; of each label by itself where rows have several."""
        check_is_fitted(self)
        scores = self._scores(X)
        if scores.shape[1] > 1:
            return self._loss.predict(scores)
        positive = self._loss.predict(scores[:, 0])
        return np.stack([1.0 - positive, positive], axis=1)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = tags.classifier_tags.multi_label = True
        return tags
