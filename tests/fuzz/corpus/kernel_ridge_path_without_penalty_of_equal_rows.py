# AssertionError in judge.py:_check_numbers: predict gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
X = np.zeros((12, 5))
y = np.arange(12.0)
model = cf.KernelRidgeCV(alphas=0.0, fit_intercept=False)
model.fit(X, y, sample_weight=np.full(12, 1e300))
check_fit(model, X)
