"""``sklearn.ensemble``, as far as Certifit has it."""

from __future__ import annotations

from certifit.sklearn.ensemble.adaboost import AdaBoostClassifier, AdaBoostRegressor
from certifit.sklearn.ensemble.bagging import BaggingClassifier, BaggingRegressor
from certifit.sklearn.ensemble.boosting import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from certifit.sklearn.ensemble.forest import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

__all__ = [
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "BaggingClassifier",
    "BaggingRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
]
