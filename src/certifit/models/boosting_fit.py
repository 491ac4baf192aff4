"""The boosting loop: gradients of any loss, a histogram tree on them, a step.

    f ← start;   repeat  g = loss′(y, f), h = loss″(y, f);   tree on (g, h);   f ← f + learning_rate · tree

The native grower sees gradients as integers; everything here is NumPy, so that any loss can be boosted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import certifit._native.boosting as native
from certifit._types import Array
from certifit.base import Progress
from certifit.evaluation.losses import Loss, Squared
from certifit.evaluation.losses.margin import Logistic
from certifit.evaluation.losses.softmax import Softmax
from certifit.evaluation.resampling import content_folds
from certifit.models.boosting_leaves import LeafRows, hinge_search, keep_order, overshoots, smooth_search
from certifit.models.boosting_trees import Tree
from certifit.representation.binning import Binner

__all__ = ["Boosted", "Plan", "boost", "validation_rows"]

PIECE = 1 << 16
"""Rows whose loss is computed at once."""

GROUP = 8
"""Features whose bins lie side by side: one load brings them all."""


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
        return Boosted(
            self.binner,
            self.start * unit,
            [replace(tree, value=tree.value * unit) for tree in self.trees],
            self.objective * factor,
            self.constant_objective * factor,
            self.stationarity * factor / unit,
            [value * factor for value in self.validation_loss],
        )


def boost(
    X: Array,
    y: Array,
    weight: Array,
    loss: Loss | Softmax,
    n_outputs: int,
    plan: Plan,
    validation: Array | None,
    rng: np.random.Generator,
    clock: Progress,
) -> Boosted:
    """Boost trees on all rows, or on those not marked in `validation`, which then decides when to stop."""
    booster = _Booster(X, y, weight, loss, n_outputs, plan, validation, rng)
    return booster.run(clock)


def validation_rows(X: Array, y: Array, fraction: float) -> Array | None:
    """Rows set aside, equal rows on the same side; None if there are too few distinct ones."""
    folds = max(2, round(1.0 / fraction))
    try:
        return np.asarray(content_folds(X, y, folds) == 0)
    except ValueError:
        return None


class _Booster:
    def __init__(
        self,
        X: Array,
        y: Array,
        weight: Array,
        loss: Loss | Softmax,
        n_outputs: int,
        plan: Plan,
        validation: Array | None,
        rng: np.random.Generator,
    ) -> None:
        self.y, self.weight, self.loss, self.plan, self.rng = y, weight, loss, plan, rng
        self.n, self.d = X.shape
        self.n_outputs = n_outputs
        self.binner = Binner(plan.max_bins, plan.categorical).fit(X, weight, n_threads=plan.n_threads)
        self.grower = native.Grower(self._table(X), np.ascontiguousarray(weight), plan.n_threads)
        binary = isinstance(loss, Softmax) or loss.task == "binary"
        self.grower.set_options(
            l2=plan.l2,
            min_samples_leaf=plan.min_samples_leaf,
            min_curvature=1e-3 if binary else 0.0,
            min_gain=0.0,
            max_leaves=plan.max_leaves,
            max_depth=plan.max_depth,
            category_smoothing=plan.category_smoothing,
            category_l2=0.0,
            category_support=0.0,
        )
        self.grower.set_constraints(plan.monotone, plan.interactions)
        self.validation = None if validation is None else np.flatnonzero(validation)
        self.train = None if validation is None else np.flatnonzero(~validation).astype(np.uint32)
        in_fit = slice(None) if self.train is None else self.train
        if isinstance(loss, Softmax):
            start = loss.optimal_constant(y[in_fit], weight[in_fit], n_outputs)
        else:
            start = np.array([loss.optimal_constant(y[in_fit], weight[in_fit])])
        # A rate of zero has the score −inf; −1000 predicts the same zero, and can be computed with.
        self.start = np.where(np.isfinite(start), start, np.clip(start, -1e3, 1e3))
        self.scores = np.empty((self.n, n_outputs), order="F")
        self.scores[:] = self.start
        self.trees: list[Tree] = []
        self.last: list[tuple[Array, Array]] = []  # rows and leaf starts of the last trees
        self._grown: dict[str, Array] | None = None

    def _table(self, X: Array) -> Any:
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
        plan = self.plan
        constant_objective = self._mean_loss()
        history: list[float] = []
        best, best_stage, kept = np.inf, 0, None
        stages = 0 if self._constant_target() else plan.n_estimators
        for stage in range(stages):
            grown = self._stage()
            if not grown:
                break
            clock.update(stage + 1, plan.n_estimators, float("nan"))
            if self.validation is None:
                continue
            history.append(self._mean_loss(self.validation))
            if history[-1] < best - plan.tol * abs(best if np.isfinite(best) else 0.0):
                best, best_stage, kept = history[-1], stage + 1, self.scores.copy(order="F")
            elif stage + 1 - best_stage >= plan.n_iter_no_change:
                break
        if kept is not None:
            self.scores = kept
            del self.trees[best_stage * self.n_outputs :]
        return Boosted(
            self.binner,
            self.start,
            self.trees,
            self._mean_loss(),
            constant_objective,
            self._stationarity(),
            history,
        )

    def _constant_target(self) -> bool:
        """One target value: the best constant is the best model."""
        return bool((self.y == self.y[0]).all())

    def _pieces(self, count: int) -> Iterator[slice]:
        """Some rows at a time: a loss makes several temporary arrays, which together would outweigh the table."""
        return (slice(k, k + PIECE) for k in range(0, count, PIECE))

    def _raw(self, where: Any) -> Array:
        """Scores of some rows in the shape the loss expects."""
        return self.scores[where] if isinstance(self.loss, Softmax) else self.scores[where, 0]

    def _mean_loss(self, rows: Array | None = None) -> float:
        total = mass = 0.0
        for piece in self._pieces(self.n if rows is None else rows.shape[0]):
            where = piece if rows is None else rows[piece]
            weight = self.weight[where]
            total += float(weight @ self.loss.value(self.y[where], self._raw(where)))
            mass += float(weight.sum())
        return total / mass

    def _stage(self) -> bool:
        """One tree for each output; False when no tree could split anything."""
        rows, others = self._draw_rows()
        active = self._draw_features()
        gradients = self._softmax_gradients() if isinstance(self.loss, Softmax) else None
        divided = False
        for k in range(self.n_outputs):
            f = self.scores[:, k]
            newton = self._set_gradients(f, k, gradients)
            self.grower.grow(rows, active)
            grown = self.grower.tree()
            divided |= grown["feature"].shape[0] > 1
            self._refine(f, grown, newton)
            self.grower.add_to(f, self.plan.learning_rate)
            tree = Tree.of(grown, self.binner, self.plan.learning_rate)
            if others is not None:
                f[others] += tree.value[self.grower.route(others)]
            self.trees.append(tree)
            self._remember(k, grown)
        if not divided and active.all() and rows is self.train:
            del self.trees[-self.n_outputs :]
        return divided or not (active.all() and rows is self.train)

    def _remember(self, k: int, grown: dict[str, Array]) -> None:
        """Rows and leaves of the latest tree of an output; with one output the grower itself remembers."""
        if self.n_outputs == 1:
            self._grown = grown
            return
        begin = np.sort(grown["begin"][grown["feature"] < 0])
        del self.last[k:]
        self.last.append((self.grower.rows(), begin))

    def _draw_rows(self) -> tuple[Array | None, Array | None]:
        """Rows to grow on (None: all) and the other rows, whose scores must be routed."""
        rows = self.train
        if self.plan.subsample < 1.0:
            pool = np.arange(self.n, dtype=np.uint32) if rows is None else rows
            drawn = self.rng.random(pool.shape[0]) < self.plan.subsample
            if not drawn.any():
                drawn[self.rng.integers(pool.shape[0])] = True
            rows = pool[drawn]
        if rows is None:
            return None, None
        if rows is self.train:
            return rows, np.asarray(self.validation).astype(np.uint32)
        rest = np.ones(self.n, dtype=bool)
        rest[rows] = False
        return rows, np.flatnonzero(rest).astype(np.uint32)

    def _draw_features(self) -> Array:
        active = np.ones(self.d, dtype=np.uint8)
        if self.plan.colsample < 1.0:
            keep = max(1, round(self.plan.colsample * self.d))
            active[:] = 0
            active[self.rng.choice(self.d, keep, replace=False)] = 1
        return active

    def _softmax_gradients(self) -> tuple[Array, Array]:
        g = self.loss.derivative(self.y, self.scores)
        probability = g.copy()
        probability[np.arange(self.n), self.y] += 1.0
        return np.asfortranarray(g), np.asfortranarray(probability * (1.0 - probability))

    def _set_gradients(self, f: Array, k: int, gradients: tuple[Array, Array] | None) -> str:
        """Hand gradients to the grower; returns how the leaves get their values."""
        if gradients is not None:
            self.grower.set_gradients(gradients[0][:, k], gradients[1][:, k])
            return "softmax"
        assert isinstance(self.loss, Loss)
        if type(self.loss) is Logistic:
            self.grower.set_logistic(f, self.y)
            return "native"
        if type(self.loss) is Squared:
            self.grower.set_squared(f, self.y)
            return "native"
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

    def _refine(self, f: Array, grown: dict[str, Array], how: str) -> None:
        """Replace Newton's values by those of a line search where the loss asks for it."""
        if how in ("native", "softmax"):
            return
        loss, y, weight, l2 = self.loss, self.y, self.weight, self.plan.l2
        assert isinstance(loss, Loss)
        if how == "search" and loss.hinge_terms(y[:1]) is not None:
            values = hinge_search(loss, y, f, weight, self.grower, grown, l2)
        else:
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

    def _stationarity(self) -> float:
        """Norm of the gradient of the objective along the leaves of the last trees that were grown."""
        if self.n_outputs == 1 and self._grown is not None:
            begin = np.sort(self._grown["begin"][self._grown["feature"] < 0])
            self.last = [(self.grower.rows(), begin)]
        if len(self.last) < self.n_outputs:  # no tree: the slope along a constant
            self.last = [(np.arange(self.n), np.zeros(1, dtype=np.int64))] * self.n_outputs
        squares = 0.0
        for k, (rows, begin) in enumerate(self.last):
            sums = np.zeros(begin.shape[0])
            for piece in self._pieces(rows.shape[0]):
                where = rows[piece]
                g = self.loss.derivative(self.y[where], self._raw(where))
                leaf = np.searchsorted(begin, np.arange(piece.start, piece.start + where.shape[0]), side="right") - 1
                slope = self.weight[where] * (g[:, k] if isinstance(self.loss, Softmax) else g)
                sums += np.bincount(leaf, weights=slope, minlength=begin.shape[0])
            squares += float(sums @ sums)
        return float(np.sqrt(squares) / self.weight.sum())
