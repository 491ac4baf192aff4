# AssertionError in judge.py:_check_numbers: predict gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1129676701)
n = 3
X = rng.normal(size=(n, 80))
X *= 1e30
y = 1.0 * np.exp(rng.normal(size=n))
w = np.where(np.arange(n) == 0, 1.0, 0.0)
model = cf.LocallyWeightedRegression()
model.set_params(bandwidth=0.9)
model.fit(X, y, sample_weight=w)
check_fit(model, X)
