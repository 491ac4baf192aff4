"""Whatever a user calls a sequence, as rows of features.

| a token is | features |
|---|---|
| text | templates, or a function ``(tokens, position) → features`` |
| a mapping or a tuple of text, with templates | the templates read its columns |
| a mapping | name → number, truth value or text (``name=text``) |
| a list or set of text | each is a feature |
| an integer, or an array of integers | ids: each column of ids has features of its own |
| a row of a dense or sparse matrix | its columns |
"""

from __future__ import annotations

import numbers
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit._types import Array, is_sparse
from certifit.data.sparse import check_sparse
from certifit.names import stored
from certifit.representation.sequences.positions import Positions, SparseRows
from certifit.representation.sequences.templates import TAGGING, TemplateFeatures, merged

__all__ = ["Bags", "Ids", "MatrixColumns", "SequenceEncoder", "read_lengths", "sequence_parts"]


MOST_FEATURES = 2**31 - 2
"""Features have numbers of 32 bits; one is the constant."""


@stored("FeatureBags")
class Bags:
    """Features with names and values, counted by a vocabulary or put into buckets."""

    def __init__(self, min_count: int = 1, hashing: int | None = None) -> None:
        self.min_count, self.hashing = min_count, hashing
        self.names: list[str] = []

    @property
    def width(self) -> int:
        """Number of features."""
        return self.hashing or len(self.names)

    def name(self, feature: int) -> str:
        """What a feature means."""
        return f"bucket {feature}" if self.hashing is not None else self.names[feature]

    def fit(self, tokens: Sequence[Any]) -> SparseRows:
        """Learn the names and find them."""
        if self.hashing is not None:
            return self.transform(tokens)
        index: defaultdict[str, int] = defaultdict(count().__next__)
        rows = _bag_rows(tokens, index.__getitem__)
        counts = np.bincount(rows.feature, minlength=len(index))
        kept = counts >= self.min_count
        self.names = [name for name, keep in zip(index, kept.tolist(), strict=True) if keep]
        if kept.all():
            return SparseRows(rows.row, rows.feature, rows.value, len(index))
        matrix = sp.csr_array((_ones(rows), rows.feature, rows.row), shape=(rows.shape[0], len(index)))
        return SparseRows.of(matrix[:, kept])

    def transform(self, tokens: Sequence[Any]) -> SparseRows:
        """Find the features that are known."""
        if self.hashing is not None:
            buckets = self.hashing
            rows = _bag_rows(tokens, lambda name: zlib.crc32(name.encode("utf-8", "surrogatepass")) % buckets)
        else:
            index = {name: k for k, name in enumerate(self.names)}
            rows = _bag_rows(tokens, lambda name: index.get(name, -1))
        return merged(SparseRows(rows.row, rows.feature, rows.value, self.width))


def _ones(rows: SparseRows) -> Array:
    return np.ones(rows.feature.shape[0]) if rows.value is None else rows.value


def _bag_rows(tokens: Sequence[Any], number: Callable[[str], int]) -> SparseRows:
    """Rows of (name, value) pairs; names without a number are left out."""
    lists, value = _names_and_values(tokens)
    names = list(chain.from_iterable(lists))
    if not set(map(type, names)) <= {str} and not _all_text(names):
        odd = next(name for name in names if not isinstance(name, str))
        raise TypeError(f"X: a feature must be text; there is {odd!r}.")
    feature = np.fromiter(map(number, names), np.int64, len(names))
    row = np.concatenate([[0], np.cumsum(np.fromiter(map(len, lists), np.int64, len(lists)))]).astype(np.int64)
    kept = feature >= 0 if value is None else (feature >= 0) & (value != 0.0)
    if not kept.all():
        row = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)[row]
        feature, value = feature[kept], None if value is None else value[kept]
    if value is not None and bool((value == 1.0).all()):
        value = None
    return SparseRows(row, feature.astype(np.int32), value, int(feature.max(initial=-1)) + 1)


