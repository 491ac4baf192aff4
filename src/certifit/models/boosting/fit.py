"""The boosting loop: gradients of any loss, a histogram tree on them, a step.

    f ← start;   repeat  g = loss′(y, f), h = loss″(y, f);   tree on (g, h);   f ← f + learning_rate · tree

The native grower sees gradients as integers; everything here is NumPy, so that any loss can be boosted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

import certifit._native.boosting as native
from certifit._types import Array, Matrix
from certifit.data.equal_rows import row_codes
from certifit.evaluation.losses import Loss, MulticlassHinge
from certifit.evaluation.losses.base import kernel_form
from certifit.evaluation.losses.terms import TwoSidedHinge
from certifit.evaluation.splits.folds import content_folds
from certifit.models.boosting.leaves import LeafRows, hinge_search, keep_order, overshoots, smooth_search
from certifit.models.boosting.trees import Tree, TreeSum
from certifit.progress import Progress
from certifit.representation.table.binning import Binner

__all__ = ["OF_CLASSES", "OURS", "Boosted", "Booster", "Manner", "Plan", "Watch", "formula", "validation_rows"]

PIECE = 1 << 14
"""Rows whose loss is computed at once."""

GROUP = 8
"""Features whose bins lie side by side: one load brings them all."""

MANY_ROWS = 1 << 16
"""From here on memory counts: bounded scores are kept in single precision, and rows are set aside by their code alone."""

OF_CLASSES = ("logistic", "softmax")
"""Formulas of the grower that read class numbers, in whatever type; scores far out change nothing."""


def formula(loss: Loss) -> str:
    """The formula of the grower that a loss names; any other loss hands it gradients."""
    name, *_ = kernel_form(loss) or ("",)
    return name if name in (*OF_CLASSES, "squared") else ""


@dataclass(frozen=True)
class Plan:
    """The checked parameters of a fit."""

    n_estimators: int
    learning_rate: float
    max_leaves: int
    max_depth: int
    min_samples_leaf: float
    l2: float
    subsample: float
    colsample: float
    max_bins: int
    category_smoothing: float
    monotone: Array
    interactions: Array
    categorical: list[int]
    n_iter_no_change: int
    tol: float
    n_threads: int

    def replace(self, **changes: Any) -> Plan:
        """A plan that differs in some parameters."""
        return replace(self, **changes)


class Watch(Protocol):
    """A rule of its own for when to stop: it looks at every stage, the start included, and all stages are kept."""

    def judge(self, y: Array, scores: Array, weight: Array) -> float | None:
        """What is watched, of the rows set aside (of all, without any): the less, the better. None is the mean loss."""

    def enough(self, history: list[float]) -> bool:
        """Whether to stop, by what was judged at the start and after each stage."""


@dataclass(frozen=True)
class Manner:
    """What no parameter says: how trees are grown and leaves get their values. Whoever grows them as another library does asks
    for its manner.
    """

    bins: Callable[[Matrix, Array, Plan], Binner] | None = None
    """Bins of the rows of a fit; None makes those of `Binner`."""
    count_rows: bool = False
    """Whether a leaf is as large as its rows are many, whatever their weights."""
    min_curvature: float | None = None
    """Least curvature of a leaf; None asks for one where scores are of classes."""
    searched: bool = True
    """Whether a leaf at which Newton's step overshoots is searched."""


OURS = Manner()


@dataclass
class Boosted:
    """What the loop leaves."""

    binner: Binner
    start: Array
    trees: list[Tree]
    objective: float
    constant_objective: float
    stationarity: float
    validation_loss: list[float] = field(default_factory=list)

    def rescaled(self, unit: float, factor: float) -> Boosted:
        """The same model for scores in another unit; losses are multiplied by `factor`."""
        with np.errstate(over="ignore"):
            reach = np.abs(self.start * unit).max() + sum(float(np.abs(tree.value * unit).max()) for tree in self.trees)
        if not np.isfinite(reach):
            raise ValueError(
                "boosting ran away: scores are no numbers. Give a smaller learning_rate, or targets in another unit."
            )
        return Boosted(
            self.binner,
            self.start * unit,
            [replace(tree, value=tree.value * unit) for tree in self.trees],
            self.objective * factor,
            self.constant_objective * factor,
            self.stationarity * factor / unit,
            [value * factor for value in self.validation_loss],
        )


