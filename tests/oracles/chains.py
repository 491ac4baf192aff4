"""Chains and trees of labels by enumeration: every labelling is written down, scored and summed."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
from scipy.special import logsumexp


@dataclass
class Enumerated:
    """All labellings of one sequence.

    `unary` is (T, K); `transition` is (K, K) or (T, K, K), the scores into each position; `start` belongs to the roots and
    `end` to the leaves; `parent` is the chain by default.
    """

    unary: np.ndarray
    transition: np.ndarray
    start: np.ndarray | None = None
    end: np.ndarray | None = None
    parent: list[int] | None = None
    paths: list[tuple[int, ...]] = field(init=False)
    scores: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        T, K = self.unary.shape
        parent = list(range(-1, T - 1)) if self.parent is None else self.parent
        start = np.zeros(K) if self.start is None else self.start
        end = np.zeros(K) if self.end is None else self.end
        into = np.broadcast_to(self.transition, (T, K, K))
        self.paths = list(itertools.product(range(K), repeat=T))
        self.scores = np.zeros(len(self.paths))
        for n, y in enumerate(self.paths):
            for t in range(T):
                self.scores[n] += self.unary[t, y[t]]
                self.scores[n] += start[y[t]] if parent[t] < 0 else into[t, y[parent[t]], y[t]]
                if t not in parent:
                    self.scores[n] += end[y[t]]
        self.parents = parent

    @property
    def log_z(self) -> float:
        return float(logsumexp(self.scores))

    @property
    def probabilities(self) -> np.ndarray:
        return np.exp(self.scores - self.log_z)

    @property
    def marginals(self) -> np.ndarray:
        out = np.zeros(self.unary.shape)
        for y, p in zip(self.paths, self.probabilities, strict=True):
            out[np.arange(len(y)), y] += p
        return out

    @property
    def pairs(self) -> np.ndarray:
        """P(y_parent(t) = i, y_t = j), zero for roots."""
        T, K = self.unary.shape
        out = np.zeros((T, K, K))
        for y, p in zip(self.paths, self.probabilities, strict=True):
            for t in range(T):
                if self.parents[t] >= 0:
                    out[t, y[self.parents[t]], y[t]] += p
        return out

    @property
    def entropy(self) -> float:
        p = self.probabilities
        return float(-np.sum(p[p > 0] * np.log(p[p > 0])))

    def best(self, count: int = 1) -> tuple[list[tuple[int, ...]], np.ndarray]:
        """The labellings of the highest scores, best first; impossible ones are left out."""
        order = np.argsort(-self.scores, kind="stable")[:count]
        order = order[np.isfinite(self.scores[order])]
        return [self.paths[n] for n in order], self.scores[order]
