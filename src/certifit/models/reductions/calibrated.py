"""Probabilities that come true: a map from the scores of any classifier, learned on rows it did not see.

    sigmoid (Platt)     p = s(a·f + b)                              isotonic      p = the best non-decreasing function of f
    temperature         p = softmax(f/T)                            beta          p = s(a·ln q − b·ln(1 − q) + c),  a, b ≥ 0
    matrix              p = softmax(W f + b)

The map is fitted to the scores of rows left out by cross-fitting; the classifier itself is then fitted on all rows. With more
than two classes, temperature and matrix take all scores at once, and the other maps are learned class by class against the
rest and normalized.
Platt (1999); Zadrozny and Elkan (2002); Guo et al. (2017); Kull, Silva Filho and Flach (2017).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression, minimize_scalar
from scipy.special import expit, log_softmax
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from certifit._types import Array, Matrix
from certifit.base import CertifiedEstimator, CopiesMixin
from certifit.certificate import Certificate
from certifit.data.gate import check_x, check_xy, kept_rows, like_input
from certifit.data.targets import several_classes
from certifit.evaluation.losses import Logistic
from certifit.evaluation.splits.choice import Fold, folds_of
from certifit.models.reductions.multiclass import OfClassifier
from certifit.names import stored
from certifit.parameters import Choice, Declared, Either, Fitted, Folds, Learner, Nothing, Parameter, check_parameters

__all__ = ["CalibratedClassifier", "learn_maps", "mapped", "scores_of"]

NEAR = 1e-5  # less than this from its minimum, values tell it badly
EDGE = 1e-12  # probabilities are kept this far from 0 and 1 before their logarithm is taken


@stored("SigmoidMap")
class Sigmoid:
    """s(a·f + b), with Platt's targets (N₊ + 1)/(N₊ + 2) and 1/(N₋ + 2) so that separated scores stay finite."""

    def __init__(self, f: Array, y: Array, weight: Array) -> None:
        self.center, self.unit = (
            float(weight @ f / weight.sum()),
            float(np.sqrt(weight @ (f - float(weight @ f / weight.sum())) ** 2 / weight.sum())) or 1.0,
        )
        plus, minus = float(weight @ y), float(weight @ (1.0 - y))
        target = np.where(y > 0.5, (plus + 1.0) / (plus + 2.0), 1.0 / (minus + 2.0))
        z = (f - self.center) / self.unit
        self.a, self.b = _logistic(np.column_stack([z, np.ones_like(z)]), target, weight)

    def __call__(self, f: Array) -> Array:
        return np.asarray(expit(self.a * (f - self.center) / self.unit + self.b))


@stored("IsotonicMap")
class Isotonic:
    """The non-decreasing function with the least squared error: pooled adjacent violators, read off by interpolation."""

    def __init__(self, f: Array, y: Array, weight: Array) -> None:
        order = np.argsort(f, kind="stable")
        distinct, which = np.unique(f[order], return_inverse=True)
        mass = np.bincount(which, weights=weight[order])
        share = np.bincount(which, weights=weight[order] * y[order]) / mass
        level = isotonic_regression(share, weights=mass).x
        # Only the ends of each level matter: a straight line between them gives the same function.
        edge = np.r_[True, level[1:] != level[:-1]] | np.r_[level[1:] != level[:-1], True]
        self.x, self.p = distinct[edge], np.clip(level[edge], 0.0, 1.0)

    def __call__(self, f: Array) -> Array:
        return np.interp(f, self.x, self.p)


@stored("BetaMap")
class Beta:
    """s(a·ln q − b·ln(1 − q) + c) of a probability q, with a, b ≥ 0 so that the order of the rows stays."""

    def __init__(self, q: Array, y: Array, weight: Array) -> None:
        A = _beta_terms(q)
        used = [True, True]
        while True:  # a negative slope is set to zero, and the rest fitted again
            columns = [j for j in (0, 1) if used[j]]
            found = _logistic(np.column_stack([A[:, columns], np.ones(q.shape[0])]), y, weight)
            slope = np.zeros(2)
            slope[columns] = found[:-1]
            if (slope >= 0).all():
                break
            used[int(np.argmin(slope))] = False
        self.a, self.b, self.c = float(slope[0]), float(slope[1]), float(found[-1])

    def __call__(self, q: Array) -> Array:
        A = _beta_terms(q)
        return np.asarray(expit(self.a * A[:, 0] + self.b * A[:, 1] + self.c))


def _beta_terms(q: Array) -> Array:
    q = np.clip(q, EDGE, 1.0 - EDGE)
    return np.column_stack([np.log(q), -np.log1p(-q)])


