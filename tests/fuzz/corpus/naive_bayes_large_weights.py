# AssertionError in judge.py:_check_numbers: predict_proba gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1934088637)
n = 60
X = rng.normal(size=(n, 2))
X[0] *= 1e6
y = rng.integers(1, size=n)
w = np.full(n, 1e300)
model = cf.GaussianNB()
model.fit(X, y, sample_weight=w)
check_fit(model, X)
