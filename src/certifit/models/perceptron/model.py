"""The perceptron family: learn from mistakes only.

    row by row:   if s·(x·w + c·b) ≤ 0:   w ← w + η·s·x,  b ← b + η·s·c         (s = ±1, the side of the row)
    batch:        w ← w + η·Σ over wrong rows of weight·s·x,  b likewise       (gradient of the perceptron loss)

with c the size of the rows, c·b the intercept and η the step.

On separable rows the first makes at most R²/γ² mistakes from a start at zero, where the step only scales w.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import certifit._native.stochastic as native
from certifit._types import Array, is_sparse
from certifit.models.margin.hard import NotSeparableError, hard_margin
from certifit.models.perceptron.base import (
    OFFSET,
    START,
    STEP,
    STOP,
    BasePerceptron,
    ScaledRows,
    Separator,
    describe,
    largest_norm,
    margin_and_bound,
    scores_of,
)
from certifit.optimization.stochastic.descent import Visits
from certifit.parameters import (
    CLASS_WEIGHT,
    MAX_EPOCHS,
    N_JOBS,
    RANDOM_STATE,
    SHUFFLE,
    VERBOSE,
    Declared,
    Flag,
    OneOf,
    Parameter,
    parameters_of,
)
from certifit.parameters.methods import VISITS
from certifit.progress import Progress, progress
from certifit.representation.design.products import rmatvec

__all__ = ["MulticlassPerceptron", "Perceptron", "PocketPerceptron"]


class Visiting(Declared, kw_only=True):
    """How rows are visited, and when that ends."""

    fit_intercept: bool = OFFSET
    max_iter: int = MAX_EPOCHS
    tol: float = STOP
    shuffle: bool = SHUFFLE
    class_weight: Any = CLASS_WEIGHT.but(text="Factor of the weight of each class; weights are visits.")
    n_jobs: int | None = N_JOBS.but(text="Threads over classes. The model does not depend on it.")
    random_state: Any = RANDOM_STATE.but(text="Draws the order of the rows.")
    verbose: int = VERBOSE


class Stepped(Visiting, kw_only=True):
    """Where the planes begin, and how far they move after a mistake."""

    start: Any = START
    step: float = STEP


class Perceptron(Stepped, BasePerceptron, takes={"fit.sample_weight": VISITS}):
    """Rosenblatt's perceptron, row by row or in batches; more than two classes are learned each against the rest.

    Attributes
    ----------
    classes_, coef_, intercept_
        As in other linear classifiers.
    n_mistakes_ : float or array of shape (K,)
        Mistakes made (in batch mode their total weight).
    mistake_bound_ : float or array of shape (K,)
        The most mistakes that the margin γ of the plane found allows from this start: R²/γ² from zero (times the total weight in
        batch mode). Never below `n_mistakes_` where rows were separated, infinite where they were not.
    margin_ : float or array of shape (K,)
        Distance of the nearest row from the separating plane; 0 where there is none.
    history_ : array of shape (n_iter_,), or a list of them
        Weighted share of the rows on the wrong side after each epoch.
    n_iter_ : int
        Epochs.
    certificate_ : Certificate
        A witness: the separating plane. Without one, whether a proof exists that there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import Perceptron
    >>> X = np.array([[2.0, 1.0], [1.0, 2.0], [-1.0, -2.0], [-2.0, 0.0]])
    >>> model = Perceptron(random_state=0).fit(X, ["up", "up", "down", "down"])
    >>> model.certificate_.kind, bool(model.n_mistakes_ <= model.mistake_bound_)
    ('witness', True)
    >>> model.predict([[3.0, 3.0]])
    array(['up'], dtype='<U4')
    """

    mode: str = OneOf(("stochastic", "batch"), "Correct after every mistake, or after a pass over all rows.")
    averaged: bool = Parameter(
        False,
        Flag(),
        "Whether the model is the average of w over all visits, which also serves rows that no plane separates.",
    )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Perceptron:
        """Fit the model."""
        rows, codes = self._rows(X, y, sample_weight)
        with progress(self.verbose, type(self).__name__) as clock:
            run = self._by_row if self.mode == "stochastic" else self._by_batch
            parts = self._each_class(rows, codes, partial(run, clock=clock))
        self._keep_separators(rows, parts, float(self.step))
        single = len(parts) == 1
        self.n_mistakes_: Any = parts[0].mistakes if single else np.array([part.mistakes for part in parts])
        self.mistake_bound_: Any = parts[0].bound if single else np.array([part.bound for part in parts])
        self.margin_: Any = parts[0].margin / rows.unit if single else np.array([p.margin / rows.unit for p in parts])
        history = [np.array(part.history) for part in parts]
        self.history_: Any = history[0] if single else history
        self._certify(self._certificate(parts, clock.seconds))
        return self

    @staticmethod
    def tightest_mistake_bound(X: Any, y: Any, fit_intercept: bool = True) -> float:
        """R²/γ² with the widest margin that two classes allow: the fewest mistakes that the theorem can promise for these rows.

        Started at zero, `mistake_bound_` is the same with the plane that was found, so never smaller.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array of shape (n_samples,)
            Labels of two classes.
        fit_intercept : bool, default=True
            Whether there is an offset.

        Returns
        -------
        float
            Infinite where no plane separates the classes.
        """
        reader = Perceptron(fit_intercept=fit_intercept, shuffle=False)
        rows, codes = reader._rows(X, y, None)
        if reader.classes_.shape[0] != 2:
            raise ValueError(f"The bound is for two classes; y has {reader.classes_.shape[0]}.")
        signs = np.where(codes == 1, 1.0, -1.0)
        parts: list[Any] = [rows.X, np.full((codes.shape[0], 1), rows.offset)]
        lifted = sp.hstack(parts, format="csr") if is_sparse(rows.X) else np.hstack(parts)
        lifted = lifted if fit_intercept else rows.X
        try:
            widest = hard_margin(lifted, signs, fit_intercept=False, tol=1e-9, max_iter=200)
        except NotSeparableError:
            return np.inf
        return float(largest_norm(lifted) ** 2 * (widest.coef @ widest.coef))

    def _by_row(
        self, rows: ScaledRows, sign: Array, begin: tuple[Array, float], rng: np.random.Generator, clock: Progress
    ) -> Separator:
        n, d = rows.X.shape
        w, late, scalars = begin[0].copy(), np.zeros(d if self.averaged else 0), np.array([begin[1], 0.0, 0.0])
        visits = Visits(rows.weight, self.shuffle, rng)
        mistakes, epochs, constant = 0, 0, _constant_error(sign, rows.p)
        errors: list[float] = []
        while epochs < self.max_iter:
            made = native.perceptron(rows.native, sign, visits.next(), rows.offset, w, late, scalars)
            mistakes += made
            epochs += 1
            clock.update(epochs, self.max_iter, made / n)
            # A pass without a mistake may have missed rows whose weight is a fraction: all are looked at.
            errors.append(_error(rows, sign, w, scalars[0]))
            if (made == 0 or self.tol > 0) and errors[-1] <= self.tol * constant:
                break
        found = self._finished(rows, sign, begin, w, late, scalars, mistakes, epochs, constant)
        return replace(found, history=tuple(errors))

    def _finished(
        self,
        rows: ScaledRows,
        sign: Array,
        begin: tuple[Array, float],
        w: Array,
        late: Array,
        scalars: Array,
        mistakes: float,
        epochs: int,
        constant: float,
        factor: float = 1.0,
    ) -> Separator:
        b = float(scalars[0])
        margin, bound = margin_and_bound(rows, sign, w, b, begin)
        if self.averaged:
            # Σ over visits of w = steps·w − Σ (visit of the change)·change, see the kernel.
            steps = max(float(scalars[2]), 1.0)
            w, b = w - late / steps, b - float(scalars[1]) / steps
            other, second = margin_and_bound(rows, sign, w, b, begin)
            margin, bound = other, min(bound, second)
        error = _error(rows, sign, w, b)
        note = describe(rows, sign, error, margin, epochs)
        return Separator(w, rows.offset * b, error, constant, epochs, float(mistakes), factor * bound, margin, note)

    def _by_batch(
        self, rows: ScaledRows, sign: Array, begin: tuple[Array, float], rng: np.random.Generator, clock: Progress
    ) -> Separator:
        d = rows.X.shape[1]
        w, late, scalars = begin[0].copy(), np.zeros(d if self.averaged else 0), np.array([begin[1], 0.0, 0.0])
        weight = rows.p  # their sum is one: neither their unit nor repetition of rows changes w
        mistakes, epochs, constant = 0.0, 0, _constant_error(sign, rows.p)
        errors: list[float] = []
        while epochs < self.max_iter:
            wrong = ~(sign * scores_of(rows, w, float(scalars[0])) > 0)
            if epochs:
                errors.append(float(rows.p @ wrong))
            if float(rows.p @ wrong) <= self.tol * constant:
                break
            push = np.where(wrong, weight * sign, 0.0)
            change = rmatvec(rows.X, push, exact=True)
            w += change
            scalars[0] += rows.offset * float(push.sum())
            if self.averaged:
                late += scalars[2] * change
                scalars[1] += scalars[2] * rows.offset * float(push.sum())
            scalars[2] += 1.0
            mistakes += float(weight @ wrong)
            epochs += 1
            clock.update(epochs, self.max_iter, float(rows.p @ wrong))
        # (γ·Σm)² ≤ ‖w‖² ≤ R²·Σm² ≤ R²·(total weight)·Σm: the bound for batches of weight m.
        total = float(rows.weight.sum())
        if len(errors) < epochs:
            errors.append(_error(rows, sign, w, float(scalars[0])))
        found = self._finished(rows, sign, begin, w, late, scalars, mistakes * total, epochs, constant, total)
        return replace(found, history=tuple(errors))


class PocketPerceptron(Stepped, BasePerceptron):
    """The pocket algorithm with ratchet: a perceptron that keeps the best plane it has met.

    Attributes
    ----------
    classes_, coef_, intercept_
        As in other linear classifiers.
    error_ : float or array of shape (K,)
        Weighted share of training rows on the wrong side.
    n_changes_ : int or array of shape (K,)
        How often the pocket's plane was replaced by a better one.
    history_ : array of shape (n_iter_,), or a list of them
        The error of the pocket's plane after each epoch.
    n_iter_ : int
        Epochs.
    certificate_ : Certificate
        A witness if the rows were separated; the least error of a plane is otherwise hard to bound.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import PocketPerceptron
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1, 0])
    >>> round(PocketPerceptron(random_state=0).fit(X, y).error_, 3)
    0.2
    """

    max_iter: int = MAX_EPOCHS.but(100)
    __order__ = ("start", *(name for name in parameters_of(Stepped) if name != "start"))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PocketPerceptron:
        """Fit the model.

        Parameters
        ----------
        sample_weight : array of shape (n_samples,), optional
            Visits of each row, and its share in the error.
        """
        rows, codes = self._rows(X, y, sample_weight)
        with progress(self.verbose, type(self).__name__) as clock:
            parts = self._each_class(rows, codes, partial(self._one, clock=clock))
        self._keep_separators(rows, parts, float(self.step))
        single = len(parts) == 1
        self.error_: Any = parts[0].error if single else np.array([part.error for part in parts])
        history = [np.array(part.history) for part in parts]
        self.history_: Any = history[0] if single else history
        changes = [int(part.mistakes) for part in parts]
        self.n_changes_: Any = changes[0] if single else np.array(changes)
        self._certify(self._certificate(parts, clock.seconds))
        return self

    def _one(
        self, rows: ScaledRows, sign: Array, begin: tuple[Array, float], rng: np.random.Generator, clock: Progress
    ) -> Separator:
        d = rows.X.shape[1]
        w, b = begin[0].copy(), begin[1]
        p, constant = rows.p, _constant_error(sign, rows.p)
        # The pocket starts with the better of the start and a constant decision.
        best, kept_b, error = w.copy(), b, _error(rows, sign, w, b)
        if self.fit_intercept and constant < error:
            best, kept_b, error = np.zeros(d), (1.0 if float(p @ sign) >= 0 else -1.0), constant
        scalars = np.array([b, 0.0, kept_b, error, 0.0, 0.0])
        visits, epochs = Visits(rows.weight, self.shuffle, rng), 0
        errors: list[float] = []
        while epochs < self.max_iter and scalars[3] > self.tol * constant:
            native.pocket(rows.native, sign, p, visits.next(), rows.offset, w, best, scalars)
            epochs += 1
            errors.append(float(scalars[3]))
            clock.update(epochs, self.max_iter, errors[-1])
        error = _error(rows, sign, best, float(scalars[2]))
        margin, _ = margin_and_bound(rows, sign, best, float(scalars[2]), begin)
        note = describe(rows, sign, error, margin, epochs)
        b = rows.offset * float(scalars[2])
        return Separator(best, b, error, constant, epochs, scalars[5], note=note, history=tuple(errors))


class MulticlassPerceptron(Visiting, BasePerceptron):
    """One prototype for each class: a wrong row is added to its own and taken from the one that won.

    On rows that K prototypes separate with margin γ (the least x̃·(w_y − w_r) for W of norm one), at most 2R²/γ² mistakes are
    made.

    Attributes
    ----------
    classes_, coef_, intercept_
        As in other linear classifiers; for two classes the difference of the prototypes.
    n_mistakes_ : int
        Mistakes made.
    mistake_bound_ : float
        2R²/γ² with the margin of the prototypes found; infinite if they do not separate.
    history_ : array of shape (n_iter_,)
        Weighted share of the rows whose own prototype does not win, after each epoch.
    n_iter_ : int
        Epochs.
    certificate_ : Certificate
        A witness if the classes were separated.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MulticlassPerceptron
    >>> X = np.array([[2.0, 0.0], [3.0, 1.0], [-2.0, 1.0], [-3.0, 0.0], [0.0, -3.0], [1.0, -4.0]])
    >>> model = MulticlassPerceptron(random_state=0).fit(X, ["a", "a", "b", "b", "c", "c"])
    >>> model.score(X, ["a", "a", "b", "b", "c", "c"]), model.certificate_.kind
    (1.0, 'witness')
    """

    averaged: bool = Parameter(False, Flag(), "Whether the model is the average of the prototypes over all visits.")
    n_jobs: int | None = N_JOBS.but(text="Not used: the prototypes are learned together.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MulticlassPerceptron:
        """Fit the model.

        Parameters
        ----------
        sample_weight : array of shape (n_samples,), optional
            Visits of each row.
        """
        rows, codes = self._rows(X, y, sample_weight)
        n, d = rows.X.shape
        K, labels = self.classes_.shape[0], codes.astype(np.int64)
        W, B, steps = np.zeros((K, d)), np.zeros(K), np.zeros(1)
        late = np.zeros((K, d) if self.averaged else (0, d))
        b_late = np.zeros(K if self.averaged else 0)
        visits = Visits(rows.weight, self.shuffle, self._generator())
        constant = 1.0 - float(np.bincount(codes, weights=rows.p).max())
        self.n_mistakes_, epochs = 0, 0
        errors: list[float] = []
        with progress(self.verbose, type(self).__name__) as clock:
            while epochs < self.max_iter:
                made = native.multiclass(rows.native, labels, visits.next(), rows.offset, W, B, late, b_late, steps)
                self.n_mistakes_ += made
                epochs += 1
                clock.update(epochs, self.max_iter, made / n)
                errors.append(self._wrong(rows, labels, W, B)[0])
                if (made == 0 or self.tol > 0) and errors[-1] <= self.tol * constant:
                    break
            gamma = self._wrong(rows, labels, W, B)[1]
            if self.averaged:
                W, B = W - late / max(steps[0], 1.0), B - b_late / max(steps[0], 1.0)
            error, mean_gamma = self._wrong(rows, labels, W, B)
            gamma = max(gamma, mean_gamma)
            with np.errstate(divide="ignore", over="ignore"):
                ratio = np.hypot(largest_norm(rows.X), rows.offset) / np.float64(gamma)
            self.mistake_bound_ = float(2.0 * ratio * ratio) if gamma > 0 else np.inf
            found = "A separating set of prototypes was found." if error == 0 else ""
            missed = "" if error == 0 else f"No separating set of prototypes was found in {epochs} epochs."
            if K == 2:
                W, B = W[1:] - W[:1], B[1:] - B[:1]
            parts = [
                Separator(W[k], rows.offset * float(B[k]), error, constant, epochs, note=found + missed)
                for k in range(W.shape[0])
            ]
        self._keep_separators(rows, parts)
        self.history_ = np.array(errors)
        self._certify(self._certificate(parts, clock.seconds))
        return self

    def _wrong(self, rows: ScaledRows, labels: Array, W: Array, B: Array) -> tuple[float, float]:
        """Weighted share of rows whose own prototype does not win, and the margin of prototypes of norm one."""
        scores = np.asarray(rows.X @ W.T, dtype=np.float64) + rows.offset * B
        each = np.arange(labels.shape[0])
        own = scores[each, labels]
        scores[each, labels] = -np.inf
        lead = own - scores.max(axis=1)
        size = float(np.sqrt((W * W).sum() + ((B * B).sum() if self.fit_intercept else 0.0)))
        return float(rows.p @ ~(lead > 0)), max(float(lead.min()), 0.0) / size if size > 0 else 0.0


def _error(rows: ScaledRows, sign: Array, w: Array, b: float) -> float:
    """Weighted share of rows on the wrong side or on the plane."""
    wrong = ~(sign * scores_of(rows, w, b) > 0)
    return float(rows.p @ wrong)


def _constant_error(sign: Array, p: Array) -> float:
    """The error of the better constant decision."""
    positive = float(p @ (sign > 0))
    return min(positive, 1.0 - positive)