def validation_rows(X: Matrix, y: Array, fraction: float) -> Array | None:
    """Rows set aside, equal rows on the same side; None if there are too few distinct ones."""
    folds = max(2, round(1.0 / fraction))
    n = X.shape[0]
    if n >= MANY_ROWS:
        marks = np.empty(n, dtype=bool)
        for k in range(0, n, PIECE):
            piece = slice(k, k + PIECE)
            marks[piece] = row_codes(X[piece], y[piece]) % np.uint64(folds) == 0
        return marks if marks.any() and not marks.all() else None
    try:
        return np.asarray(content_folds(X, y, folds) == 0)
    except ValueError:
        return None


def _moderate(weight: Array, plan: Plan, count_rows: bool) -> tuple[Array, Plan]:
    """Weights whose squares are finite, and the plan in their unit: gains are squares of sums of weights over such sums."""
    most = float(weight.max())
    if 1e-100 < most < 1e100:
        return weight, plan
    equal = weight.strides == (0,)
    shift = -int(np.frexp(most)[1])
    scaled = np.ldexp(weight[:1] if equal else weight, shift)
    with np.errstate(over="ignore"):  # beyond all weights
        leaf, l2, smoothing = np.ldexp([plan.min_samples_leaf, plan.l2, plan.category_smoothing], shift).tolist()
    leaf = plan.min_samples_leaf if count_rows else leaf
    plan = plan.replace(min_samples_leaf=leaf, l2=min(l2, 1e300), category_smoothing=min(smoothing, 1e300))
    return np.broadcast_to(scaled, weight.shape) if equal else scaled, plan


