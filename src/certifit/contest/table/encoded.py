"""The training table as numbers: encoded once for each fold and encoding, so that no fold's encoder sees its validation rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from certifit._types import Array, Matrix, is_sparse
from certifit.contest.entrants.base import Encoded
from certifit.contest.search.limits import Budget
from certifit.names import stored
from certifit.representation.table.encoder import TableEncoder

if TYPE_CHECKING:
    import polars as pl

__all__ = ["EncodedRows", "NoColumns", "Training", "encoder_for"]

ENCODINGS: dict[str, dict[str, Any]] = {
    "matrix": {"numeric": "standard", "categories": "onehot", "missing": "indicator"},
    "codes": {"numeric": "raw", "categories": "ordinal", "missing": "keep"},
}
MOST_KEPT = 1.5e9  # bytes of encoded folds kept for the next entrant


@dataclass(frozen=True)
class EncodedRows:
    """A training part, the validation rows as that part's encoder sees them, and the encoder."""

    train: Encoded
    validation: Matrix | None
    encoder: Any


class Training:
    """The rows to learn from: features, target and folds, each part encoded when first asked for."""

    def __init__(
        self, features: pl.DataFrame, y: Array, folds: list[tuple[Array, Array]], kinds: Mapping[str, str]
    ) -> None:
        self.features, self.y, self.folds, self.kinds = features, y, folds, dict(kinds)
        self._kept: OrderedDict[tuple[str, int], EncodedRows] = OrderedDict()

    def whole(self, encoding: str) -> EncodedRows:
        """All training rows."""
        return self._rows(encoding, -1)

    def fold(self, encoding: str, k: int) -> EncodedRows:
        """Fold k: the encoder is fitted on its training rows alone."""
        return self._rows(encoding, k)

    def encode(self, encoding: str, budget: Budget) -> None:
        """Encode all rows and then fold after fold while the budget lasts; folds that it does not last for are given up.

        What an alarm interrupts is lost. A wide table takes seconds to encode, and were it encoded within the time of its
        entrants, every one of them would begin anew and none would end.
        """
        self.whole(encoding)
        for k in range(len(self.folds)):
            if k and budget.left == 0.0:
                self.folds = self.folds[:k]
                break
            self.fold(encoding, k)

    def _rows(self, encoding: str, k: int) -> EncodedRows:
        key = (encoding, k)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        train = self.features if k < 0 else self.features[self.folds[k][0]]
        y = self.y if k < 0 else self.y[self.folds[k][0]]
        encoder = encoder_for(encoding, self.kinds).fit(train)
        found = EncodedRows(
            encoded_by(encoder, train, y),
            None if k < 0 else encoder.transform(self.features[self.folds[k][1]]),
            encoder,
        )
        self._kept[key] = found
        while len(self._kept) > 1 and sum(map(_size, self._kept.values())) > MOST_KEPT:
            self._kept.popitem(last=False)
        return found


@stored("NoColumns")
class NoColumns:
    """An encoder for who does not look at the columns."""

    categorical_features_ = np.zeros(1, dtype=bool)

    def fit(self, features: pl.DataFrame) -> NoColumns:
        """Nothing to learn."""
        return self

    def transform(self, features: pl.DataFrame) -> Array:
        """A zero for every row."""
        return np.zeros((features.height, 1))

    def get_feature_names_out(self) -> Array:
        """One name."""
        return np.array(["nothing"], dtype=object)


def encoder_for(encoding: str, kinds: Mapping[str, str]) -> Any:
    """An unfitted encoder."""
    if encoding == "none":
        return NoColumns()
    return TableEncoder(kinds=dict(kinds), sparse_output="auto", **ENCODINGS[encoding])


def encoded_by(encoder: Any, features: pl.DataFrame, y: Array) -> Encoded:
    """Rows through a fitted encoder."""
    names = tuple(str(name) for name in encoder.get_feature_names_out())
    categorical = tuple(int(j) for j in np.flatnonzero(encoder.categorical_features_))
    return Encoded(encoder.transform(features), y, names, categorical)


def _size(rows: EncodedRows) -> float:
    return _bytes(rows.train.X) + (0.0 if rows.validation is None else _bytes(rows.validation))


def _bytes(X: Matrix) -> float:
    return float(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) if is_sparse(X) else float(np.asarray(X).nbytes)
