"""The perceptron in the space of a kernel: every mistake adds a row to the sum.

    if s_i f(x_i) ≤ 0:   β_i ← β_i + s_i,      f(x) = Σ_j β_j (k(x, x_j) + c)        (s = ±1, the side of the row)

with c the size of the rows where there is an intercept c·Σβ. Where some function of the space has the rows on their sides with
margin γ, at most R²/γ² mistakes are made, R² the largest k(x, x) + c (Novikoff 1962, in feature space).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state

from certifit._types import Array
from certifit.base import HighestScoreMixin
from certifit.certificate import Certificate
from certifit.models.kernel.model import MOST_ROWS, BaseKernel
from certifit.models.kernel.parameters import KERNEL
from certifit.optimization.stochastic.descent import Visits
from certifit.parameters import (
    CLASS_WEIGHT,
    FIT_INTERCEPT,
    MAX_EPOCHS,
    RANDOM_STATE,
    SHUFFLE,
    VERBOSE,
    Fitted,
)
from certifit.progress import Progress, progress
from certifit.representation.kernels.points import Sample, raw_rows

__all__ = ["KernelPerceptron"]

LOOK = 1024  # rows that are looked at together for the next mistake


class _Separator(NamedTuple):
    """One class against the rest: coefficients, mistakes, epochs, the share on the wrong side, and R²/γ²."""

    beta: Array
    mistakes: int
    epochs: int
    error: float
    bound: float


class KernelPerceptron(HighestScoreMixin, ClassifierMixin, BaseKernel):
    """Rosenblatt's perceptron on a kernel; more than two classes are learned each against the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import KernelPerceptron
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])  # no plane separates these
    >>> model = KernelPerceptron(random_state=0).fit(X, ["same", "same", "other", "other"])
    >>> model.score(X, ["same", "same", "other", "other"]), model.certificate_.kind
    (1.0, 'witness')
    >>> bool(model.n_mistakes_ <= model.mistake_bound_)
    True
    """

    kernel: Any = KERNEL
    fit_intercept: bool = FIT_INTERCEPT
    max_iter: int = MAX_EPOCHS
    shuffle: bool = SHUFFLE
    class_weight: Any = CLASS_WEIGHT.but(text="Factor of the weight of each class; weights are visits.")
    random_state: Any = RANDOM_STATE.but(text="Draws the order of the rows.")
    verbose: int = VERBOSE

    classes_: Array = Fitted("array of shape (K,)", "The classes.")
    dual_coef_: Array = Fitted(
        "array of shape (n_points,) or (n_points, K)", "β: mistakes made on each row, with their side."
    )
    intercept_: Any = Fitted("float or array of shape (K,)", "c·Σβ.")
    n_mistakes_: Any = Fitted("int or array of shape (K,)", "Mistakes made.")
    mistake_bound_: Any = Fitted(
        "float or array of shape (K,)",
        "R²/γ² with the margin γ of the function found; infinite where it does not separate.",
    )
    n_iter_: int = Fitted("int", "Epochs.")
    certificate_: Certificate = Fitted("Certificate", "A witness: the function that has every row on its side.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelPerceptron:
        """Fit the model; weights are visits of a row."""
        sample = self._sample(X, y, sample_weight, labels=True, class_weight=self.class_weight)
        self.classes_ = np.asarray(sample.classes)
        K = self.classes_.shape[0]
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=K)
        with progress(self.verbose, type(self).__name__) as clock:
            columns = _Columns(sample, bool(self.fit_intercept))
            parts = [
                self._against_rest(sample, columns, np.where(sample.y == k, 1.0, -1.0), int(seed), clock)
                for k, seed in zip([1] if K == 2 else range(K), seeds, strict=False)
            ]
        beta = np.column_stack([part.beta for part in parts])
        used = np.flatnonzero(beta.any(axis=1))
        intercept, single = columns.constant * beta.sum(axis=0), K == 2
        self._keep(
            sample.points.take(used), beta[used, 0] if single else beta[used], intercept[0] if single else intercept
        )
        self.n_mistakes_ = parts[0].mistakes if single else np.array([part.mistakes for part in parts])
        self.mistake_bound_ = parts[0].bound if single else np.array([part.bound for part in parts])
        self.n_iter_ = max(part.epochs for part in parts)
        self._certify(self._certificate(sample, parts, clock.seconds))
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores: shape (n,) for two classes (positive: the second class), (n, K) for more."""
        return self._scores(X)

    def _against_rest(self, sample: Sample, columns: _Columns, sign: Array, seed: int, clock: Progress) -> _Separator:
        n = sign.shape[0]
        f, beta, mistakes, epochs = np.zeros(n), np.zeros(n), 0, 0
        visits = Visits(sample.weight, bool(self.shuffle), np.random.default_rng(seed))
        while epochs < self.max_iter:
            order, place, made = visits.next(), 0, 0
            while place < order.shape[0]:
                ahead = order[place : place + LOOK]
                wrong = np.flatnonzero(~(sign[ahead] * f[ahead] > 0))
                if not wrong.size:
                    place += LOOK
                    continue
                i = int(ahead[wrong[0]])
                place += int(wrong[0]) + 1
                beta[i] += sign[i]
                f += sign[i] * columns(i)
                made += 1
            mistakes, epochs = mistakes + made, epochs + 1
            clock.update(epochs, self.max_iter, made / n)
            if made == 0 and (sign * f > 0).all():  # rows whose weight is a fraction may not have been visited
                break
        least, length = float((sign * f).min()), float(beta @ f)
        with np.errstate(over="ignore", divide="ignore"):
            bound = columns.radius * (length / least) / least if least > 0.0 else np.inf
        return _Separator(beta, mistakes, epochs, float(sample.p @ ~(sign * f > 0)), bound)

    def _certificate(self, sample: Sample, parts: list[_Separator], seconds: float) -> Certificate:
        error, epochs = float(np.mean([part.error for part in parts])), max(part.epochs for part in parts)
        share = np.bincount(sample.y, weights=sample.p)
        if error == 0.0:
            note = "A function of the kernel has every row on its side."
            return Certificate.exact(0.0, note, kind="witness", iterations=epochs, seconds=seconds)
        note = f"{epochs} epochs found no function that has every row on its side."
        return Certificate.absent(error, note, scale=float(1.0 - share.max()), iterations=epochs, seconds=seconds)


class _Columns:
    """k(x, x_i) + c of all rows with one, from memory or computed when it is asked for."""

    def __init__(self, sample: Sample, fit_intercept: bool) -> None:
        small = sample.given is not None or len(sample.points) <= MOST_ROWS
        self.sample, self.gram = sample, sample.gram() if small else None
        own = np.diagonal(self.gram) if self.gram is not None else sample.points.own(raw_rows(sample))
        self.constant = float(sample.p @ own) if fit_intercept else 0.0
        self.radius = float(own.max(initial=0.0)) + self.constant

    def __call__(self, i: int) -> Array:
        """Of row i."""
        if self.gram is not None:
            return np.asarray(self.gram[:, i] + self.constant)
        one = self.sample.points.take(np.array([i]))
        return one.expansion(raw_rows(self.sample), np.ones(1)) + self.constant
