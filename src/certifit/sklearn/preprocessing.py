"""``sklearn.preprocessing``, as far as Certifit has it: monomials of the columns."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.preprocessing as theirs
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.representation.basis import monomials as ours
from certifit.sklearn.asking import Alone
from certifit.sklearn.translation import By, Data, Same, Table

__all__ = ["PolynomialFeatures"]


def _degrees(value: Any) -> tuple[int, int]:
    """Least and greatest degree; raises in scikit-learn's words."""
    pair: Any = (0, value) if isinstance(value, numbers.Integral) else value
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ValueError(f"degree must be a non-negative int or tuple (min_degree, max_degree), got {value}.")
    least, most = pair
    if not all(isinstance(one, numbers.Integral) for one in (least, most)) or not 0 <= least <= most:
        raise ValueError(
            f"degree=(min_degree, max_degree) must be non-negative integers that fulfil min_degree <= max_degree, got {value}."
        )
    return int(least), int(most)


def _degree(value: Any, data: Data) -> int:
    """Ours begin at degree 1; what is less than the least, or more than a greatest of 0, is left out afterwards."""
    most = _degrees(value)[1]
    if most == 0 and not data.estimator.include_bias:
        raise ValueError(
            "Setting degree to zero and include_bias to False would result in an empty output array: one of them must change."
        )
    return max(most, 1)


class PolynomialFeatures(Alone, theirs.PolynomialFeatures):
    """All monomials of the columns up to a degree."""

    _ours = ours.PolynomialFeatures
    _table: ClassVar[Table] = {
        "degree": By(_degree, "the same; monomials of less than the least degree are left out"),
        "interaction_only": Same(),
        "include_bias": Same(),
        "order": Same(),
    }

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        (least, most), first = _degrees(self.degree), int(self.include_bias)
        kept: Any = slice(None)
        if least > 1 or most == 0:
            degrees = model.powers_[first:].sum(axis=1)
            kept = np.flatnonzero(np.concatenate([[True] * first, (degrees >= least) & (degrees <= most)]))
        size = model.n_output_features_ if isinstance(kept, slice) else int(kept.shape[0])
        return {"_kept": kept, "n_output_features_": size}

    @property
    def powers_(self) -> Array:
        """Exponent of each column in each monomial."""
        check_is_fitted(self)
        return self.model_.powers_[self._kept]  # type: ignore[no-any-return]

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the monomials."""
        check_is_fitted(self)
        return self.model_.get_feature_names_out(input_features)[self._kept]  # type: ignore[no-any-return]

    def transform(self, X: Any) -> Matrix:
        """Monomials of the rows."""
        check_is_fitted(self)
        found = self.model_.transform(X)
        return found if isinstance(self._kept, slice) else _like(found, found[:, self._kept])


def _like(found: Matrix, kept: Matrix) -> Matrix:
    """Columns in the order of memory that was asked for; sparse ones as they are."""
    return kept if is_sparse(found) else np.asarray(kept, order="F" if found.flags.f_contiguous else "C")