def _names_and_values(tokens: Sequence[Any]) -> tuple[list[Any], Array | None]:
    """For every position the names of its features, and the values of all unless they are 1."""
    if set(map(type, tokens)) <= {list, tuple}:
        return list(tokens), None
    if not isinstance(tokens[0], Mapping):
        for at, token in enumerate(tokens):
            if not isinstance(token, (list, tuple, set, frozenset)):
                raise TypeError(
                    f"X: position {at} must have a mapping or a list of features, like the first; got {token!r:.60}."
                )
        return [list(token) if isinstance(token, (set, frozenset)) else token for token in tokens], None
    lists: list[list[str]] = []
    value: list[float] = []
    for at, token in enumerate(tokens):
        if not isinstance(token, Mapping):
            raise TypeError(f"X: position {at} must have a mapping of features, like the first; got {token!r:.60}.")
        names = []
        for name, amount in token.items():
            if isinstance(amount, str):
                names.append(f"{name}={amount}")
                value.append(1.0)
            elif isinstance(amount, numbers.Real) and np.isfinite(float(amount)):
                names.append(name)
                value.append(float(amount))
            else:
                raise ValueError(
                    f"X: the feature {name!r} of position {at} must be text, a truth value or a finite number; got {amount!r}."
                )
        lists.append(names)
    return lists, np.array(value)


