"""``sklearn.preprocessing``, as far as Certifit has it: monomials of the columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import sklearn.preprocessing as theirs
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix
from certifit.representation.basis import monomials as ours
from certifit.sklearn.asking import Alone
from certifit.sklearn.translation import By, Data, Same, Table

__all__ = ["PolynomialFeatures"]


def _degree(value: Any, data: Data) -> int:
    if isinstance(value, tuple | list):
        least, most = value
        if least in (0, 1) and most >= 1:
            return int(most)
    elif value >= 1:
        return int(value)
    raise NotImplementedError(
        f"PolynomialFeatures(degree={value!r}) is not offered by certifit.sklearn: monomials begin at degree 1. Use "
        "`degree=p` or `degree=(1, p)` with p ≥ 1, or scikit-learn's own class."
    )


class PolynomialFeatures(Alone, theirs.PolynomialFeatures):
    """All monomials of the columns up to a degree."""

    _ours = ours.PolynomialFeatures
    _table: ClassVar[Table] = {
        "degree": By(_degree, "the same; the least degree is 1"),
        "interaction_only": Same(),
        "include_bias": Same(),
        "order": Same(),
    }

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {"n_output_features_": model.n_output_features_}

    @property
    def powers_(self) -> Array:
        """Exponent of each column in each monomial."""
        check_is_fitted(self)
        return self.model_.powers_  # type: ignore[no-any-return]

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the monomials."""
        check_is_fitted(self)
        return self.model_.get_feature_names_out(input_features)  # type: ignore[no-any-return]

    def transform(self, X: Any) -> Matrix:
        """Monomials of the rows."""
        check_is_fitted(self)
        return self.model_.transform(X)
