# AssertionError in judge.py:_check_numbers: feature_importances_ gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit

rng = np.random.default_rng(60122186)
n = 3
X = rng.normal(size=(n, 1))
y = 1.0 * rng.poisson(2.0, size=n)
y *= 1e150
w = np.full(n, 1e9)
model = cf.DecisionTreeRegressorCV(cv=3)
model.fit(X, y, sample_weight=w)
check_fit(model, X)
