# AssertionError in judge.py:_check_numbers: predict gives inf
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(784660254)
n = 12
X = rng.normal(size=(n, 80))
X[:, 0] *= 1e12
y = 1e-170 * np.exp(rng.normal(size=n))
w = np.where(np.arange(n) < n // 2, 0.0, 1.0)
model = cf.LinearModel(loss='poisson', penalty='l1', alpha=0.02, fit_intercept=False)
model.fit(X, y, sample_weight=w)
check_fit(model, X)
