"""TableRows and columns of X, whether it is an array, a sparse matrix or a data frame.

What permutation importance and partial dependence need of a table: some rows, with one column taken from other rows. A
column's type never changes on the way, so that a fitted pipeline sees what it was fitted on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit._types import Array, is_sparse
from certifit.data.missing import is_absent
from certifit.data.sparse import check_sparse

__all__ = ["TableRows"]


class TableRows:
    """X behind one small interface; `names` are column names of a frame and column numbers of an array."""

    def __init__(self, X: Any) -> None:
        self._frame: Any = None
        if is_sparse(X):
            check_sparse(X)
            self._array: Any = X.tocsr()
        elif isinstance(X, np.ndarray):
            self._array = X
        else:
            import narwhals as nw  # on demand: arrays do not need it

            found = nw.from_native(X, eager_only=True, pass_through=True)
            if isinstance(found, nw.DataFrame):
                self._frame = found
                self.n = int(found.shape[0])
                self.names: list[Any] = list(found.columns)
                return
            self._array = np.asarray(X)
        if self._array.ndim != 2:
            raise ValueError(f"X must be two-dimensional, rows by columns; got shape {self._array.shape}.")
        self.n = int(self._array.shape[0])
        self.names = list(range(self._array.shape[1]))

    def check_name(self, feature: Any) -> Any:
        """The feature, if X has it."""
        if isinstance(feature, (np.integer, np.str_)):
            feature = feature.item()
        if not isinstance(feature, bool) and feature in self.names:
            return feature
        shown = ", ".join(map(repr, self.names[:10])) + (", …" if len(self.names) > 10 else "")
        raise ValueError(f"X has no column {feature!r}; its columns are {shown}.")

    def take(self, rows: Array) -> Any:
        """X with these rows, of X's own type."""
        if self._frame is not None:
            return self._frame[np.asarray(rows), :].to_native()
        return self._array[rows]

    def mixed(self, rows: Array, name: Any, source: Array) -> Any:
        """These rows, with the column `name` taken from the rows `source`."""
        if self._frame is not None:
            column = self._frame.get_column(name)[np.asarray(source)].alias(name)
            return self._frame[np.asarray(rows), :].with_columns(column).to_native()
        if is_sparse(self._array):
            return _spliced(self._array[rows], name, self._array[source][:, [name]])
        taken = self._array[rows]  # indexing by an array copies
        taken[:, name] = self._array[source, name]
        return taken

    def with_values(self, rows: Array, name: Any, values: Array) -> Any:
        """These rows, with other values in the column `name`."""
        if self._frame is not None:
            import narwhals as nw

            kept = self._frame.get_column(name)
            column = nw.new_series(name, values, backend=self._frame.implementation)
            numeric = kept.dtype.is_numeric() and column.dtype.is_numeric()
            fractions = kept.dtype.is_integer() and (np.asarray(values) % 1 != 0).any() if numeric else False
            if column.dtype != kept.dtype and not fractions:
                column = column.cast(kept.dtype)
            return self._frame[np.asarray(rows), :].with_columns(column).to_native()
        taken = self._array[rows]
        if is_sparse(taken):
            return _spliced(taken, name, sp.csr_matrix(np.asarray(values, dtype=np.float64)[:, None]))
        if taken.dtype.kind in "biuf":
            taken = taken.astype(np.result_type(taken.dtype, np.asarray(values).dtype))
        taken[:, name] = values
        return taken

    def kind(self, name: Any) -> str:
        """``"numeric"``, ``"date"`` or ``"category"``."""
        if self._frame is not None:
            dtype = self._frame.get_column(name).dtype
            return "numeric" if dtype.is_numeric() else "date" if dtype.is_temporal() else "category"
        values = self.column(name)
        if values.dtype.kind in "iuf":
            return "numeric"
        if values.dtype.kind == "M":
            return "date"
        if values.dtype == object:
            present = [v for v in values.tolist() if not is_absent(v)]
            if present and all(isinstance(v, (int, float, np.number)) and not isinstance(v, bool) for v in present):
                return "numeric"
        return "category"

    def column(self, name: Any) -> Array:
        """The values of a column as an array."""
        if self._frame is not None:
            return np.asarray(self._frame.get_column(name).to_numpy())
        if is_sparse(self._array):
            return np.asarray(self._array[:, [name]].toarray()[:, 0])
        return np.asarray(self._array[:, name])

    def present(self, name: Any) -> Array:
        """Numbers of the rows whose value in the column is not missing."""
        values = self.column(name)
        if values.dtype.kind == "f":
            return np.flatnonzero(~np.isnan(values))
        if values.dtype.kind == "M":
            return np.flatnonzero(~np.isnat(values))
        if values.dtype == object:
            return np.flatnonzero([not is_absent(v) for v in values.tolist()])
        return np.arange(values.shape[0])

    def plain(self, name: Any, rows: Array) -> list[Any]:
        """Python values of a column at some rows."""
        if self._frame is not None:
            return list(self._frame.get_column(name)[np.asarray(rows)].to_list())
        return list(self.column(name)[rows].tolist())

    def numeric(self) -> tuple[Array, list[Any]]:
        """The numeric columns as a float64 matrix, and their names."""
        if self._frame is None and not is_sparse(self._array) and self._array.dtype.kind in "biuf":
            return self._array.astype(np.float64), self.names
        names = [name for name in self.names if self.kind(name) == "numeric"]
        columns = [self.column(name).astype(np.float64) for name in names]
        return (np.column_stack(columns) if columns else np.empty((self.n, 0))), names


def _spliced(taken: Any, name: int, column: Any) -> Any:
    """A sparse matrix with one column replaced."""
    parts: list[Any] = [taken[:, :name], column, taken[:, name + 1 :]]
    return sp.csr_matrix(sp.hstack(parts))
