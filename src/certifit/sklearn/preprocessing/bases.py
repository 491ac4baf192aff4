"""Columns made of columns: monomials and splines."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.preprocessing as theirs
from scipy.interpolate import BSpline
from sklearn.utils.validation import check_array, check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.data.gate import check_x
from certifit.representation.basis import monomials as ours
from certifit.representation.basis import pieces
from certifit.representation.basis.blocks import positive_rows
from certifit.representation.basis.columns import interpolated_quantiles, lower_quantiles
from certifit.representation.basis.summaries import present_values
from certifit.sklearn.translation import By, Data, DropIn, Here, Of, Same, Table, fresh, same
from certifit.sklearn.translation.asking import Alone

__all__ = ["PolynomialFeatures", "SplineTransformer"]


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
    least, most = _degrees(value)
    if most == 0 and not data.estimator.include_bias:
        which = "degree" if isinstance(value, numbers.Integral) else "both min_degree and max_degree"
        raise ValueError(
            f"Setting {which} to zero and include_bias to False would result in an empty output array. One of them must change."
        )
    columns = np.shape(data.X)[1] if len(np.shape(data.X)) == 2 else 0
    several = math.comb if data.estimator.interaction_only else lambda d, k: math.comb(d + k - 1, k)
    width = sum(
        several(columns, k) for k in range(max(least, 1), min(most, 3) + 1)
    )  # more are refused for their size anyway
    if width > np.iinfo(np.int64).max:
        raise ValueError(
            f"The output that would result from the current configuration would have {width} features which is too large to be "
            "indexed by int64."
        )
    return max(most, 1)


class PolynomialFeatures(Alone, theirs.PolynomialFeatures):
    """All monomials of the columns up to a degree."""

    _ours = ours.PolynomialFeatures
    _table: ClassVar[Table] = {
        "degree": By(_degree, "the same; monomials of less than the least degree are left out"),
        **same("interaction_only", "include_bias", "order"),
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


class SplineTransformer(DropIn, theirs.SplineTransformer):
    """B-splines of each column. Ours places the knots; scikit-learn's `transform` evaluates the splines on them, and beyond."""

    _ours = pieces.SplineBasis
    _table: ClassVar[Table] = {
        "n_knots": Here("as many knots are placed, where they are not given"),
        "degree": Same(),
        "knots": Here("``knots``, one sequence for each column"),
        "extrapolation": Of(
            lambda value, data: "periodic" if value == "periodic" else "extended",
            "``boundary``: periodic, or knots continued at the distance of the last two",
            "boundary",
        ),
        "include_bias": Same(),
        "order": Here("the matrix that `transform` gives is of this kind"),
        "handle_missing": Of(lambda value, data: "zeros" if value == "zeros" else "refuse", "``missing``", "missing"),
        "sparse_output": Here("the matrix that `transform` gives is of this kind"),
    }

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """As `DropIn.fit`; y is not used."""
        return super().fit(X, None, sample_weight)

    def _learn(self, data: Data) -> Any:
        settings = self._settings(data)
        try:
            X = check_x(
                self, data.X, reset=True, accept_sparse=False, allow_nan=self.handle_missing == "zeros", min_samples=2
            )
        except ValueError as error:
            if "Input X contains NaN" not in str(error):
                raise
            raise ValueError(
                "Input X contains NaN values and `SplineTransformer` is configured to error in this case "
                "(handle_missing='error'): set handle_missing='zeros' to encode them as splines of value zero, or fill them in."
            ) from error
        knots = self._knots(X, data.sample_weight)
        if self.extrapolation == "periodic" and len(knots[0]) <= self.degree:
            raise ValueError(
                f"Periodic splines require degree < n_knots. Got n_knots={len(knots[0])} and degree={self.degree}."
            )
        return fresh(self._ours, **settings, knots=knots).fit(data.X, None, data.sample_weight)

    def _knots(self, X: Array, sample_weight: Any) -> list[Array]:
        """Knots of each column as scikit-learn places them."""
        if not isinstance(self.knots, str):
            given = check_array(self.knots, dtype=np.float64)
            if given.shape[0] < 2:
                raise ValueError("Number of knots, knots.shape[0], must be >= 2.")
            if given.shape[1] != X.shape[1]:
                raise ValueError("knots.shape[1] == n_features is violated.")
            if not (np.diff(given, axis=0) > 0).all():
                raise ValueError("knots must be sorted without duplicates.")
            return list(given.T)
        rows, weight = positive_rows(X, sample_weight)
        fractions = np.linspace(0.0, 1.0, self.n_knots)
        quantiles = interpolated_quantiles if sample_weight is None else lower_quantiles
        found = []
        for j in range(X.shape[1]):
            values, mass = present_values(rows, weight, j)
            if not values.size:
                found.append(np.zeros(self.n_knots))
            elif self.knots == "quantile":
                found.append(quantiles(values, mass, fractions))
            else:
                found.append(np.linspace(values.min(), values.max(), self.n_knots))
        return found

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        self._late: dict[str, list[BSpline]] = {}
        self._shape = self.extrapolation, self.degree
        return {"n_features_out_": len(model.knots_) * (self._size() - (not self.include_bias))}

    def _size(self) -> int:
        """Splines of a column."""
        extrapolation, degree = self._shape
        return int(self.model_.knots_[0].size + (-1 if extrapolation == "periodic" else degree - 1))

    @property
    def bsplines_(self) -> list[BSpline]:
        """The splines of each column, which the inherited `transform` asks for: made then, for a fit takes less."""
        if "_shape" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no bsplines_ before it is fitted.")
        if "splines" not in self._late:
            extrapolation, degree = self._shape
            coef = np.eye(self._size())
            coef = np.concatenate([coef, coef[:degree]]) if extrapolation == "periodic" else coef
            beyond = extrapolation in ("periodic", "continue")
            vectors = self.model_.knot_vectors()
            self._late["splines"] = [BSpline.construct_fast(one, coef, degree, extrapolate=beyond) for one in vectors]
        return self._late["splines"]
