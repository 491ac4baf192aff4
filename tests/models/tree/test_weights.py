"""Weights of any magnitude: only their shares matter to a tree that counts no rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import certifit

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = X[:, 0] + RNG.normal(size=60)
WEIGHTS = {
    "equal": np.ones(60),
    "whole": RNG.integers(1, 5, size=60).astype(float),
    "real": RNG.uniform(0.1, 1, size=60),
}
MODELS = [
    certifit.DecisionTreeClassifier(criterion="entropy", class_weight="balanced"),
    certifit.DecisionTreeRegressor(),
    certifit.DecisionTreeRegressor(criterion="absolute"),
    certifit.DecisionTreeRegressorCV(),
    certifit.RandomForestRegressor(3, bootstrap=False, random_state=0),
    certifit.AdaBoostClassifier(n_estimators=3),
    certifit.ForwardStagewise(n_estimators=3),
]


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_the_unit_of_the_weights_does_not_matter(model, weights):
    y = (Y > 0).astype(int) if is_classifier(model) else Y
    wanted = clone(model).fit(X, y, sample_weight=WEIGHTS[weights]).predict(X)
    for exponent in (-1010, -60, 40, 1000):
        found = clone(model).fit(X, y, sample_weight=np.ldexp(WEIGHTS[weights], exponent))
        np.testing.assert_allclose(found.predict(X), wanted, rtol=1e-9)
        assert np.isfinite(found.certificate_.objective)


@pytest.mark.parametrize("level", [1e-9, 1.0, 1e9, 1e150])
def test_counts_far_from_zero(level):
    # Parts of the deviance cancel: its mean came out negative, and no alpha was within rounding of the least.
    for seed in range(5):
        rng = np.random.default_rng(seed)
        for y in (level + rng.normal(size=60) * level * 1e-9, level * rng.uniform(size=60), np.full(60, level)):
            model = certifit.DecisionTreeRegressorCV(criterion="poisson").fit(X, y)
            assert np.isfinite(model.predict(X)).all()
            assert (model.cv_errors_ >= 0).all()
            assert np.isfinite(model.cv_errors_).all()