def _logistic(A: Array, target: Array, weight: Array) -> Array:
    """Logistic regression of a few columns on soft targets, by Newton's method with a hair of ridge."""
    p, loss, x = weight / weight.sum(), Logistic(), np.zeros(A.shape[1])
    ridge = 1e-8
    for _ in range(100):
        f = A @ x
        g = A.T @ (p * loss.derivative(target, f)) + ridge * x
        H = (A.T * (p * loss.second_derivative(target, f))) @ A + ridge * np.eye(A.shape[1])
        step = np.linalg.solve(H, g)
        before, size = float(p @ loss.value(target, f)) + 0.5 * ridge * float(x @ x), 1.0
        while size > 1e-10:
            trial = x - size * step
            if float(p @ loss.value(target, A @ trial)) + 0.5 * ridge * float(trial @ trial) <= before:
                break
            size *= 0.5
        x = x - size * step
        if float(np.abs(size * step).max()) <= 1e-10 * (1.0 + float(np.abs(x).max())):
            break
    return x


def _matrix(scores: Array, codes: Array, weight: Array) -> Any:
    """A logistic regression on the scores in units of the largest; the alpha keeps it finite when they separate the classes."""
    from certifit.models.logistic.model import LogisticRegression

    size = float(np.abs(scores).max()) or 1.0
    found = LogisticRegression(alpha=1e-6).fit(scores / size, codes, sample_weight=weight)
    found.coef_ = found.coef_ / size
    return found


def _settled(log_heat: float, f: Array, codes: Array, weight: Array) -> float:
    """The root of the slope next to a minimizer that values alone have found, and so to half of the digits only."""
    for _ in range(2):
        scores = f * np.exp(log_heat)
        p = np.exp(log_softmax(scores, axis=1))
        mean = (p * scores).sum(axis=1)
        miss = mean - scores[np.arange(codes.shape[0]), codes]
        slope, bend = float(weight @ miss), float(weight @ (miss + (p * scores**2).sum(axis=1) - mean**2))
        if not (bend > 0.0 and abs(slope) < NEAR * bend):  # an end of the bracket is no root
            break
        log_heat -= slope / bend
    return log_heat


MAPS: dict[str, Any] = {
    "sigmoid": Sigmoid,
    "isotonic": Isotonic,
    "beta": Beta,
    "temperature": None,
    "matrix": _matrix,
}


def learn_maps(method: str, scores: Array, codes: Array, weight: Array, K: int) -> list[Any]:
    """The map of all scores at once, or one for each class; scores are of shape (n, 1) for two classes, (n, K) for more."""
    if method == "temperature":
        f, rows = _both(scores), np.arange(codes.shape[0])

        def deviance(log_heat: float) -> float:
            return -float(weight @ log_softmax(f * np.exp(log_heat), axis=1)[rows, codes]) / float(weight.sum())

        # Convex in the inverse temperature, so the bracket holds its only minimum; its ends are in units of the scores.
        size = float(np.abs(f).max()) or 1.0
        f = f / size
        found = minimize_scalar(
            deviance,
            bounds=(np.log(1e-6), np.log(1e6 / (float(np.abs(f).mean()) or 1.0))),
            method="bounded",
            options={"xatol": 1e-10},
        )
        return [size * float(np.exp(-_settled(found.x, f, codes, weight)))]
    make = MAPS[method]
    if method == "matrix":
        return [make(scores, codes, weight)]
    first = 1 if K == 2 else 0
    return [make(f, (codes == k).astype(np.float64), weight) for k, f in enumerate(scores.T, start=first)]


def mapped(method: str, maps: list[Any], scores: Array, K: int) -> Array:
    """Probabilities of the classes from scores, by maps that `learn_maps` found."""
    if method == "temperature":
        return np.exp(log_softmax(_both(scores) / maps[0], axis=1))
    if method == "matrix":
        return np.asarray(maps[0].predict_proba(scores))
    p = np.column_stack([one(f) for one, f in zip(maps, scores.T, strict=True)])
    if K == 2:
        return np.column_stack([1.0 - p[:, 0], p[:, 0]])
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / K)


def _both(scores: Array) -> Array:
    """The score of the first of two classes is zero."""
    return np.column_stack([np.zeros(scores.shape[0]), scores[:, 0]]) if scores.shape[1] == 1 else scores


def scores_of(model: Any, X: Any, classes: Array, *, probabilities: bool = False) -> Array:
    """What a fitted classifier says of rows before it decides, shape (n, 1) for two classes, (n, K) for more."""
    K = classes.shape[0]
    if probabilities and hasattr(model, "predict_proba"):
        p = np.asarray(model.predict_proba(X), dtype=np.float64)
        return p[:, 1:] if K == 2 else p
    if hasattr(model, "decision_function"):
        f = np.asarray(model.decision_function(X), dtype=np.float64).reshape(X.shape[0], -1)
        return np.asarray(expit(f)) if probabilities else f
    if hasattr(model, "predict_proba"):
        p = np.clip(np.asarray(model.predict_proba(X), dtype=np.float64), EDGE, 1.0)
        return np.log(p[:, 1:]) - np.log(np.clip(p[:, :1], EDGE, 1.0)) if K == 2 else np.log(p)
    labels = np.asarray(model.predict(X))
    found = (labels[:, None] == classes).astype(np.float64)
    return found[:, 1:] if K == 2 else found


