# AssertionError in judge.py:_check_numbers: predict gives inf
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(2072760609)
n = 12
X = rng.normal(size=(n, 3))
X = X[np.zeros(len(X), dtype=int)]
y = 1.0 * np.exp(rng.normal(size=n))
model = cf.GLM(family='inverse_gaussian', alpha=0.0, solver='subgradient')
model.fit(X, y)
check_fit(model, X)
