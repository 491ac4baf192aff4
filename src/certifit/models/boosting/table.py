"""Tables with columns of text: categories become numbers, the same ones for every later table."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.data.gate import from_arrow
from certifit.data.missing import is_absent

__all__ = ["learn_categories", "numbered"]


def _frame(X: Any) -> Any:
    """A narwhals frame, or None when X is not a data frame."""
    if not hasattr(X, "columns") or not hasattr(X, "__getitem__"):
        return None
    import narwhals as nw

    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        return None


def _is_text(series: Any) -> bool:
    import narwhals as nw

    if series.dtype in (nw.String, nw.Categorical, nw.Enum):
        return True
    if series.dtype != nw.Object:
        return False
    values = series.to_numpy()
    return any(isinstance(value, str) for value in values[:1000])


def _values(series: Any) -> tuple[list[Any], dict[Any, str]]:
    """Values as given, and the label of each of the different ones that is not missing."""
    values = series.to_list()
    return values, {value: str(value) for value in set(values) if not is_absent(value)}


def learn_categories(X: Any) -> tuple[Any, dict[int, Array]]:
    """The frame (Arrow tables made readable) and the sorted labels of its text columns, by column number."""
    X = from_arrow(X)
    frame = _frame(X)
    labels: dict[int, Array] = {}
    if frame is not None:
        for j, series in enumerate(frame.iter_columns()):
            if _is_text(series):
                labels[j] = np.array(sorted(set(_values(series)[1].values())), dtype=str)
    return X, labels


def numbered(X: Any, labels: dict[int, Array]) -> Any:
    """The same frame with category numbers in place of text; unknown and missing labels become NaN."""
    X = from_arrow(X)
    frame = _frame(X) if labels else None
    if frame is None:
        return X
    import narwhals as nw

    columns = list(frame.iter_columns())
    codes: dict[int, Array] = {}
    for j, known in labels.items():
        if j >= len(columns):
            continue  # the check of the number of columns will say so
        if not _is_text(columns[j]):
            # All missing, or numbers where labels were: nothing is known.
            codes[j] = np.full(len(columns[j]), np.nan)
            continue
        listed, names = _values(columns[j])
        number = {label: k for k, label in enumerate(known.tolist())}
        code = {value: number.get(label) for value, label in names.items()}
        codes[j] = np.array([*map(code.get, listed)], dtype=np.float64)  # None becomes NaN
    native = nw.to_native(frame)
    if hasattr(native, "iloc"):  # pandas aligns by index, which codes do not have
        native = native.copy(deep=False)
        for j, values in codes.items():
            native[native.columns[j]] = values
        return native
    backend = nw.get_native_namespace(frame)
    series = [nw.new_series(columns[j].name, values, nw.Float64, backend=backend) for j, values in codes.items()]
    return nw.to_native(frame.with_columns(*series))