class CalibratedClassifier(Declared, OfClassifier, CopiesMixin, ClassifierMixin, CertifiedEstimator):
    """Any classifier, made to give probabilities that come true.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import CalibratedClassifier, LinearSVC
    >>> x = np.linspace(-3, 3, 1000)
    >>> chance = 1 / (1 + np.exp(-2 * x))
    >>> y = np.random.default_rng(0).random(1000) < chance
    >>> model = CalibratedClassifier(LinearSVC(alpha=0.01)).fit(x[:, None], y)
    >>> bool(np.abs(model.predict_proba(x[:, None])[:, 1] - chance).max() < 0.1)
    True
    """

    estimator: Any = Parameter(
        None,
        Either(Nothing(), Learner()),
        "The classifier, with decision_function, predict_proba or labels alone; None is `LogisticRegression()`.",
    )
    method: str = Parameter("sigmoid", Choice(*MAPS), "The map from scores to probabilities.")
    cv: Any = Parameter(
        5,
        Either(Folds(), Choice("prefit")),
        "Folds whose left-out scores the map is learned from. An integer deals the rows of each class by their content, so that "
        'copies of a row share a fold; "prefit" takes the classifier as fitted; anything else is scikit-learn\'s.',
    )

    weights_are_counts = True  # Platt's targets depend on the number of rows

    classes_: Array = Fitted("array of shape (K,)", "The labels.")
    estimator_: Any = Fitted("classifier", "Fitted on all rows.")
    maps_: list[Any] = Fitted("list", "The fitted maps: one, or one for each class.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CalibratedClassifier:
        """Fit the classifier on folds, the map on left-out scores, and the classifier on all rows."""
        started = time.perf_counter()
        check_parameters(self)
        tags = get_tags(self._inner()).input_tags
        labels = y
        X, y, weight = check_xy(
            self,
            X,
            y,
            sample_weight=sample_weight,
            numeric_target=False,
            accept_sparse=("csr",) if tags.sparse else False,
            allow_nan=bool(tags.allow_nan),
        )
        self.classes_, codes = several_classes(self, y)
        given = None if sample_weight is None else weight
        if self.cv == "prefit":
            check_is_fitted(self._inner())
            if np.asarray(self.estimator.classes_).tolist() != self.classes_.tolist():
                raise ValueError(
                    f"cv='prefit': the classifier knows the classes {np.asarray(self.estimator.classes_).tolist()!r}, y has "
                    f"{self.classes_.tolist()!r}."
                )
            self.estimator_ = self.estimator
            scores, rows = self._scores(self.estimator_, X), np.arange(y.shape[0])
        else:
            self.estimator_ = self._fitted(X, codes, given)
            kept, names = kept_rows(sample_weight, X.shape[0]), self.classes_.tolist()
            folds = folds_of(self.cv, X, codes, kept=kept, given=labels, classes=names)
            scores, rows = self._left_out(X, codes, given, folds)
        self.maps_ = learn_maps(self.method, scores, codes[rows], weight[rows], self.classes_.shape[0])
        inner = getattr(self.estimator_, "certificate_", None)
        note = "The map is learned on rows left out."
        if inner is None:
            self._certify(
                Certificate.absent(
                    0.0, f"{note} The classifier carries no certificate.", seconds=time.perf_counter() - started
                )
            )
        else:
            self.certificate_ = inner
        return self

    def _fitted(self, X: Matrix, codes: Array, weight: Array | None) -> Any:
        model = clone(self._inner())
        if weight is None:
            return model.fit(X, self.classes_[codes])
        if not has_fit_parameter(model, "sample_weight"):
            raise ValueError(f"sample_weight was given, but {type(model).__name__}.fit takes no sample_weight.")
        return model.fit(X, self.classes_[codes], sample_weight=weight)

    def _left_out(self, X: Matrix, codes: Array, weight: Array | None, folds: list[Fold]) -> tuple[Array, Array]:
        """Scores of rows from a classifier that did not see them, and which rows these are."""
        K = self.classes_.shape[0]
        scores, rows = [np.zeros((0, 1 if K == 2 else K))], [np.zeros(0, dtype=np.int64)]
        for train, test in folds:
            model = self._fitted(X[train], codes[train], None if weight is None else weight[train])
            scores.append(self._scores(model, X[test]))
            rows.append(test)
        known = np.concatenate(rows)
        if np.unique(codes[known]).shape[0] < K:  # too few rows to leave any out
            return self._scores(self.estimator_, X), np.arange(codes.shape[0])
        return np.vstack(scores), known

    def _scores(self, model: Any, X: Any) -> Array:
        return scores_of(model, X, self.classes_, probabilities=self.method == "beta")

    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities, shape (n_samples, n_classes)."""
        check_is_fitted(self, "maps_")
        tags = get_tags(self._inner()).input_tags
        rows = check_x(
            self, X, reset=False, accept_sparse=("csr",) if tags.sparse else False, allow_nan=bool(tags.allow_nan)
        )
        scores = self._scores(self.estimator_, rows)
        return like_input(rows, mapped(self.method, self.maps_, scores, self.classes_.shape[0]))

    def predict(self, X: Any) -> Array:
        """The most probable class."""
        most = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[most])
