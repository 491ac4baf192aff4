# AssertionError in judge.py:_check_numbers: decision_function gives inf
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(720211251)
n = 2
X = rng.normal(size=(n, 80))
y = rng.integers(2, size=n)
w = np.where(np.arange(n) == 0, 1e-18, 1.0)
model = cf.LocallyWeightedLogisticRegression(kernel='tricube', bandwidth='nearest', fraction=0.1)
model.fit(X, y, sample_weight=w)
check_fit(model, X)
