"""Where the parameters of a chain lie in one vector: (weights, Markov weights, transitions, start, end)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

import certifit._native.chain as native
from certifit._types import Array
from certifit.representation.sequences.positions import Positions, SparseRows

__all__ = ["ChainShape", "Pairs", "native_sequences", "observed_pairs"]

TABLE = 1 << 31  # cells up to which seen pairs are marked in a table


@dataclass(frozen=True)
class Pairs:
    """The (feature, code) pairs that have a weight: those of feature f are ``code[first[f]:first[f + 1]]``, rising."""

    first: Array
    code: Array

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.code.shape[0])


@dataclass(frozen=True)
class ChainShape:
    """Sizes of the parts of the parameter vector and what is fixed in it."""

    labels: int
    features: int
    """Of labels."""
    markov: int
    """Features of pairs of neighboring labels."""
    allowed: Array
    """Whether a label may follow another, (labels + 1)²; the last row and column stand for the boundary."""
    free: Array
    """Which of (transitions, start, end) are learned, (labels² + 2·labels,); the others stay zero."""
    pairs: Pairs | None = None
    """The weights of labels that exist; None: one for every label."""
    markov_pairs: Pairs | None = None
    """Those of pairs of labels."""

    @cached_property
    def native(self) -> Any:
        """The kernel's view."""
        return native.shape(
            np.ascontiguousarray(self.allowed, dtype=np.uint8),
            self.features,
            first=None if self.pairs is None else self.pairs.first,
            code=None if self.pairs is None else self.pairs.code,
            edge_features=self.markov,
            edge_first=None if self.markov_pairs is None else self.markov_pairs.first,
            edge_code=None if self.markov_pairs is None else self.markov_pairs.code,
        )

    @property
    def n_unary(self) -> int:
        """Weights of labels."""
        return self.features * self.labels if self.pairs is None else self.pairs.size

    @property
    def n_markov(self) -> int:
        """Weights of pairs of labels."""
        return self.markov * self.labels**2 if self.markov_pairs is None else self.markov_pairs.size

    @property
    def size(self) -> int:
        """Length of the parameter vector."""
        return self.n_unary + self.n_markov + self.labels**2 + 2 * self.labels

    @property
    def fixed(self) -> Array:
        """The complement of `free`, as the kernel wants it."""
        return (~self.free).astype(np.uint8)

    def split(self, w: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Weights, Markov weights, transitions, start and end: views into the vector."""
        K, a = self.labels, self.n_unary
        b = a + self.n_markov
        c = b + K * K
        return w[:a], w[a:b], w[b:c].reshape(K, K), w[c : c + K], w[c + K :]

    def dense_weights(self, w: Array) -> Array:
        """The weights as a table (features, labels)."""
        unary = self.split(w)[0]
        return unary.reshape(self.features, self.labels) if self.pairs is None else self.weights(w).toarray()

    def weights(self, w: Array) -> Any:
        """The weights as a table (features, labels), sparse if not all pairs have one."""
        return _table(self.split(w)[0], self.pairs, (self.features, self.labels))

    def markov_weights(self, w: Array) -> Any:
        """The weights of pairs as a table (Markov features, labels²), sparse if not all have one."""
        return _table(self.split(w)[1], self.markov_pairs, (self.markov, self.labels**2))


def _table(values: Array, pairs: Pairs | None, shape: tuple[int, int]) -> Any:
    if pairs is None:
        return values.reshape(shape)
    return sp.csr_array((values, pairs.code, pairs.first), shape=shape)


def native_sequences(data: Positions, given: Array | None = None) -> Any:
    """The kernel's view of the sequences; with `given` the unary scores are not computed but taken from there."""
    rows: dict[str, Any] = {}
    if given is None:
        sparse = data.sparse
        rows = {"row": sparse.row, "feature": sparse.feature, "value": sparse.value}
    if data.markov is not None:
        rows |= {
            "edge_features": data.markov.width,
            "edge_row": data.markov.row,
            "edge_feature": data.markov.feature,
            "edge_value": data.markov.value,
        }
    return native.sequences(data.offset, data.n_features, given=given, parent=data.parent, order=data.order, **rows)


def observed_pairs(rows: SparseRows, codes: Array, n_codes: int, keep: Array | None = None) -> Pairs:
    """The pairs of a feature and the code of its position that occur; `keep` marks the positions that count."""
    at = rows.entry_positions()
    feature = rows.feature
    if keep is not None:
        feature, at = feature[keep[at]], at[keep[at]]
    cell = feature.astype(np.int64) * n_codes + codes[at]
    if rows.width * n_codes <= TABLE:
        seen = np.zeros(rows.width * n_codes, dtype=bool)
        seen[cell] = True
        cell = np.flatnonzero(seen)
    else:
        cell = np.unique(cell)
    first = np.searchsorted(cell, np.arange(rows.width + 1, dtype=np.int64) * n_codes)
    return Pairs(first.astype(np.int64), (cell % n_codes).astype(np.int32))
