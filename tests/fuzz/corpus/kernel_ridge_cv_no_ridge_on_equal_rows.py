# AssertionError in judge.py:_check_numbers: predict gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit, check_sequences
rng = np.random.default_rng(1643468221)
n = 40
X = rng.normal(size=(n, 3))
X[rng.random(X.shape) < 0.7] = 0.0
y = 1.0 * rng.normal(size=n)
w = np.full(n, 1e300)
model = cf.KernelRidgeCV()
model.set_params(alphas=0.0)
model.set_params(cv=2)
model.fit(X, y, sample_weight=w)
check_fit(model, X)