@stored("IdColumns")
class Ids:
    """Columns of whole numbers ≥ 0, each with features of its own; numbers that `fit` has not seen are left out."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    @property
    def width(self) -> int:
        """Number of features."""
        return int(sum(self.sizes))

    def name(self, feature: int) -> str:
        """What a feature means."""
        starts = np.cumsum([0, *self.sizes])
        column = int(np.searchsorted(starts, feature, side="right")) - 1
        return (
            f"id {feature - starts[column]}"
            if len(self.sizes) == 1
            else f"column {column}, id {feature - starts[column]}"
        )

    def fit(self, table: Array) -> SparseRows:
        """Learn the ranges."""
        table = table[:, None] if table.ndim == 1 else table
        self.sizes = (table.max(axis=0) + 1).tolist()
        if self.width > MOST_FEATURES:
            raise ValueError(
                f"X: ids go up to {int(table.max())}, and with them the number of features; number them from 0 on, below "
                f"{MOST_FEATURES}, or give them as text with features."
            )
        return self.transform(table)

    def transform(self, table: Array) -> SparseRows:
        """Number the ids of all columns."""
        table = table[:, None] if table.ndim == 1 else table
        if table.shape[1] != len(self.sizes):
            raise ValueError(f"X has {table.shape[1]} columns of ids, but the model was fitted with {len(self.sizes)}.")
        if table.shape[0] and int(table.min()) < 0:
            raise ValueError(f"X: ids must be ≥ 0; got {int(table.min())}.")
        there = table < np.array(self.sizes)
        numbered = table + np.cumsum([0, *self.sizes[:-1]])
        row = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
        return SparseRows(row, numbered[there].astype(np.int32), None, self.width)


@stored("MatrixColumns")
class MatrixColumns:
    """A dense or sparse matrix: its columns are the features."""

    def __init__(self) -> None:
        self.width = 0

    def name(self, feature: int) -> str:
        """What a feature means."""
        return f"column {feature}"

    def fit(self, matrix: Any) -> SparseRows | Array:
        """Learn the number of columns."""
        self.width = int(matrix.shape[1])
        return self.transform(matrix)

    def transform(self, matrix: Any) -> SparseRows | Array:
        """Check the columns."""
        if matrix.shape[1] != self.width:
            raise ValueError(f"X has {matrix.shape[1]} features, but the model was fitted with {self.width}.")
        values = matrix.data if is_sparse(matrix) else matrix
        if not np.isfinite(values).all():
            raise ValueError("Input X contains NaN or infinity: every feature must be a finite number.")
        return (
            SparseRows.of(sp.csr_array(matrix)) if is_sparse(matrix) else np.ascontiguousarray(matrix, dtype=np.float64)
        )


@stored("SequenceEncoder")
class SequenceEncoder:
    """Turns sequences into `Positions`, always in the way of the first ones.

    Parameters
    ----------
    features : None, list of templates or callable
        For tokens that are text; None: the templates `TAGGING`.
    markov : None, list or callable
        Features of pairs of labels: templates or a function for text, names for mappings and lists of features, column
        numbers for ids and matrices.
    hashing : int or None
    min_count : int
    bias : bool
        Whether every position has one feature more that is always 1.
    """

    def __init__(
        self,
        features: Any = None,
        markov: Any = None,
        hashing: int | None = None,
        min_count: int = 1,
        bias: bool = True,
    ) -> None:
        self.features, self.markov, self.hashing, self.min_count, self.bias = features, markov, hashing, min_count, bias
        self.kind = ""
        self.unary: Any = None
        self.edge: Any = None

    def fit(self, X: Any, lengths: Any = None) -> Positions:
        """Learn the features and encode the sequences."""
        sequences, offset = sequence_parts(X, lengths)
        self.kind = _kind(sequences, self.features)
        if self.kind in ("ids", "matrix") and self.features is not None:
            raise ValueError(
                f"features belong to tokens of text; X holds {'ids' if self.kind == 'ids' else 'a matrix'}: leave them out."
            )
        if self.kind in ("ids", "matrix") and self.hashing is not None:
            raise ValueError("hashing is for features with names; ids and matrices have numbers already: leave it out.")
        self.unary, self.edge = self._makers()
        return self._encode(sequences, offset, "fit")

    def transform(self, X: Any, lengths: Any = None) -> Positions:
        """Encode sequences of the same kind."""
        sequences, offset = sequence_parts(X, lengths)
        kind = _kind(sequences, self.features)
        if kind != self.kind:
            raise ValueError(f"X holds {_WORDS[kind]}, but the model was fitted on {_WORDS[self.kind]}.")
        return self._encode(sequences, offset, "transform")

    @property
    def width(self) -> int:
        """Number of features, the constant included."""
        return int(self.unary.width) + int(self.bias)

    def name(self, feature: int) -> str:
        """What a feature means."""
        return "bias" if feature == self.unary.width else str(self.unary.name(feature))

    def _makers(self) -> tuple[Any, Any]:
        if self.kind == "templates":
            made = TemplateFeatures(TAGGING if self.features is None else self.features, self.min_count, self.hashing)
            edge = None
            if self.markov is not None:
                edge = (
                    Bags(self.min_count)
                    if callable(self.markov)
                    else TemplateFeatures(self.markov, self.min_count, argument="markov")
                )
            for templates in (made, edge):  # what cannot be read is refused before anything is done
                if isinstance(templates, TemplateFeatures):
                    _ = templates.parsed
            return made, edge
        if self.kind in ("function", "bags"):
            return Bags(self.min_count, self.hashing), None if self.markov is None else Bags(self.min_count)
        return (Ids() if self.kind == "ids" else MatrixColumns()), None

    def _encode(self, sequences: list[Any], offset: Array, way: str) -> Positions:
        unary: SparseRows | Array
        edge: SparseRows | None = None
        if self.kind == "templates":
            unary = getattr(self.unary, way)(sequences)
            if self.edge is not None:
                edge = getattr(self.edge, way)(
                    _called(self.markov, "markov", sequences) if callable(self.markov) else sequences
                )
        elif self.kind in ("function", "bags"):
            tokens = (
                _called(self.features, "features", sequences)
                if self.kind == "function"
                else [token for sequence in sequences for token in sequence]
            )
            unary = getattr(self.unary, way)(tokens)
            if self.edge is not None:
                chosen = (
                    _called(self.markov, "markov", sequences)
                    if callable(self.markov)
                    else [_chosen(t, self.markov) for t in tokens]
                )
                edge = getattr(self.edge, way)(chosen)
        else:
            table = _stacked(sequences, self.kind)
            unary = getattr(self.unary, way)(table)
            if self.markov is not None:
                edge = _column_rows(unary, self.markov)
        return Positions(offset, _with_bias(unary) if self.bias else unary, edge)


_WORDS = {
    "templates": "tokens of text",
    "function": "tokens of text",
    "bags": "features with names",
    "ids": "ids",
    "matrix": "rows of a matrix",
}


def read_lengths(lengths: Any, total: int) -> Array:
    """Offsets of the sequences from their lengths."""
    try:
        array = np.asarray(lengths)
        whole = array.astype(np.int64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"lengths must be whole numbers, one for each sequence; got {lengths!r}.") from error
    if array.ndim != 1 or array.shape[0] == 0 or array.dtype.kind not in "iu":
        raise ValueError(f"lengths must be whole numbers, one for each sequence; got {lengths!r}.")
    if (whole <= 0).any():
        at = int(np.flatnonzero(whole <= 0)[0])
        raise ValueError(f"lengths[{at}] is {int(whole[at])}: a sequence is empty; leave it out.")
    if int(whole.sum()) != total:
        raise ValueError(f"lengths add up to {int(whole.sum())}, but X has {total} rows.")
    return np.concatenate([[0], np.cumsum(whole)]).astype(np.int64)


def sequence_parts(X: Any, lengths: Any) -> tuple[list[Any], Array]:
    """The sequences and their offsets."""
    if lengths is not None:
        check_sparse(X)
        flat: Any = X if is_sparse(X) else np.asarray(X)
        if flat.ndim not in (1, 2) or (not is_sparse(flat) and flat.dtype.kind not in "iufb"):
            raise ValueError(
                "lengths goes with one matrix (or one array of ids) of all positions; X is something else."
            )
        offset = read_lengths(lengths, int(flat.shape[0]))
        flat = flat.tocsr() if is_sparse(flat) else flat
        return [flat], offset
    if isinstance(X, (str, bytes)) or is_sparse(X) or not isinstance(X, Iterable) or isinstance(X, Mapping):
        raise TypeError(
            "X must be a list of sequences; "
            + ("give lengths with one matrix of all positions." if is_sparse(X) else f"got {X!r:.80}.")
        )
    sequences = [_from_frame(sequence) for sequence in X]
    if not sequences:
        raise ValueError("X is empty: at least one sequence is needed.")
    counts = []
    for i, sequence in enumerate(sequences):
        if isinstance(sequence, (str, bytes)):
            raise TypeError(
                f"X[{i}] is the text {sequence!r:.60}: a sequence must be a list of tokens; split it first."
            )
        check_sparse(sequence, f"X[{i}]")
        if is_sparse(sequence):
            counts.append(int(sequence.shape[0]))
        elif hasattr(sequence, "__len__"):
            counts.append(len(sequence))
        else:
            raise TypeError(
                f"X[{i}] must be a sequence of tokens; got {sequence!r:.60} of type {type(sequence).__name__}."
            )
        if counts[-1] == 0:
            raise ValueError(f"X[{i}] is an empty sequence: a label needs a position; leave the sequence out.")
    return sequences, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _from_frame(sequence: Any) -> Any:
    """A frame is a matrix, a column of one a list of tokens; their labels of rows mean nothing here."""
    if isinstance(sequence, np.ndarray) or is_sparse(sequence) or not hasattr(sequence, "__array__"):
        return sequence
    array = np.asarray(sequence)
    return array if array.dtype.kind in "iufb" else array.tolist()


def _kind(sequences: list[Any], features: Any) -> str:
    first = sequences[0]
    if is_sparse(first):
        return "matrix"
    if isinstance(first, np.ndarray) and first.dtype.kind in "iufb":
        if first.dtype.kind in "iu":
            return "ids"
        if first.ndim == 2:
            return "matrix"
        raise ValueError(
            f"X[0] must be a matrix or hold ids (integers); got an array of shape {first.shape}, {first.dtype}."
        )
    token = first[0]
    if isinstance(token, str):
        return "function" if callable(features) else "templates"
    if features is not None:
        return "function" if callable(features) else "templates"
    if isinstance(token, Mapping) or (isinstance(token, (list, tuple, set, frozenset)) and _all_text(token)):
        return "bags"
    if isinstance(token, numbers.Integral) and not isinstance(token, bool):
        return "ids"
    if isinstance(token, (list, tuple, np.ndarray)) and len(token):
        values = np.asarray(token)
        if values.dtype.kind in "iu":
            return "ids"
        if values.dtype.kind in "fb":
            return "matrix"
    raise TypeError(
        "X[0][0] must be text, a mapping or list of features, an id, or a row of numbers; "
        f"got {token!r:.60} of type {type(token).__name__}."
    )


def _all_text(token: Any) -> bool:
    return all(isinstance(name, str) for name in token)


def _called(function: Callable[[Any, int], Any], name: str, sequences: list[Any]) -> list[Any]:
    """What the user's function finds at every position."""
    tokens = [function(sequence, t) for sequence in sequences for t in range(len(sequence))]
    for token in tokens[:1]:
        if isinstance(token, str) or not isinstance(token, Iterable):
            raise TypeError(
                f"{name} must return a mapping or a list of features for each position; it returned {token!r:.60}."
            )
    return tokens


