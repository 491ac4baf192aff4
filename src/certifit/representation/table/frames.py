"""One view on tables of every make: data frames, arrays of numbers, arrays of objects; column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from certifit._types import Array, is_sparse
from certifit.base import KeepsPrecision
from certifit.data.gate import check_choice, check_x, from_arrow
from certifit.data.missing import is_absent
from certifit.representation.text.reading import words_of

__all__ = ["Columns", "OfTables"]

CURE = "replace infinite values, or mark them as missing"


class OfTables(KeepsPrecision):
    """A transformer of tables: numbers, words, categories, and holes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


class Columns:
    """The columns of a table, each as numbers, as strings or as moments, whichever is asked for.

    Parameters
    ----------
    X : data frame or array of shape (n_samples, n_features)
        The table.
    """

    def __init__(self, estimator: Any, X: Any, reset: bool) -> None:
        X = from_arrow(X)
        self.frame: list[Any] | None = _series(X)
        self.array: Array = np.empty((0, 0))
        if self.frame is not None:
            validate_data(estimator, X, reset=reset, skip_check_array=True)
            self.width, self.height = len(self.frame), len(self.frame[0]) if self.frame else 0
            if not self.width or not self.height:
                raise ValueError(
                    f"Found array with {self.height} sample(s) and {self.width} feature(s) (shape="
                    f"({self.height}, {self.width})) while a minimum of 1 is required: give rows and columns."
                )
        else:
            self.array = _mixed(estimator, X, reset)
            self.height, self.width = self.array.shape
        names = getattr(estimator, "feature_names_in_", None)
        self.names = [str(name) for name in names] if names is not None else [f"x{j}" for j in range(self.width)]
        # The first of equal names, as a list would find it; ten thousand columns are asked for by name.
        self._places = {name: j for j, name in reversed(list(enumerate(self.names)))}

    @property
    def single(self) -> bool:
        """Whether all that is fractional comes in single precision."""
        if self.frame is None:
            return self.array.dtype == np.float32
        import narwhals as nw

        floats = [s.dtype for s in self.frame if s.dtype.is_numeric() and s.dtype.is_float()]
        return bool(floats) and all(kind == nw.Float32 for kind in floats)

    def natural(self, j: int) -> str:
        """What the column is by its type: "number", "string" or "date"."""
        if self.frame is None:
            return "number" if self.array.dtype.kind == "f" or _all_numbers(self.array[:, j]) else "string"
        import narwhals as nw

        kind = self.frame[j].dtype
        if kind.is_numeric() or kind == nw.Boolean:
            return "number"
        if kind in (nw.Datetime, nw.Date):
            return "date"
        if kind == nw.Object and _all_numbers(np.asarray(self.frame[j].to_list(), dtype=object)):
            return "number"
        return "string"

    def kind(self, j: int) -> str:
        """What the column is by its values: "numeric", "date", "category" or "text"."""
        natural = self.natural(j)
        if natural != "string":
            return "numeric" if natural == "number" else "date"
        # Judged by the distinct values: how often a row is repeated must not matter.
        distinct = sorted({value for value in self.strings(j) if value is not None})
        if len(distinct) <= 20:
            return "category"
        sample = distinct[:: max(1, len(distinct) // 1000)]
        return "text" if np.mean([len(words_of(value)) for value in sample]) >= 4 else "category"

    def asked(self, kinds: Mapping[Any, str] | None, known: Sequence[str]) -> dict[int, str]:
        """The kinds that a user gives to columns, by name or number, by number of the column."""
        if kinds is not None and not isinstance(kinds, Mapping):
            raise TypeError(f"kinds must map columns to kinds; got {kinds!r}.")
        for kind in (kinds or {}).values():
            check_choice("kinds", kind, known)
        return {self.number_of(column, "kinds"): kind for column, kind in (kinds or {}).items()}

    def number_of(self, column: Any, argument: str) -> int:
        """The number of a column that an argument names, or gives by number."""
        j = self._places.get(column, column) if isinstance(column, str) else column
        if isinstance(j, bool) or not isinstance(j, (int, np.integer)) or not 0 <= j < self.width:
            raise ValueError(f"{argument} names {column!r}, which is not a column of X.")
        return int(j)

    def truth(self, j: int) -> bool:
        """Whether the column holds truth values by its type."""
        if self.frame is None:
            return False
        import narwhals as nw

        return bool(self.frame[j].dtype == nw.Boolean)

    def numbers(self, j: int) -> Array:
        """The column as float64, NaN where missing; an error names what is not a number."""
        if self.frame is None:
            values = self.array[:, j]
            numbers = values.astype(np.float64) if values.dtype.kind == "f" else self._read(values, j)
        else:
            import narwhals as nw

            series = self.frame[j]
            if series.dtype.is_numeric() or series.dtype == nw.Boolean:
                # Wide tables spend their time here: what is complete and of the right type is taken as it is.
                cast = series if series.dtype == nw.Float64 else series.cast(nw.Float64)
                filled = cast.fill_null(float("nan")) if cast.null_count() else cast
                numbers = np.array(filled.to_numpy(), dtype=np.float64)
            elif series.dtype in (nw.Datetime, nw.Date):
                raise ValueError(f"X: column {self.names[j]!r} holds dates where numbers are expected.")
            else:
                numbers = self._read(series.to_list(), j)
        if np.isinf(numbers).any():
            raise ValueError(f"Input X contains infinity in column {self.names[j]!r}: {CURE}.")
        return numbers

    def strings(self, j: int) -> list[str | None]:
        """The column as strings, None where missing; whole numbers without a decimal point."""
        if self.frame is None:
            return [None if is_absent(v) else _label(v) for v in self.array[:, j]]
        values = self.frame[j].to_list()
        if all(type(v) is str or v is None for v in values):
            return list(values)
        return [None if is_absent(v) else _label(v) for v in values]

    def levels(self, j: int) -> tuple[Array, list[str]]:
        """The column as numbers of its distinct strings, −1 where missing, and the strings."""
        if self.frame is None and self.array.dtype.kind == "f":  # few distinct numbers become strings, not every row
            values = self.array[:, j]
            known = ~np.isnan(values)
            distinct, which = np.unique(values[known], return_inverse=True)
            codes = np.full(values.shape[0], -1, dtype=np.int64)
            codes[known] = which
            return codes, [_label(value) for value in distinct]
        number: dict[str, int] = {}
        labels = self.strings(j)
        found = [-1 if label is None else number.setdefault(label, len(number)) for label in labels]
        return np.array(found, dtype=np.int64), list(number)

    def moments(self, j: int) -> Array:
        """The column as microseconds since 1970, float64, NaN where missing."""
        if self.frame is not None:
            import narwhals as nw

            series = self.frame[j]
            if series.dtype in (nw.Datetime, nw.Date):
                if getattr(series.dtype, "time_zone", None) is not None:
                    series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
                moments = series.cast(nw.Datetime("us")).dt.timestamp("us").cast(nw.Float64)
                return np.array(moments.fill_null(float("nan")).to_numpy(), dtype=np.float64)
            values: Any = series.to_list()
        else:
            values = self.array[:, j]
        try:
            stamps = np.array(
                [None if is_absent(v) else np.datetime64(v, "us") for v in values], dtype="datetime64[us]"
            )
        except (TypeError, ValueError) as error:
            raise ValueError(f"X: column {self.names[j]!r} holds {error}, where dates are expected.") from None
        return np.where(np.isnat(stamps), np.nan, stamps.astype(np.int64).astype(np.float64))

    def _read(self, values: Any, j: int) -> Array:
        out = np.empty(len(values))
        for i, value in enumerate(values):
            try:
                out[i] = np.nan if is_absent(value) else float(value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"X: column {self.names[j]!r} holds {value!r} where numbers are expected: clean the column, or "
                    f"fit again with kinds={{{self.names[j]!r}: 'category'}}."
                ) from None
        return out


def _series(X: Any) -> list[Any] | None:
    """The columns of a data frame, or None when X is not one."""
    if not hasattr(X, "columns") or not hasattr(X, "__getitem__"):
        return None
    import narwhals as nw

    try:
        return list(nw.from_native(X, eager_only=True).iter_columns())
    except TypeError:
        return None


def _mixed(estimator: Any, X: Any, reset: bool) -> Array:
    """An array: numbers if all of it is numeric, otherwise objects."""
    if not is_sparse(X) and not isinstance(X, np.ndarray):
        probe = np.asarray(X)
        X = np.array(X, dtype=object) if probe.dtype.kind in "USO" else probe
    if is_sparse(X) or X.dtype.kind not in "OUS" or X.ndim != 2 or _all_numbers(X.ravel()):
        return np.asarray(check_x(estimator, X, reset=reset, accept_sparse=False, allow_nan=True))
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    checked = check_array(X, dtype=object, ensure_all_finite=False, input_name="X")
    return np.asarray(checked)


def _all_numbers(values: Array) -> bool:
    try:
        np.asarray(values).astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _label(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
