"""Piecewise linear losses of K scores: the multiclass hinge and perceptron losses."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from certifit._types import Array
from certifit.evaluation.losses.base import Loss
from certifit.evaluation.losses.labels.softmax import check_class_numbers, class_count, own_score
from certifit.evaluation.losses.terms import TwoSidedHinge
from certifit.parameters.docstrings import takes_as

__all__ = ["MulticlassHinge", "MulticlassPerceptron"]


class MulticlassHinge(Loss):
    """ℓ(y, f) = max_k (Δ(y, k) + f_k − f_y) for class numbers y and scores f of shape (n, K).

    The score of the true class should exceed that of class k by Δ(y, k): 1 for every other class, or what the cost matrix says
    (Crammer and Singer 2001; Tsochantaridis et al. 2005).

    Parameters
    ----------
    costs : array of shape (K, K) or None, default=None
        Δ, zero on the diagonal and not negative; None means 1 for every mistake.
    n_classes : int or None, default=None
        K; None reads it off the targets.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import MulticlassHinge
    >>> MulticlassHinge().value(np.array([0, 1]), np.array([[2.0, 0.0, 0.5], [0.0, 0.5, 1.0]]))
    array([0. , 1.5])
    """

    name = "multiclass_hinge"
    convex = True
    task = "multiclass"
    coupled = True
    shift_invariant = True

    def __init__(self, costs: Any = None, n_classes: int | None = None) -> None:
        self.costs, self.n_classes = costs, n_classes
        if costs is not None:
            table = np.asarray(costs, dtype=np.float64)
            if table.ndim != 2 or table.shape[0] != table.shape[1] or np.diag(table).any() or not (table >= 0).all():
                raise ValueError(f"costs must be a square table >= 0 with zeros on its diagonal; got {costs!r}.")

    def n_scores(self, y: Array) -> int:
        return class_count(y, self.n_classes if self.costs is None else len(self.costs))

    def check_target(self, y: Array) -> None:
        if y.ndim != 1:
            raise ValueError(f"y must hold one class number a row for the {self.name} loss; got shape {y.shape}.")
        check_class_numbers(y, self.n_classes if self.costs is None else len(self.costs), self.name)

    def _required(self, y: Array, K: int) -> Array:
        """Δ(y, k), shape (n, K)."""
        if self.costs is not None:
            return np.asarray(self.costs, dtype=np.float64)[y]
        required = np.ones((y.shape[0], K))
        required[np.arange(y.shape[0]), y] = 0.0
        return required

    def value(self, y: Array, f: Array) -> Array:
        return np.asarray((self._required(y, f.shape[1]) + f).max(axis=1) - own_score(y, f))

    def derivative(self, y: Array, f: Array) -> Array:
        rows, g = np.arange(y.shape[0]), np.zeros(f.shape)
        g[rows, (self._required(y, f.shape[1]) + f).argmax(axis=1)] += 1.0
        g[rows, y] -= 1.0
        return g

    def hinge_along(self, y: Array, f: Array, k: int) -> TwoSidedHinge:
        """The loss as a function of the k-th score, the others where they are, up to a constant: one kink a row."""
        wanted = self._required(y, f.shape[1])
        rivals = wanted + f
        rivals[:, k] = -np.inf
        kink, own = rivals.max(axis=1) - wanted[:, k], y == k
        return TwoSidedHinge(kink, kink, own.astype(np.float64), (~own).astype(np.float64))

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        """−Σ_k π_k Δ(y, k) for π = u + indicator(y); infinity unless π is a probability."""
        share = np.array(u, dtype=np.float64)
        share[np.arange(y.shape[0]), y] += 1.0
        feasible = (share.min(axis=1) >= 0) & (np.abs(u.sum(axis=1)) <= 1e-12 * u.shape[1])
        return np.where(feasible, -(share * self._required(y, u.shape[1])).sum(axis=1), np.inf)

    def dual_domain(self, y: Array) -> tuple[Array, Array]:
        low = np.zeros((y.shape[0], self.n_scores(y)))
        low[np.arange(y.shape[0]), y] = -1.0
        return low, 1.0 + low

    def optimal_constant(self, y: Array, weight: Array) -> Array:
        """The linear program over the scores of the classes that are there: Σ_y share_y t_y with t_y ≥ Δ(y, k) + c_k − c_y.

        The other classes score so low that they are in nobody's way.
        """
        total = np.bincount(y, weights=weight, minlength=self.n_scores(y))
        there = np.flatnonzero(total)
        K, share, required = there.size, total[there], self._required(there, total.size)
        own, other = (index.ravel() for index in np.indices((K, K)))
        every = np.arange(K * K)
        places = np.tile(every, 3), np.concatenate([other, own, K + own])
        rules: Any = sparse.csr_array((np.repeat([1.0, -1.0, -1.0], K * K), places), shape=(K * K, 2 * K))
        goal = np.append(np.zeros(K), share / share.sum())
        bounds = [(None, None)] * K + [(0.0, None)] * K
        found = np.asarray(linprog(goal, rules, -required[:, there].ravel(), bounds=bounds).x)[:K]
        best = np.full(total.size, found.min() - required.max())
        best[there] = found
        return np.asarray(best - best.mean())


@takes_as(MulticlassHinge)
class MulticlassPerceptron(MulticlassHinge):
    """ℓ(y, f) = max_k f_k − f_y: how far the highest score is above that of the true class.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import MulticlassPerceptron
    >>> scores = np.array([[2.0, 0.0, 0.5], [0.0, 0.5, 1.0]])
    >>> MulticlassPerceptron().value(np.array([0, 1]), scores), MulticlassPerceptron().value(scores.argmax(axis=1), scores)
    (array([0. , 0.5]), array([0., 0.]))
    """

    name = "multiclass_perceptron"
    convex = True

    def __init__(self, n_classes: int | None = None) -> None:
        super().__init__(None, n_classes)

    def _required(self, y: Array, K: int) -> Array:
        return np.zeros((y.shape[0], K))

    def optimal_constant(self, y: Array, weight: Array) -> Array:
        """Equal scores cost nothing."""
        return np.zeros(self.n_scores(y))