def _chosen(token: Any, names: Any) -> Any:
    """Those features of a token that also go with pairs of labels."""
    if isinstance(token, Mapping):
        return {name: token[name] for name in names if name in token}
    return [name for name in token if name in names]


def _stacked(sequences: list[Any], kind: str) -> Any:
    """The rows of all sequences below each other."""
    if is_sparse(sequences[0]):
        return sp.vstack([sp.csr_array(one) for one in sequences], format="csr")
    try:
        arrays = [np.asarray(one) for one in sequences]
        table = np.concatenate(arrays) if len(arrays) > 1 else arrays[0]
    except ValueError as error:
        raise ValueError(f"X: the sequences must all have rows of the same width [{error}].") from error
    wanted = "iu" if kind == "ids" else "iufb"
    if table.dtype.kind not in wanted or table.ndim not in ((1, 2) if kind == "ids" else (2,)):
        raise ValueError(
            f"X must hold {_WORDS[kind]} throughout; together they are an array of shape {table.shape}, {table.dtype}."
        )
    return table.astype(np.int64) if kind == "ids" else table


def _column_rows(rows: SparseRows | Array, columns: Any) -> SparseRows:
    """Some columns as features of pairs of labels."""
    if callable(columns):
        raise ValueError("markov must list columns for ids and matrices; a function needs tokens of text.")
    matrix = (
        sp.csr_array(rows)
        if isinstance(rows, np.ndarray)
        else sp.csr_array((_ones(rows), rows.feature, rows.row), shape=rows.shape)
    )
    chosen = list(columns)
    whole = all(isinstance(one, numbers.Integral) and not isinstance(one, bool) for one in chosen)
    if not whole or not all(0 <= one < rows.shape[1] for one in chosen):
        raise ValueError(f"markov must list columns of X, 0 to {rows.shape[1] - 1}; got {columns!r}.")
    return SparseRows.of(matrix[:, np.array(chosen, dtype=np.int64)])


def _with_bias(rows: SparseRows | Array) -> SparseRows | Array:
    """One feature more, always 1."""
    if isinstance(rows, np.ndarray):
        return np.column_stack([rows, np.ones(rows.shape[0])])
    n = rows.shape[0]
    feature = np.insert(rows.feature, rows.row[1:], rows.width)
    value = None if rows.value is None else np.insert(rows.value, rows.row[1:], 1.0)
    return SparseRows(rows.row + np.arange(n + 1), feature.astype(np.int32), value, rows.width + 1)
