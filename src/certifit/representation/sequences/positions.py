"""Sequences as one table: the positions of all sequences below each other, and where each sequence begins."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from certifit._types import Array

__all__ = ["Positions", "SparseRows"]


@dataclass(frozen=True)
class SparseRows:
    """Features of the positions: those of position t are ``feature[row[t]:row[t + 1]]``.

    Parameters
    ----------
    row : int64 array of shape (n_positions + 1,)
    feature : int32 array
    value : float64 array or None
        None: every feature that is there has the value 1.
    width : int
        Number of features that exist.
    """

    row: Array
    feature: Array
    value: Array | None
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        """Positions and features."""
        return self.row.shape[0] - 1, self.width

    def take(self, positions: Array) -> SparseRows:
        """The rows of some positions, in the order given."""
        counts = np.diff(self.row)[positions]
        row = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        entry = np.arange(row[-1]) + np.repeat(self.row[:-1][positions] - row[:-1], counts)
        return SparseRows(row, self.feature[entry], None if self.value is None else self.value[entry], self.width)

    def entry_positions(self) -> Array:
        """The position of every entry."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.row))

    def columns(self) -> tuple[Array, Array, Array | None]:
        """The transpose: where each feature begins, its positions in rising order, its values."""
        data = np.ones(self.feature.shape[0], dtype=np.int8) if self.value is None else self.value
        turned = sp.csr_array((data, self.feature, self.row), shape=self.shape).tocsc()
        return (
            turned.indptr.astype(np.int64),
            turned.indices.astype(np.int32),
            None if self.value is None else np.ascontiguousarray(turned.data),
        )

    @staticmethod
    def of(matrix: sp.csr_array) -> SparseRows:
        """From a sparse matrix; a matrix of ones needs no values."""
        matrix = sp.csr_array(matrix)
        matrix.sum_duplicates()
        value = matrix.data.astype(np.float64)
        return SparseRows(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int32),
            None if bool((value == 1.0).all()) else value,
            int(matrix.shape[1]),
        )


@dataclass(frozen=True)
class Positions:
    """What a structured model sees of its input.

    Parameters
    ----------
    offset : int64 array of shape (n_sequences + 1,)
        Sequence i has the positions ``offset[i]`` to ``offset[i + 1] - 1``.
    unary : SparseRows or array of shape (n_positions, n_features)
        Features of the labels.
    markov : SparseRows or None
        Features of pairs of neighboring labels.
    parent, order : int32 arrays of shape (n_positions,), or None for chains
        On trees: the parent of each position within its sequence (−1 for a root), and the positions of each sequence
        with parents before their children.
    """

    offset: Array
    unary: SparseRows | Array
    markov: SparseRows | None = None
    parent: Array | None = None
    order: Array | None = None

    @property
    def n_sequences(self) -> int:
        """How many sequences there are."""
        return int(self.offset.shape[0]) - 1

    @property
    def n_positions(self) -> int:
        """How many positions they have together."""
        return int(self.offset[-1])

    @property
    def lengths(self) -> Array:
        """Positions of each sequence."""
        return np.diff(self.offset)

    @property
    def dense(self) -> Array | None:
        """The features, if they are a table of numbers."""
        return self.unary if isinstance(self.unary, np.ndarray) else None

    @property
    def sparse(self) -> SparseRows:
        """The features as sparse rows, whatever they are."""
        if isinstance(self.unary, SparseRows):
            return self.unary
        return SparseRows.of(sp.csr_array(self.unary))

    @property
    def n_features(self) -> int:
        """Features of the labels."""
        return int(self.unary.shape[1])

    @property
    def n_markov(self) -> int:
        """Features of pairs of labels."""
        return 0 if self.markov is None else self.markov.width

    def parents(self) -> Array:
        """The parent of every position within its sequence; −1 for roots."""
        if self.parent is not None:
            return self.parent
        parent = np.arange(self.n_positions) - np.repeat(self.offset[:-1], self.lengths) - 1
        return parent.astype(np.int32)

    def take(self, sequences: Array) -> Positions:
        """Some of the sequences."""
        lengths = self.lengths[sequences]
        offset = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        at = np.arange(offset[-1]) + np.repeat(self.offset[:-1][sequences] - offset[:-1], lengths)
        unary = self.unary.take(at) if isinstance(self.unary, SparseRows) else np.ascontiguousarray(self.unary[at])
        return replace(
            self,
            offset=offset,
            unary=unary,
            markov=None if self.markov is None else self.markov.take(at),
            parent=None if self.parent is None else self.parent[at],
            order=None if self.order is None else self.order[at],
        )

    def each(self, values: Array) -> list[Array]:
        """An array with a row for each position, cut into its sequences."""
        return np.split(values, self.offset[1:-1])
