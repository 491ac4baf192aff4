"""Ensembles of learners that know categories: text becomes codes once, and every learner is told which columns hold them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.data.gate import check_x, check_xy
from certifit.models.tree.growing import Categories
from certifit.parameters import check_parameters

__all__ = ["TakesCategories"]


class TakesCategories:
    """Rows of an ensemble whose learner, `_inner()`, may have `categorical_features`: codes stand in for its categories."""

    _inner: Any
    _coding: Categories | None
    feature_names_in_: Array
    _formats: ClassVar[tuple[str, ...]] = ("csr",)
    """Formats in which sparse rows are handed to the learners; others become the first."""

    def _read_rows_and_target(
        self, X: Any, y: Any, sample_weight: Any, *, numeric: bool
    ) -> tuple[Matrix, Array, Array]:
        """The rows of a fit."""
        check_parameters(self)
        given = self._categories_of_learner()
        self._coding, table = (None, X) if given is None else Categories.fit(self, X, given)
        names = getattr(self, "feature_names_in_", None)
        table, y, weight = check_xy(self, table, y, sample_weight=sample_weight, allow_nan=True, numeric_target=numeric)
        if self._coding is not None and names is not None:
            self.feature_names_in_ = names  # codes have none
        return self._formatted(table), y, weight

    def _formatted(self, table: Matrix) -> Matrix:
        return table.asformat(self._formats[0]) if is_sparse(table) and table.format not in self._formats else table

    def _read_new(self, X: Any) -> Matrix:
        """New rows, in the same codes; what is missing stays missing."""
        check_is_fitted(self)
        coding = getattr(self, "_coding", None)  # models of older files have none
        table = check_x(self, X, reset=False, allow_nan=True) if coding is None else coding.coded(self, X)
        return self._formatted(table)

    def _categories_of_learner(self) -> Any:
        learner = self._inner()
        return learner.get_params(deep=False).get("categorical_features") if hasattr(learner, "get_params") else None

    def _told(self, learner: Any, columns: Array | None = None) -> Any:
        """A fresh learner that knows which of its columns (all, if not given) hold codes."""
        if self._coding is not None:
            own = self._coding.columns if columns is None else np.flatnonzero(np.isin(columns, self._coding.columns))
            learner.set_params(categorical_features=[int(j) for j in own] or None)
        return learner