class Booster:
    """Boosts trees on all rows, or on those not marked in `validation`, which then decides when to stop.

    With `previous`, its trees are the first ones; with `watch`, it is the one who decides.
    """

    def __init__(
        self,
        X: Matrix,
        y: Array,
        weight: Array,
        loss: Loss,
        n_outputs: int,
        plan: Plan,
        validation: Array | None,
        seed: Array,
        previous: Boosted | None,
        watch: Watch | None,
        manner: Manner = OURS,
    ) -> None:
        weight, plan = _moderate(weight, plan, manner.count_rows)
        self.watch, self.manner = watch, manner
        self.y, self.weight, self.loss, self.plan, self.seed = y, weight, loss, plan, seed
        self.n, self.d = X.shape
        self.n_outputs = n_outputs
        self.validation = None if validation is None else np.flatnonzero(validation).astype(np.uint32)
        self.train = None if validation is None else np.flatnonzero(~validation).astype(np.uint32)
        self.start = self._best_constant() if previous is None else previous.start
        self.binner = self._binned(X) if previous is None else previous.binner
        self.rules = self.binner.tables()
        self.active = np.ones(self.d, dtype=np.uint8)
        self.form = formula(loss)
        self.bounded = self.form in OF_CLASSES
        equal = weight.strides == (0,)
        self.grower = native.Grower(
            self._table(X), weight[:1].copy() if equal else np.ascontiguousarray(weight), plan.n_threads
        )
        of_classes = loss.task != "regression"
        least = 1e-3 if of_classes else 0.0
        self.grower.set_options(
            l2=plan.l2,
            min_samples_leaf=plan.min_samples_leaf,
            min_curvature=least if manner.min_curvature is None else manner.min_curvature,
            min_gain=0.0,
            max_leaves=plan.max_leaves,
            max_depth=plan.max_depth,
            category_smoothing=plan.category_smoothing,
            category_l2=0.0,
            category_support=0.0,
            count_rows=manner.count_rows,
        )
        self.grower.set_constraints(plan.monotone, plan.interactions)
        # Scores of the logistic and the softmax loss are of the order of one: single precision is far finer than
        # what the rounding of gradients leaves of them.
        dtype = np.float32 if self.bounded and self.n >= MANY_ROWS else np.float64
        self.scores = np.empty((self.n, n_outputs), dtype=dtype, order="F")
        self.scores[:] = self.start
        self.trees: list[Tree] = [] if previous is None else list(previous.trees)
        self.history: list[float] = [] if previous is None else list(previous.validation_loss)
        if self.trees:
            known = TreeSum(self.trees, self.binner, self.start)
            for piece in self._pieces(self.n):
                self.scores[piece] = known.scores(X[piece], plan.n_threads)
        self.last: list[tuple[Array | None, Array]] = []  # rows (None: the grower's) and leaf starts of the last trees

    def _best_constant(self) -> Array:
        in_fit = slice(None) if self.train is None else self.train
        y, weight = self._target(in_fit), self.weight[in_fit]
        start = np.atleast_1d(self.loss.optimal_constant(y, weight))
        # A rate of zero has the score −inf; −1000 predicts the same zero, and can be computed with.
        return np.where(np.isfinite(start), start, np.clip(start, -1e3, 1e3))

    def _binned(self, X: Matrix) -> Binner:
        """The bins of a first fit."""
        if self.manner.bins is None:
            return Binner(self.plan.max_bins, self.plan.categorical).fit(X, self.weight, n_threads=self.plan.n_threads)
        in_fit = slice(None) if self.train is None else self.train
        return self.manner.bins(X[in_fit], self.weight[in_fit], self.plan)

    def _table(self, X: Matrix) -> Any:
        """Bins of all rows, in groups of columns whose bytes lie side by side."""
        n, d = self.n, self.d
        groups = -(-d // GROUP)
        size = -(-d // groups)
        j = np.arange(d, dtype=np.int64)
        column = (j // size) * size * n + j % size
        data = np.zeros(groups * size * n + GROUP, dtype=np.uint8)
        self.binner.transform_into(X, data, size, column, n_threads=self.plan.n_threads)
        return native.Table(
            data, n, size, column, self.binner.n_bins_, self.binner.is_categorical_.astype(np.uint8), size
        )

    def run(self, clock: Progress) -> Boosted:
        """The loop over the stages."""
        plan, history = self.plan, self.history
        constant_objective = self._mean_loss(constant=True)
        done = len(self.trees) // self.n_outputs
        best, best_stage, kept = np.inf, done, self.scores[:0]
        if self.watch is not None:
            history[:] = history or [self._watched()]
        elif history and self.validation is not None:
            best, kept = min(history), self.scores.copy(order="F")
            del history[done:]
        stages = done if self._constant_target() else plan.n_estimators
        for stage in range(done, stages):
            if not self._stage(stage):
                break
            clock.update(stage + 1, plan.n_estimators, float("nan"))
            if self.watch is not None:
                best_stage = stage + 1
                history.append(self._watched())
                if self.watch.enough(history):
                    break
                continue
            if self.validation is None:
                continue
            history.append(self._mean_loss(self.validation))
            if history[-1] < best - plan.tol * abs(best if np.isfinite(best) else 0.0):
                best, best_stage = history[-1], stage + 1
                kept = np.array(self.scores, order="F") if kept.size == 0 else kept
                np.copyto(kept, self.scores)
            elif stage + 1 - best_stage >= plan.n_iter_no_change:
                break
        if kept.size:
            self.scores = kept
        if self.validation is not None:
            del self.trees[best_stage * self.n_outputs :]
        if not (self.bounded or np.isfinite(self.scores).all()):  # no stage came after the last one that would notice
            raise self._ran_away(len(self.trees) // self.n_outputs - 1, "a score is no number")
        return Boosted(
            self.binner,
            self.start,
            self.trees,
            self._mean_loss(),
            constant_objective,
            self._stationarity(),
            history,
        )

    def _watched(self) -> float:
        """What the watch sees now."""
        assert self.watch is not None
        where = slice(None) if self.validation is None else self.validation
        seen = self.watch.judge(self.y[where], self.scores[where], self.weight[where])
        return self._mean_loss(self.validation) if seen is None else seen

    def _constant_target(self) -> bool:
        """One target value: the best constant is the best model."""
        return bool((self.y == self.y[0]).all())

    def _pieces(self, count: int) -> Iterator[slice]:
        """Some rows at a time: a loss makes several temporary arrays, which together would outweigh the table."""
        return (slice(k, k + PIECE) for k in range(0, count, PIECE))

    def _target(self, where: Any) -> Array:
        """Targets of some rows as the loss takes them."""
        return self.y[where].astype(np.intp if self.loss.coupled else np.float64, copy=False)

    def _raw(self, where: Any) -> Array:
        """Scores of some rows in the shape the loss expects."""
        scores = self.scores[where] if self.loss.coupled else self.scores[where, 0]
        return scores.astype(np.float64, copy=False)

    def _mean_loss(self, rows: Array | None = None, constant: bool = False) -> float:
        """Weighted mean loss of some rows (all of them), at the scores or at the constant start."""
        total = mass = 0.0
        for piece in self._pieces(self.n if rows is None else rows.shape[0]):
            where = piece if rows is None else rows[piece]
            weight, raw = self.weight[where], self._raw(where)
            if constant:
                raw = np.zeros_like(raw) + (self.start if self.loss.coupled else self.start[0])
            total += float(weight @ self.loss.value(self._target(where), raw))
            mass += float(weight.sum())
        return total / mass

    def _stage(self, stage: int) -> bool:
        """One tree for each output; False when no tree could split anything."""
        # Draws depend on the seed and the stage alone, so that stages added later are those of one long fit.
        rows, others, active = self.train, self.validation, self.active
        if self.plan.subsample < 1.0 or self.plan.colsample < 1.0:
            rng = np.random.default_rng([*self.seed.tolist(), stage])
            rows, others = self._draw_rows(rng)
            active = self._draw_features(rng)
        total = self._log_sum_exp() if self.form == "softmax" else None
        divided = False
        for k in range(self.n_outputs):
            f = self.scores[:, k]
            try:
                newton = self._set_gradients(f, k, total)
            except ValueError as error:
                raise self._ran_away(stage, str(error)) from error
            self.grower.grow(rows, active)
            grown = self.grower.tree()
            divided |= grown["feature"].shape[0] > 1
            self._refine(f, k, grown, newton)
            self.grower.add_to(f, self.plan.learning_rate)
            tree = Tree.of(grown, self.binner, self.rules, self.plan.learning_rate)
            if others is not None:
                f[others] += tree.value[self.grower.route(others)]
            self.trees.append(tree)
            self._remember(k, grown)
        if not divided and active.all() and rows is self.train:
            del self.trees[-self.n_outputs :]
        return divided or not (active.all() and rows is self.train)

    def _ran_away(self, stage: int, why: str) -> ValueError:
        return ValueError(
            f"boosting ran away in stage {stage + 1}: {why}. Give a smaller learning_rate than "
            f"{self.plan.learning_rate:g}, or targets in another unit."
        )

    def _remember(self, k: int, grown: dict[str, Array]) -> None:
        """Rows and leaves of the latest tree of an output; the grower itself remembers the very last ones."""
        begin = np.sort(grown["begin"][grown["feature"] < 0])
        self.last[k:] = [(self.grower.rows() if k + 1 < self.n_outputs else None, begin)]

    def _draw_rows(self, rng: np.random.Generator) -> tuple[Array | None, Array | None]:
        """Rows to grow on (None: all) and the other rows, whose scores must be routed."""
        rows = self.train
        if self.plan.subsample < 1.0:
            pool = np.arange(self.n, dtype=np.uint32) if rows is None else rows
            drawn = rng.random(pool.shape[0], dtype=np.float32) < self.plan.subsample
            if not drawn.any():
                drawn[rng.integers(pool.shape[0])] = True
            rows = pool[drawn]
        if rows is None:
            return None, None
        if rows is self.train:
            return rows, self.validation
        rest = np.ones(self.n, dtype=bool)
        rest[rows] = False
        return rows, np.flatnonzero(rest).astype(np.uint32)

    def _draw_features(self, rng: np.random.Generator) -> Array:
        active = np.ones(self.d, dtype=np.uint8)
        if self.plan.colsample < 1.0:
            keep = max(1, round(self.plan.colsample * self.d))
            active[:] = 0
            active[rng.choice(self.d, keep, replace=False)] = 1
        return active

    def _log_sum_exp(self) -> Array:
        """ln Σ_k exp(score_k) of every row: what the gradients of all classes of a stage share."""
        total = np.empty(self.n, dtype=self.scores.dtype)
        self.grower.log_sum_exp(self.scores, total)
        return total

    def _set_gradients(self, f: Array, k: int, total: Array | None) -> str:
        """Hand gradients to the grower; returns how the leaves get their values."""
        if total is not None:
            self.grower.set_softmax(f, self.y, total, k)
            return "native"
        if self.form == "logistic":
            self.grower.set_logistic(f, self.y)
            return "native"
        if self.form == "squared":
            self.grower.set_squared(f, self.y)
            return "native"
        if self.loss.coupled:
            slopes = self.loss.derivative(self._target(slice(None)), self._raw(slice(None)))
            self.grower.set_gradients(np.ascontiguousarray(slopes[:, k]), None)
            return "search"
        g = np.ascontiguousarray(self.loss.derivative(self.y, f), dtype=np.float64)
        if not self.loss.smooth:
            self.grower.set_gradients(g, None)
            return "search"
        h = np.ascontiguousarray(self.loss.second_derivative(self.y, f), dtype=np.float64)
        # No curvature where there is a slope: a quadratic model has no minimum there.
        if ((h <= 0) & (g != 0)).any():
            self.grower.set_gradients(g, None)
            return "search"
        self.grower.set_gradients(g, h)
        return "newton"

    def _refine(self, f: Array, k: int, grown: dict[str, Array], how: str) -> None:
        """Replace Newton's values by those of a line search where the loss asks for it."""
        if how == "native":
            return
        loss, y, weight, l2 = self.loss, self.y, self.weight, self.plan.l2
        assert isinstance(loss, Loss)
        terms = self._hinges(k) if how == "search" else None
        if terms is not None:
            values = hinge_search(terms, f, weight, self.grower, grown, l2)
        else:
            if how == "newton" and not self.manner.searched:
                return
            leaf_rows = LeafRows(self.grower, grown)
            if how == "newton":
                newton, slope = grown["value"][leaf_rows.nodes], grown["gradient"][leaf_rows.nodes]
                if not overshoots(loss, y, f, weight, leaf_rows, newton, slope, l2):
                    return
            values = np.zeros(grown["feature"].shape[0])
            values[leaf_rows.nodes] = smooth_search(loss, y, f, weight, leaf_rows, l2)
        if self.plan.monotone.any():
            values = keep_order(grown, values, self.plan.monotone)
        grown["value"] = values
        self.grower.set_values(values)

    def _hinges(self, k: int) -> TwoSidedHinge | None:
        """A piecewise linear loss as hinges in the k-th score; None for others."""
        if isinstance(self.loss, MulticlassHinge):
            return self.loss.hinge_along(self._target(slice(None)), self._raw(slice(None)), k)
        return self.loss.hinge_terms(self.y)

    def _stationarity(self) -> float:
        """Norm of the gradient of the objective along the leaves of the last trees that were grown."""
        if len(self.last) < self.n_outputs:  # no tree: the slope along a constant
            self.last = [(np.arange(self.n), np.zeros(1, dtype=np.int64))] * self.n_outputs
        squares = 0.0
        for k, (rows, begin) in enumerate(self.last):
            count = self.grower.n_rows if rows is None else rows.shape[0]
            sums = np.zeros(begin.shape[0])
            for piece in self._pieces(count):
                stop = min(piece.stop, count)
                where = self.grower.rows_between(piece.start, stop) if rows is None else rows[piece]
                g = self.loss.derivative(self._target(where), self._raw(where))
                leaf = np.searchsorted(begin, np.arange(piece.start, stop), side="right") - 1
                slope = self.weight[where] * (g[:, k] if self.loss.coupled else g)
                sums += np.bincount(leaf, weights=slope, minlength=begin.shape[0])
            squares += float(sums @ sums)
        return float(np.sqrt(squares) / self.weight.sum())
