"""Naive Bayes on tables: each column with the distribution that suits it, in one model.

P(y = k | x)  ∝  π_k · Π_j P_j(x_j | k),      P_j Gaussian, Bernoulli, categorical, multinomial, Poisson or a kernel density
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from certifit._types import Array
from certifit.data.gate import check_sample_weight
from certifit.models.bayes.naive.factors import FACTORS, Factor
from certifit.models.bayes.naive.model import FIT_PRIOR, SMOOTHING, VAR_SMOOTHING, BaseNaive
from certifit.models.bayes.shares import PRIORS
from certifit.parameters import Any_, Fitted, Parameter, check_parameters
from certifit.representation.table.frames import Columns

__all__ = ["NaiveBayes"]

KINDS = ("gaussian", "bernoulli", "categorical", "multinomial", "poisson", "kernel")


class NaiveBayes(BaseNaive):
    """Naive Bayes for tables of any columns: numbers, yes/no, categories, counts; missing values are left out.

    Columns are taken by their type: text and truth values are categories, numbers Gaussian; `kinds` says otherwise. Columns
    marked "multinomial" share one total, as counts of words do. A category not seen in training is left out of the product.

    Examples
    --------
    >>> import polars as pl
    >>> from certifit import NaiveBayes
    >>> table = pl.DataFrame({"height": [0.3, 0.4, 1.7, None, 1.9], "coat": ["fur", "fur", "skin", "skin", None]})
    >>> model = NaiveBayes().fit(table, ["cat", "cat", "man", "man", "man"])
    >>> model.kinds_, model.predict(pl.DataFrame({"height": [1.75, None], "coat": [None, "fur"]})).tolist()
    (['gaussian', 'categorical'], ['man', 'cat'])
    """

    kinds: Any = Parameter(
        None,
        Any_(
            "str, mapping of column to str, or sequence of str",
            wrong=("no such kind", 3, {"no such column": "gaussian"}, ["gaussian"] * 99),
        ),
        'Distribution of all columns, of some by name or number, or of each: "gaussian", "bernoulli", "categorical", '
        '"multinomial", "poisson" or "kernel". None goes by the types of the columns.',
    )
    alpha: float = SMOOTHING
    var_smoothing: float = VAR_SMOOTHING
    fit_prior: bool = FIT_PRIOR
    priors: Any = PRIORS

    kinds_: list[str] = Fitted("list of str", "The distribution of each column.")
    levels_: dict[int, list[str]] = Fitted("dict of int to list", "Categories of each categorical column, by number.")

    def _checked(self, X: Any, y: Any, sample_weight: Any, more: bool = False) -> tuple[Any, Array, Array]:
        check_parameters(self)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: give the labels."
            )
        table = Columns(self, X, reset=not more)
        y = column_or_1d(y, warn=True)
        if y.shape[0] != table.height:
            raise ValueError(
                f"X and y must have the same number of rows: X has {table.height}, y has {y.shape[0]}. "
                "Found input variables with inconsistent numbers of samples."
            )
        check_classification_targets(y)
        weight = check_sample_weight(sample_weight, table.height)
        kept = weight > 0
        if not more:
            self.kinds_ = self._kinds(table)
            self.levels_ = {}
        parts = self._matrices(table, learn=kept)
        return [part[kept] for part in parts], y[kept], weight[kept]

    def _kinds(self, table: Columns) -> list[str]:
        """The distribution of every column; raises on unknown columns and distributions."""
        d, given = table.width, self.kinds
        natural = [
            "gaussian" if table.natural(j) == "number" and not table.truth(j) else "categorical" for j in range(d)
        ]
        if given is None:
            return natural
        if isinstance(given, str):
            kinds = [given] * d
        elif isinstance(given, Mapping):
            number = {name: j for j, name in enumerate(table.names)}
            kinds = list(natural)
            for column, kind in given.items():
                j = number.get(column, -1) if isinstance(column, str) else column
                if isinstance(j, bool) or not isinstance(j, (int, np.integer)) or not 0 <= j < d:
                    raise ValueError(
                        f"kinds names the column {column!r}, which X does not have. Its columns: {table.names[:20]!r}."
                    )
                kinds[int(j)] = kind
        else:
            kinds = list(given) if isinstance(given, (list, tuple, np.ndarray)) else []
            if len(kinds) != d:
                raise ValueError(f"kinds must be a name, a mapping, or {d} names, one for each column; got {given!r}.")
        wrong = [kind for kind in kinds if kind not in KINDS]
        if wrong:
            raise ValueError(f"kinds must be among {', '.join(map(repr, KINDS))}; got {wrong[0]!r}.")
        return [str(kind) for kind in kinds]

    @property
    def _groups(self) -> list[tuple[str, list[int]]]:
        """Columns by distribution, each distribution a factor."""
        groups = {kind: [j for j, own in enumerate(self.kinds_) if own == kind] for kind in KINDS}
        return [(kind, columns) for kind, columns in groups.items() if columns]

    def _matrices(self, table: Columns, learn: Array | None = None) -> list[Array]:
        """The columns of each factor as a matrix; with `learn`, categories of those rows are numbered."""
        parts = []
        for kind, columns in self._groups:
            if kind == "categorical":
                part = np.column_stack([self._codes(table, j, learn) for j in columns])
            else:
                part = np.column_stack([table.numbers(j) for j in columns])
                self._check_kind(kind, part, [table.names[j] for j in columns])
            parts.append(part)
        return parts

    def _codes(self, table: Columns, j: int, learn: Array | None) -> Array:
        """Numbers of the categories of a column; −1 is missing or unknown."""
        codes, labels = table.levels(j)
        if learn is not None:
            seen = {labels[code] for code in np.unique(codes[learn]) if code >= 0}
            self.levels_[j] = self.levels_.get(j, []) + sorted(seen - set(self.levels_.get(j, [])))
        number = {label: code for code, label in enumerate(self.levels_[j])}
        known = np.array([number.get(label, -1) for label in labels] + [-1], dtype=np.int64)
        return np.asarray(known[codes])  # −1 is the last

    @staticmethod
    def _check_kind(kind: str, part: Array, names: list[str]) -> None:
        """Counts are not negative, and yes/no is 0 or 1."""
        if kind in ("multinomial", "poisson"):
            bad = np.flatnonzero(np.nanmin(np.where(np.isnan(part), 0.0, part), axis=0, initial=0.0) < 0)
            wanted = "counts must be >= 0"
        elif kind == "bernoulli":
            bad = np.flatnonzero((~np.isnan(part) & (part != 0.0) & (part != 1.0)).any(axis=0))
            wanted = "yes/no must be 0 or 1"
        else:
            return
        if bad.size:
            raise ValueError(f"X: column {names[int(bad[0])]!r} is taken as {kind}, but holds other values: {wanted}.")

    def _check_values(self, X: Any) -> None:
        """Columns were checked one by one."""

    def _learn(self, X: Any, group: Array, weight: Array, K: int) -> list[Factor]:
        found = []
        for (kind, columns), part in zip(self._groups, X, strict=True):
            if kind == "categorical":
                sizes = np.array([len(self.levels_[j]) for j in columns])
                found.append(FACTORS[kind].of(part, group, weight, K, sizes))
            else:
                found.append(FACTORS[kind].of(part, group, weight, K))
        return found

    def _smoothing_of(self, factor: Factor) -> float:
        name = type(factor).__name__
        return {"Gaussian": float(self.var_smoothing), "KernelFactor": 1e-3}.get(name, float(self.alpha))

    def _rows(self, X: Any) -> tuple[list[Any], Any]:
        check_is_fitted(self, "classes_")
        table = Columns(self, X, reset=False)
        return self._matrices(table), np.float32 if table.single else np.float64

    def _ordered(self, names: list[str]) -> list[str]:
        return [names[j] for _, columns in self._groups for j in columns]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
