# AssertionError in judge.py:_check_numbers: predict gives inf
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
model = cf.GLM(family='inverse_gaussian', map='exp', alpha=0.001, fit_intercept=False)
X = np.array([[1.0, 0.0, 1.0]])
model.fit(X, [1e9])
check_fit(model, X)
