"""scikit-learn's contract, for every estimator made of trees."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

import certifit

ESTIMATORS = [
    certifit.DecisionTreeClassifier(),
    certifit.DecisionTreeClassifier(criterion="entropy", max_leaves=8),
    certifit.DecisionTreeRegressor(),
    certifit.DecisionTreeRegressor(criterion="absolute", max_depth=3),
    certifit.DecisionTreeClassifierCV(cv=3),
    certifit.DecisionTreeRegressorCV(cv=3),
    certifit.RandomForestClassifier(n_estimators=8, bootstrap=False, max_features=None),
    certifit.RandomForestClassifier(n_estimators=12),
    certifit.RandomForestRegressor(n_estimators=8, bootstrap=False, splitter="histogram"),
    certifit.RandomForestRegressor(n_estimators=12),
    certifit.BaggingClassifier(n_estimators=5),
    certifit.BaggingRegressor(n_estimators=5),
    certifit.AdaBoostClassifier(n_estimators=5),
    certifit.AdaBoostClassifier(n_estimators=5, algorithm="real"),
    certifit.ForwardStagewise(n_estimators=5),
    certifit.ForwardStagewise("exponential", n_estimators=5),
]


@parametrize_with_checks(ESTIMATORS)
def test_contract(estimator: Any, check: Any) -> None:
    check(estimator)
