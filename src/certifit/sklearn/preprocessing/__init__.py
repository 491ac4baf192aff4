"""``sklearn.preprocessing``, as far as Certifit has it: scales, bins, splines and monomials of the columns."""

from __future__ import annotations

from certifit.sklearn.preprocessing.bases import PolynomialFeatures, SplineTransformer
from certifit.sklearn.preprocessing.bins import KBinsDiscretizer
from certifit.sklearn.preprocessing.scaling import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

__all__ = [
    "KBinsDiscretizer",
    "MaxAbsScaler",
    "MinMaxScaler",
    "PolynomialFeatures",
    "RobustScaler",
    "SplineTransformer",
    "StandardScaler",
]
