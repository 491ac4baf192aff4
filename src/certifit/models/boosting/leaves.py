"""Values of the leaves where Newton's step is not enough: exact line searches, one for each leaf.

    v_leaf = argmin over v of  Σ_{i in leaf} s_i · loss(y_i, f_i + v)  +  ½ l2 v²

Piecewise linear losses are solved by their breakpoints, all others by a safeguarded Newton iteration.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.evaluation.losses import Loss
from certifit.evaluation.losses.terms import TwoSidedHinge

__all__ = ["LeafRows", "hinge_search", "keep_order", "overshoots", "smooth_search"]


class LeafRows:
    """The rows of a grown tree, leaf after leaf."""

    def __init__(self, grower: Any, grown: dict[str, Array]) -> None:
        leaves = np.flatnonzero(grown["feature"] < 0)
        self.nodes = leaves[np.argsort(grown["begin"][leaves], kind="stable")]
        self.rows = grower.rows()
        self.start = grown["begin"][self.nodes]
        self.size = grown["end"][self.nodes] - self.start

    def totals(self, values: Array) -> Array:
        """Sum over each leaf of values given in the order of `rows`."""
        return np.add.reduceat(values, self.start)

    def first(self, values: Array) -> Array:
        """Value of the first row of each leaf, given in the order of `rows`."""
        return values[self.start]

    def spread(self, values: Array) -> Array:
        """One value a leaf → one a row, in the order of `rows`."""
        return np.repeat(values, self.size)


def hinge_search(
    terms: TwoSidedHinge, f: Array, weight: Array, grower: Any, grown: dict[str, Array], l2: float
) -> Array:
    """Exact minimizers of a piecewise linear loss, by its breakpoints; values for all nodes (zero inside)."""
    # Breakpoints that carry no slope are never looked at, so their infinities do no harm.
    leaves = np.flatnonzero(grown["feature"] < 0).astype(np.int32)
    found = grower.hinge_values(
        np.ascontiguousarray(terms.lower - f),
        np.ascontiguousarray(terms.upper - f),
        weight * terms.slope_low,
        weight * terms.slope_high,
        leaves,
        l2,
    )
    values = np.zeros(grown["feature"].shape[0])
    values[leaves] = found
    return values


def smooth_search(loss: Loss, y: Array, f: Array, weight: Array, leaf_rows: LeafRows, l2: float) -> Array:
    """Minimizers for any convex loss, the one nearest to zero where they form an interval.

    Newton steps kept inside a bracket of the zero of the slope, searched on the side where the loss falls.
    """
    rows = leaf_rows.rows
    y, f, weight = y[rows], f[rows], weight[rows]

    def slopes(v: Array) -> tuple[Array, Array, Array]:
        """Slope, its rounding error and curvature of each leaf at v."""
        moved = f + leaf_rows.spread(v)
        each = weight * loss.derivative(y, moved)
        bend = leaf_rows.totals(weight * loss.second_derivative(y, moved)) if loss.smooth else np.zeros_like(v)
        rounding = 1e-13 * leaf_rows.totals(np.abs(each))
        return np.nan_to_num(leaf_rows.totals(each) + l2 * v, nan=np.inf), rounding, bend + l2

    with np.errstate(all="ignore"):
        slope, rounding, bend = slopes(np.zeros(leaf_rows.nodes.shape[0]))
        side = -np.sign(slope)
        done = np.abs(slope) <= rounding
        low, high = np.zeros_like(slope), np.full_like(slope, np.inf)
        reach = np.ones_like(slope)
        u = low.copy()
        for _ in range(200):
            newton = u + np.abs(slope) / bend * np.where(side * slope < 0, 1.0, -1.0)
            inside = np.isfinite(newton) & (newton > low) & (newton < high) & (newton - low <= 64.0 * reach)
            fallback = np.where(np.isfinite(high), 0.5 * (low + high), low + reach)
            reach = np.where(inside | np.isfinite(high), reach, 2.0 * reach)
            trial = np.where(done, u, np.where(inside, newton, fallback))
            slope, rounding, bend = slopes(side * trial)
            u = trial
            # On a flat stretch the slope is zero and does not bend: the search goes on towards its near end.
            found = (np.abs(slope) <= rounding) & (bend > 0)
            polished = u - side * slope / bend
            u = np.where(found & ~done & np.isfinite(polished), polished, u)
            done |= found
            falls = side * slope < -rounding
            low, high = np.where(falls & ~done, u, low), np.where(~falls & ~done, u, high)
            done |= np.isfinite(high) & (high - low <= 1e-15 * high)
            # A loss that falls for ever has no minimizer: a long step is enough.
            done |= low > 1e3 * np.maximum(1.0, np.abs(leaf_rows.first(f)))
            if done.all():
                break
    return side * u


def overshoots(
    loss: Loss, y: Array, f: Array, weight: Array, leaf_rows: LeafRows, values: Array, slope: Array, l2: float
) -> bool:
    """Whether some leaf is steeper after Newton's step than before it: the quadratic model was wrong there."""
    rows = leaf_rows.rows
    with np.errstate(all="ignore"):
        after = leaf_rows.totals(weight[rows] * loss.derivative(y[rows], f[rows] + leaf_rows.spread(values)))
    after = after + l2 * values
    return bool((~(np.abs(after) <= np.abs(slope) * (1 + 1e-9) + 1e-300)).any())


def keep_order(grown: dict[str, Array], values: Array, monotone: Array) -> Array:
    """Leaf values made monotone again after a line search: the sides of a constrained split are kept apart."""
    feature, left, right, count = grown["feature"], grown["left"], grown["right"], grown["count"]
    mean = values.copy()
    for v in range(feature.shape[0] - 1, -1, -1):  # children come after their parent
        if feature[v] >= 0:
            a, b = left[v], right[v]
            mean[v] = (count[a] * mean[a] + count[b] * mean[b]) / (count[a] + count[b])
    low, high = np.full(values.shape, -np.inf), np.full(values.shape, np.inf)
    for v in range(feature.shape[0]):
        if feature[v] < 0:
            continue
        a, b = int(left[v]), int(right[v])
        low[a] = low[b] = low[v]
        high[a] = high[b] = high[v]
        direction = monotone[feature[v]]
        if direction:
            below, above = (a, b) if direction > 0 else (b, a)
            ordered = mean[below] <= mean[above]
            middle = 0.5 * (mean[below] + mean[above]) if ordered else mean[v]
            middle = min(max(middle, low[v]), high[v])
            high[below], low[above] = middle, middle
    return np.where(feature < 0, np.clip(values, low, high), 0.0)
