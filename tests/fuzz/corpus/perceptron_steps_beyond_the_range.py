# AssertionError in judge.py:_check_numbers: decision_function gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(467016948)
n = 60
X = rng.normal(size=(n, 2))
X *= 1e-150
X *= 1e-150
y = rng.integers(3, size=n)
model = cf.Perceptron(max_iter=50, averaged=True)
model.set_params(step=1e+150)
model.fit(X, y)
check_fit(model, X)
