"""How the trees of a forest draw their rows, kept so that the same draws can be made again."""

from __future__ import annotations

import numpy as np

import certifit._native.tree as native
from certifit._types import Array
from certifit.models.tree.rows import CodedRows
from certifit.names import record

__all__ = ["Urn", "state_of", "tree_seeds"]


@record("Urn")
class Urn:
    """What the trees of one fit draw their rows from."""

    trees: int
    draws: int
    """Rows that each tree draws; 0: every tree sees all rows."""
    order: Array
    """Rows in the order from which they are drawn."""
    chances: Array
    """Chance of each row, relative; empty: all alike."""
    given: Array
    """The rows that count, by their numbers as given to `fit`."""

    @classmethod
    def of(cls, rows: CodedRows, trees: int, draws: int, order: Array, chances: Array) -> Urn:
        """An urn of these rows."""
        if not draws or np.ptp(chances) == 0:
            chances = np.empty(0)
        elif not chances.all():  # a draw at the very end, by rounding, must meet a row that has a chance
            order = order[np.argsort(chances[order] > 0, kind="stable")]
        return cls(trees, draws, order, chances, np.flatnonzero(rows.kept).astype(np.int32))

    def drawn(self, seed: int) -> Array:
        """Rows of the tree of a seed, each as often as it was drawn."""
        if not self.draws:
            return self.given
        return np.repeat(self.given, native.drawn(seed, self.draws, self.chances, self.order))


def tree_seeds(seed: int, trees: int) -> Array:
    """The seed of each tree of a forest; its lower half draws features and thresholds, all of it the rows."""
    return np.asarray(np.random.SeedSequence(seed).generate_state(trees, np.uint64))


def state_of(seed: int) -> int:
    """The `random_state` with which a tree alone draws features and thresholds as in the forest."""
    return seed & 0xFFFFFFFF
