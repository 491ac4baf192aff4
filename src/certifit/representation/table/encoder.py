"""From a table of any kind to a matrix of numbers.

- numeric: (x − mean) / scale, or x; missing values become the median, and a further column says where they were;
- boolean: 0 or 1, then as numeric;
- category: one column of 0 and 1 for each frequent level, or one column of codes 0, 1, 2, …;
- date: days since the first one, year, month, weekday, sine and cosine of the day of the year, hour;
- text: one column for each frequent word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.data.gate import check_sample_weight
from certifit.parameters import (
    Any_,
    Choice,
    Either,
    Fitted,
    Flag,
    Integer,
    OfColumns,
    OneOf,
    Parameter,
    Real,
    check_parameters,
)
from certifit.parameters.docstrings import takes_as
from certifit.representation.basis.columns import input_names, weighted_quantiles
from certifit.representation.basis.summaries import mean_and_deviation
from certifit.representation.table.frames import Columns, OfTables
from certifit.representation.text.presence import frequent_words, presence

__all__ = ["TableEncoder"]

KINDS = ("numeric", "boolean", "category", "date", "text")
NO = frozenset({"no", "false", "n", "f", "off", "0"})
DAY = 86_400e6
YEAR = 365.2425
SPARSE_WIDTH = 200
SPARSE_SHARE = 0.1


class TableEncoder(OfColumns, OfTables, BaseEstimator):
    """A table of numbers, categories, dates and text as a matrix of numbers.

    Frames of pandas, polars and Arrow are taken by the types of their columns, arrays column by column. Learning and
    encoding depend on the content of the rows alone: weight 2 is the row twice.

    Examples
    --------
    >>> import polars as pl
    >>> from certifit import TableEncoder
    >>> frame = pl.DataFrame({"age": [20.0, None, 40.0, 30.0], "job": ["smith", "smith", "cook", None]})
    >>> encoder = TableEncoder(numeric="raw").fit(frame)
    >>> [str(name) for name in encoder.get_feature_names_out()]
    ['age', 'age missing', 'job=cook', 'job=smith', 'job=(missing)']
    >>> encoder.transform(pl.DataFrame({"age": [None, 50.0], "job": ["pilot", "cook"]}))
    array([[30.,  1.,  0.,  0.,  1.],
           [50.,  0.,  1.,  0.,  0.]])
    """

    numeric: str = OneOf(("standard", "raw"), "Numbers with mean zero and variance one, or as they are.")
    categories: str = OneOf(
        ("onehot", "ordinal"),
        "One column of 0 and 1 for each level, or one column of codes (for trees: see `categorical_features_`).",
    )
    missing: str = OneOf(
        ("indicator", "keep"),
        "Missing numbers become the median, and a further column says where they were, if any were missing in training; or "
        "they stay NaN, as trees like it. A missing category has its own column or code, or stays NaN. A level that was not "
        'seen in training counts as "(other)" if there is one, otherwise as missing.',
    )
    min_frequency: float = Parameter(
        0.005,
        Real(0, 1, open_high=True),
        'Levels and words in a smaller share of the rows are pooled as "(other)" (levels) or left out (words).',
    )
    max_levels: int = Parameter(
        50, Integer(1), "At most so many levels of a category; the rarest beyond that are pooled."
    )
    text_features: int = Parameter(200, Integer(1), "At most so many words of a text.")
    kinds: Mapping[Any, str] | None = Parameter(
        None,
        Any_("mapping of column to kind or None", wrong=("text", 3, {"no such column": "numeric"})),
        '"numeric", "boolean", "category", "date" or "text" for columns (by name, or by number in an array) whose type does not '
        "say it.",
    )
    sparse_output: bool | str = Parameter(
        False, Either(Flag(), Choice("auto")), 'A CSR matrix; "auto" if the matrix is wide and nearly empty.'
    )

    columns_: list[dict[str, Any]] = Fitted(
        "list of dict", "What was learned of each column: plain strings, numbers and lists."
    )
    categorical_features_: Array = Fitted(
        "array of bool of shape (n_features_out,)",
        "Which output columns are codes of categories, for ``categorical_features=`` of the trees.",
    )
    sparse_: bool = Fitted("bool", "Whether the output is sparse.")

    @takes_as(Columns)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn medians, moments, levels and words."""
        check_parameters(self)
        table = Columns(self, X, reset=True)
        weight = check_sample_weight(sample_weight, table.height)
        kept = weight > 0
        # A power of two leaves the proportions exact and the sums in range.
        weight = np.ldexp(weight[kept], -int(np.frexp(weight.max())[1]) + 1)
        asked = table.asked(self.kinds, KINDS)
        self.columns_, numbers = [], []
        for j in range(table.width):
            kind = asked.get(j) or table.kind(j)
            if kind in ("category", "text"):
                strings = [value for value, use in zip(table.strings(j), kept, strict=True) if use]
                learned = (
                    self._learn_levels(strings, weight) if kind == "category" else self._learn_words(strings, weight)
                )
            else:
                learned, parts = _learn_numbers(table, j, kind, kept, weight)
                numbers += parts
            self.columns_.append({"kind": kind, **learned})
        self._standardize(numbers, weight)
        self.categorical_features_ = np.array([coded for _, coded in self._layout()], dtype=bool)
        self.sparse_ = self.sparse_output is True or (self.sparse_output == "auto" and self._nearly_empty())
        return self

    def transform(self, X: Any) -> Matrix:
        """The matrix: float64 (float32 if all numbers of X are), dense in column order, or CSR."""
        check_is_fitted(self)
        table = Columns(self, X, reset=False)
        dtype = np.float32 if table.single else np.float64
        if self.sparse_:
            blocks = [sp.csc_array(block) for j in range(table.width) for block in self._encoded(table, j)]
            return sp.csr_array(sp.hstack(blocks, format="csr", dtype=dtype))
        out = np.empty((table.height, self.categorical_features_.shape[0]), dtype=dtype, order="F")
        start = 0
        for j in range(table.width):
            for block in self._encoded(table, j):
                width = block.shape[1]
                out[:, start : start + width] = block.toarray() if is_sparse(block) else block
                start += width
        return out

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the output columns, such as "age", "age missing", "job=smith", "born year", "note: word"."""
        check_is_fitted(self)
        names = input_names(self, input_features)
        used: Counter[str] = Counter()
        out = []
        for (j, suffix), _ in self._layout():
            name = f"{names[j]}{suffix}"
            while used[name]:
                used[name] += 1
                name = f"{name} ({used[name]})"
            used[name] += 1
            out.append(name)
        return np.asarray(out, dtype=object)

    def code_labels(self) -> dict[int, list[str]]:
        """For every output column of codes: what the codes 0, 1, 2, … stand for."""
        check_is_fitted(self)
        coded = [(k, j) for k, ((j, _), is_code) in enumerate(self._layout()) if is_code]
        return {k: self._slots(self.columns_[j]) for k, j in coded}

    # Learning

    def _learn_levels(self, strings: list[str | None], weight: Array) -> dict[str, Any]:
        mass: dict[str | None, float] = {}
        for value, w in zip(strings, weight.tolist(), strict=True):
            mass[value] = mass.get(value, 0.0) + w
        absent = mass.pop(None, 0.0)
        least = self.min_frequency * weight.sum() * (1 - 1e-12)
        ordered = sorted(
            ((name, m) for name, m in mass.items() if name is not None), key=lambda pair: (-pair[1], pair[0])
        )
        levels = [name for name, m in ordered if m >= least]
        if len(levels) > self.max_levels or (len(levels) == self.max_levels < len(ordered)):
            levels = levels[: max(self.max_levels - 1, 1)]
        return {"levels": sorted(levels), "other": len(levels) < len(ordered), "missing": absent > 0}

    def _learn_words(self, strings: list[str | None], weight: Array) -> dict[str, Any]:
        """The words that most texts have, the most frequent first; of equal ones by alphabet."""
        words, each = frequent_words(strings, weight, self.min_frequency, int(self.text_features))
        return {"words": words, "words_each": each}

    def _standardize(self, parts: list[tuple[dict[str, Any], Array]], weight: Array) -> None:
        """Mean and scale of each number, missing ones at the median."""
        if self.numeric == "raw" or not parts:
            return
        for start in range(0, len(parts), 256):  # blocks: a copy of a wide table would not be small
            block = parts[start : start + 256]
            filled = np.column_stack([np.where(np.isnan(values), part["fill"], values) for part, values in block])
            mean, deviation = mean_and_deviation(filled, weight)
            for (part, _), m, d in zip(block, mean, deviation, strict=True):
                part["mean"], part["scale"] = float(m), float(d) if d > 0 else 1.0

    def _nearly_empty(self) -> bool:
        width = self.categorical_features_.shape[0]
        filled = sum(
            column["words_each"] if column["kind"] == "text" else len(column["parts"]) if "parts" in column else 1.0
            for column in self.columns_
        )
        return width >= SPARSE_WIDTH and filled < SPARSE_SHARE * width

    # Encoding

    def _layout(self) -> list[tuple[tuple[int, str], bool]]:
        """Column and suffix of every output column, and whether it holds codes."""
        out: list[tuple[tuple[int, str], bool]] = []
        for j, column in enumerate(self.columns_):
            if column["kind"] == "text":
                out += [((j, f": {word}"), False) for word in column["words"]]
            elif column["kind"] != "category":
                out += [((j, f" {part['what']}" if part["what"] else ""), False) for part in column["parts"]]
                out += [((j, " missing"), False)] if column["missing"] and self.missing == "indicator" else []
            elif self.categories == "ordinal":
                out.append(((j, ""), True))
            else:
                out += [((j, f"={level}"), False) for level in self._slots(column)]
        return out

    def _slots(self, column: dict[str, Any]) -> list[str]:
        """Levels, then the pool of rare ones, then missing."""
        slots = list(column["levels"])
        if column["other"]:
            slots.append("(other)")
        if column["missing"] and self.missing == "indicator":
            slots.append("(missing)")
        return slots

    def _encoded(self, table: Columns, j: int) -> list[Matrix]:
        column = self.columns_[j]
        if column["kind"] == "text":
            return [presence(table.strings(j), column["words"])]
        if column["kind"] != "category":
            return [self._encoded_numbers(table, j)]
        codes = self._codes(table.strings(j), column)
        if self.categories == "ordinal":
            return [codes[:, None]]
        width, rows = len(self._slots(column)), np.flatnonzero(~np.isnan(codes))
        places = codes[rows].astype(np.int64)
        rows, places = rows[places < width], places[places < width]
        return [sp.csc_array((np.ones(rows.shape[0]), (rows, places)), shape=(table.height, width))]

    def _codes(self, strings: list[str | None], column: dict[str, Any]) -> Array:
        """Number of the slot of each value; one never seen goes to the pool of rare ones, or counts as missing."""
        levels = column["levels"]
        place: dict[str | None, float] = {level: float(k) for k, level in enumerate(levels)}
        pool = float(len(levels)) if column["other"] else np.nan
        lost = float(len(levels) + bool(column["other"]))
        if self.missing == "keep":
            place[None] = np.nan
        else:
            place[None] = lost
            pool = lost if np.isnan(pool) else pool
        return np.array([place.get(value, pool) for value in strings])

    def _encoded_numbers(self, table: Columns, j: int) -> Array:
        column = self.columns_[j]
        parts = _parts(table, j, column)
        flag = column["missing"] and self.missing == "indicator"
        out = np.empty((table.height, len(parts) + int(flag)), order="F")
        for k, (part, values) in enumerate(zip(column["parts"], parts, strict=True)):
            if self.missing == "indicator":
                values = np.where(np.isnan(values), part["fill"], values)
            out[:, k] = (values - part["mean"]) / part["scale"] if self.numeric == "standard" else values
        if flag:
            out[:, -1] = np.isnan(parts[0])
        return out


# Numbers, truth values and dates


def _learn_numbers(
    table: Columns, j: int, kind: str, kept: Array, weight: Array
) -> tuple[dict[str, Any], list[tuple[dict[str, Any], Array]]]:
    """What is learned of a column of numbers, truth values or dates, and its parts for the moments."""
    learned: dict[str, Any] = {"kind": kind}
    if kind == "boolean":
        strings = table.strings(j)
        levels = sorted({value for value, use in zip(strings, kept, strict=True) if use and value is not None})
        if len(levels) > 2:
            raise ValueError(f"kinds: column {table.names[j]!r} is no boolean, it has {len(levels)} different values.")
        learned["levels"] = levels[::-1] if len(levels) == 2 and levels[1].lower() in NO else levels
    elif kind == "date":
        moments = table.moments(j)[kept]
        known = moments[~np.isnan(moments)]
        learned["origin"] = float(known.min()) if known.size else 0.0
        learned["clock"] = bool((known % DAY != 0).any())
    parts = [values[kept] for values in _parts(table, j, learned)]
    named = zip(_names(learned), parts, strict=True)
    learned["parts"] = [{"what": what, "fill": _median(values, weight)} for what, values in named]
    learned["missing"] = bool(np.isnan(parts[0]).any())
    return learned, list(zip(learned["parts"], parts, strict=True))


def _names(learned: dict[str, Any]) -> list[str]:
    if learned["kind"] != "date":
        return [""]
    names = ["days", "year", "month", "weekday", "season sine", "season cosine"]
    return [*names, "hour"] if learned["clock"] else names


def _parts(table: Columns, j: int, learned: dict[str, Any]) -> list[Array]:
    """The numbers that stand for the column, NaN where it is missing."""
    if learned["kind"] == "numeric":
        return [table.numbers(j)]
    if learned["kind"] == "boolean":
        place: dict[str | None, float] = {level: float(k) for k, level in enumerate(learned["levels"])}
        return [np.array([place.get(value, np.nan) for value in table.strings(j)])]
    moments = table.moments(j)
    absent = np.isnan(moments)
    stamp = np.where(absent, 0.0, moments).astype(np.int64).astype("datetime64[us]")
    year, day = stamp.astype("datetime64[Y]"), stamp.astype("datetime64[D]")
    month = stamp.astype("datetime64[M]").astype(np.int64) % 12 + 1
    angle = 2 * np.pi * (day - year.astype("datetime64[D]")).astype(np.float64) / YEAR
    weekday = (day.astype(np.int64) + 3) % 7  # 1970-01-01 was a Thursday; Monday is 0
    parts = [
        (moments - learned["origin"]) / DAY,
        year.astype(np.int64) + 1970,
        month,
        weekday,
        np.sin(angle),
        np.cos(angle),
    ]
    if learned["clock"]:
        parts.append((stamp - day.astype("datetime64[us]")).astype(np.float64) / 3600e6)
    return [np.where(absent, np.nan, part) for part in parts]


def _median(values: Array, weight: Array) -> float:
    """The weighted median of what is known; 0 where nothing is."""
    known = ~np.isnan(values)
    if not known.any():
        return 0.0
    values, weight = values[known], weight[known]
    if weight.min() < weight.max():
        return float(weighted_quantiles(values, weight, np.array([0.5]))[0])
    middle = [(values.shape[0] - 1) // 2, values.shape[0] // 2]
    low, high = np.partition(values, middle)[middle]
    return float(low if low == high else 0.5 * low + 0.5 * high)
