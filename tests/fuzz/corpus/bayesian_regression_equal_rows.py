# AssertionError in judge.py:_check_numbers: predict gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit, check_sequences
rng = np.random.default_rng(1265819964)
n = 60
X = rng.normal(size=(n, 80))
X = X[np.zeros(len(X), dtype=int)]
y = 1.0 * np.exp(rng.normal(size=n))
w = rng.integers(0, 3, size=n)
model = cf.BayesianLinearRegression()
model.fit(X, y, sample_weight=w)
check_fit(model, X)
