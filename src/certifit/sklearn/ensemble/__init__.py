"""``sklearn.ensemble``, as far as Certifit has it."""

from __future__ import annotations

from certifit.sklearn.ensemble.adaboost import AdaBoostClassifier
from certifit.sklearn.ensemble.bagging import BaggingClassifier, BaggingRegressor
from certifit.sklearn.ensemble.boosting import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from certifit.sklearn.ensemble.forest import RandomForestClassifier, RandomForestRegressor

__all__ = [
    "AdaBoostClassifier",
    "BaggingClassifier",
    "BaggingRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
]
