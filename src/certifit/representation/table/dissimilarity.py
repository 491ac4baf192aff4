"""How far two rows of a mixed table are from each other: a weighted mean of how far they are in each column.

    d(x, z) = Σ_j w_j d_j(x_j, z_j) / Σ_j w_j        over the columns that both rows have (Gower 1971)

number, date    |x_j − z_j| / (largest − smallest)
category        0 if equal, 1 otherwise; truth values are such
text            1 − (words of both) / (words of either)

Of complete rows √d is a Euclidean distance but for text: there are points that are exactly so far from each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix
from certifit.data.gate import check_real
from certifit.parameters import Any_, Fitted, Flag, OfColumns, OneOf, Parameter, check_parameters
from certifit.parameters.common import N_JOBS
from certifit.parameters.docstrings import takes_as
from certifit.representation.design.blocks import row_blocks
from certifit.representation.design.rows import over_rows
from certifit.representation.table.frames import Columns, OfTables
from certifit.representation.text.presence import frequent_words, presence
from certifit.threads import n_threads

__all__ = ["Dissimilarity"]

KINDS = ("numeric", "boolean", "category", "date", "text")
WORDS = 1000
FEW = 2000  # rows whose texts tell the mean distance of a column of text


class Dissimilarity(OfColumns, ClassNamePrefixFeaturesOutMixin, OfTables, BaseEstimator):
    """Dissimilarities of the rows of a table of numbers, categories, dates and text, as Gower has them.

    `transform` gives those of rows to the rows of the fit, which is what ``metric="precomputed"`` takes everywhere.

    Examples
    --------
    >>> import polars as pl
    >>> from certifit import Dissimilarity
    >>> frame = pl.DataFrame({"age": [20.0, None, 40.0, 30.0], "job": ["smith", "smith", "cook", "cook"]})
    >>> Dissimilarity().fit_transform(frame)
    array([[0.  , 0.  , 1.  , 0.75],
           [0.  , 0.  , 1.  , 1.  ],
           [1.  , 1.  , 0.  , 0.25],
           [0.75, 1.  , 0.25, 0.  ]])
    >>> Dissimilarity(weights={"age": 3.0}).fit_transform(frame)[0]
    array([0.   , 0.   , 1.   , 0.625])
    """

    weights: Mapping[Any, float] | None = Parameter(
        None,
        Any_("mapping of column to float ≥ 0 or None", wrong=("text", 3, {"no such column": 1.0})),
        "Weights of columns, by name or number; those not named have 1.",
    )
    scale: str = OneOf(
        ("range", "mean"),
        'Whether distances in a column are shares of its range, as Gower has them, or also divided by their mean ("mean"), so '
        "that every column counts the same on average.",
    )
    missing: str = OneOf(
        ("omit", "level"),
        "What is missing leaves the verdict to the other columns (rows with none in common are as far as rows are on average), "
        "or is a value of its own, as far from others as values can be.",
    )
    root: bool = Parameter(False, Flag(), "Whether to take √d, a Euclidean distance.")
    kinds: Mapping[Any, str] | None = Parameter(
        None,
        Any_("mapping of column to kind or None", wrong=("text", 3, {"no such column": "numeric"})),
        '"numeric", "boolean", "category", "date" or "text" for columns (by name or number) whose type does not say it.',
    )
    n_jobs: int | None = N_JOBS

    columns_: list[dict[str, Any]] = Fitted("list of dict", "What was learned of each column.")
    rows_: Array = Fitted("array of shape (n_samples, n_features)", "The rows of the fit as numbers; NaN is missing.")

    most_rows = (
        15_000  # of all pairs of which dissimilarities should be asked; `fit` and `transform` of few take any number
    )

    output_of_rows = True  # the columns of the output are the rows of the fit

    @takes_as(Columns)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn ranges, levels and words, and keep the rows."""
        check_parameters(self)
        table = Columns(self, X, reset=True)
        asked, weight = table.asked(self.kinds, KINDS), self._weights(table)
        self.columns_ = [_learned(table, j, asked.get(j) or table.kind(j)) for j in range(table.width)]
        self._single = table.single
        self.rows_, self._words = self._coded(table)
        for j, column in enumerate(self.columns_):
            column["weight"] = float(weight[j])
            column["mean"] = self._mean(j)
            column["unit"] = (column["mean"] or 1.0) if self.scale == "mean" else 1.0
        return self

    def transform(self, X: Any) -> Array:
        """Dissimilarity of each row to each row of the fit, shape (m, n_samples)."""
        check_is_fitted(self, "rows_")
        table = Columns(self, X, reset=False)
        kind = np.float32 if self._single and table.single else np.float64
        out = np.empty((table.height, self.rows_.shape[0]), dtype=kind)
        self._over_blocks(table, out.__setitem__)
        return out

    def by_blocks(self, X: Any, use: Callable[[slice, Array], Any]) -> None:
        """Hand the rows of `transform` to `use`, some at a time: where they are, and their dissimilarities.

        For a table of so many rows that the whole matrix would fill the memory.

        Parameters
        ----------
        X : data frame or array of shape (m, n_features)
            The table.
        use : function of a slice and an array
            Called once for each block, in any order, from several threads.
        """
        check_is_fitted(self, "rows_")
        self._over_blocks(Columns(self, X, reset=False), use)

    def _over_blocks(self, table: Columns, use: Callable[[slice, Array], Any]) -> None:
        rows, words = self._coded(table)

        def chunk(part: slice) -> None:
            for block in row_blocks(part, self.rows_.shape[0]):
                found = self._between(rows[block], {j: texts[block] for j, texts in words.items()})
                use(block, np.sqrt(found, out=found) if self.root else found)

        over_rows(chunk, rows.shape[0], self.rows_.shape[0], n_threads(self.n_jobs))

    @property
    def _n_features_out(self) -> int:
        return int(self.rows_.shape[0])

    def _weights(self, table: Columns) -> Array:
        """The weight of each column."""
        if self.weights is not None and not isinstance(self.weights, Mapping):
            raise TypeError(f"weights must map columns to numbers; got {self.weights!r}.")
        weight = np.ones(table.width)
        for column, value in (self.weights or {}).items():
            check_real(f"weights[{column!r}]", value, low=0.0, high=np.finfo(np.float64).max)
            weight[table.number_of(column, "weights")] = value
        if not weight.any():
            raise ValueError("weights must be positive for one column at least: all of them are 0.")
        return weight / weight.max()

    def _coded(self, table: Columns) -> tuple[Array, dict[int, Matrix]]:
        """Rows as numbers whose differences count, NaN where missing, and the words of the columns of text."""
        rows, words = np.empty((table.height, table.width)), {}
        for j, column in enumerate(self.columns_):
            if column["kind"] in ("numeric", "date"):
                values = table.numbers(j) if column["kind"] == "numeric" else table.moments(j)
                rows[:, j] = (np.ldexp(values, -column["exponent"]) - column["low"]) / column["range"]
            else:
                strings = table.strings(j)
                if column["kind"] == "text":
                    words[j] = presence(strings, column["words"])
                    rows[:, j] = [np.nan if text is None else 0.0 for text in strings]
                else:
                    place: dict[str | None, float] = {level: float(k) for k, level in enumerate(column["levels"])}
                    place[None] = np.nan
                    rows[:, j] = [place.get(value, -1.0) for value in strings]  # unlike every row of the fit
        return rows, words

    def _between(self, rows: Array, words: dict[int, Matrix]) -> Array:
        """Dissimilarities of some rows to those of the fit."""
        lost, known = np.isnan(rows), np.isnan(self.rows_)
        weight = np.array([column["weight"] for column in self.columns_])
        share = weight / [column["unit"] for column in self.columns_]
        number = np.array([column["kind"] in ("numeric", "date") for column in self.columns_])
        plain = number & ~lost.any(axis=0) & ~known.any(axis=0)
        total = cdist(rows[:, plain] * share[plain], self.rows_[:, plain] * share[plain], "cityblock")
        absent = np.zeros_like(total)  # weight of the columns that say nothing about a pair
        for j in np.flatnonzero(~plain).tolist():
            gone, which = lost[:, j], np.arange(rows.shape[0])
            if j in words:
                part = _of_words(words[j], self._words[j])
            else:  # equal values are equally far
                values, which = np.unique(rows[:, j], return_inverse=True)
                gone, other = np.isnan(values), self.rows_[:, j]
                apart = np.subtract if number[j] else np.not_equal
                part = np.abs(apart.outer(values, other), dtype=np.float64)
            unknown = np.logical_or.outer(gone, known[:, j])
            if self.missing == "level":
                part[unknown] = 1.0
                part[np.ix_(gone, known[:, j])] = 0.0
            elif unknown.any():
                part[unknown] = 0.0
                absent += (weight[j] * unknown)[which]
            total += (share[j] * part)[which]
        told = weight.sum() - absent
        # Of rows with no column in common nothing is known: they are as far as two rows are on average.
        silent = told <= 1e-12 * weight.sum()
        total[silent] = share @ [column["mean"] for column in self.columns_]
        told[silent] = weight.sum()
        return np.asarray(total / told)

    def _mean(self, j: int) -> float:
        """Mean distance of two rows that both have the column."""
        values = self.rows_[:, j]
        values = values[~np.isnan(values)]
        n = values.shape[0]
        if n < 2:
            return 0.0
        kind = self.columns_[j]["kind"]
        if kind == "text":
            some = self._words[j][:: max(1, self.rows_.shape[0] // FEW)]
            return float(_of_words(some, some).sum()) / max(1, some.shape[0] * (some.shape[0] - 1))
        if kind in ("numeric", "date"):
            return float((2.0 * np.arange(n) - n + 1) @ np.sort(values)) * 2.0 / (n * (n - 1.0))
        return float(n * n - (np.unique(values, return_counts=True)[1] ** 2.0).sum()) / (n * (n - 1.0))


def _learned(table: Columns, j: int, kind: str) -> dict[str, Any]:
    """Range, levels or words of a column."""
    if kind == "text":
        return {"kind": kind, "words": frequent_words(table.strings(j), np.ones(table.height), 0.0, WORDS)[0]}
    if kind in ("category", "boolean"):
        return {"kind": kind, "levels": sorted({value for value in table.strings(j) if value is not None})}
    values = table.numbers(j) if kind == "numeric" else table.moments(j)
    values = values[~np.isnan(values)]
    exponent = int(np.frexp(np.abs(values).max(initial=0.0))[1]) + 1  # a power of two, so that no difference overflows
    values = np.ldexp(values, -exponent)
    low = float(values.min(initial=np.inf)) if values.size else 0.0
    extent = float(values.max(initial=-np.inf)) - low if values.size else 0.0
    return {"kind": kind, "exponent": exponent, "low": low, "range": extent or 1.0}


def _of_words(left: Matrix, right: Matrix) -> Array:
    """1 − |A ∩ B| / |A ∪ B| of the words of texts; texts without words are alike."""
    both = np.asarray((left @ right.T).toarray())
    either = np.asarray(left.sum(axis=1)).reshape(-1, 1) + np.asarray(right.sum(axis=1)).reshape(1, -1) - both
    return np.asarray(1.0 - np.where(either > 0, both / np.where(either > 0, either, 1.0), 1.0))
