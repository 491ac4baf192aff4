"""``sklearn.tree``, as far as Certifit has it."""

from __future__ import annotations

from certifit.sklearn.tree.model import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

__all__ = ["DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"]
