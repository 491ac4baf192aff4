# AssertionError in judge.py:_check_numbers: predict gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(772698008)
n = 60
X = rng.normal(size=(n, 1))
y = 1e9 + np.exp(rng.normal(size=n))
model = cf.KernelRidgeCV(alphas=[0.0], fit_intercept=False, one_standard_error=True)
model.fit(X, y, sample_weight=np.full(n, 1e9))
check_fit(model, X)
