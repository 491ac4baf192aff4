# AssertionError in judge.py:_check_numbers: transform gives inf
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1779802833)
n = 12
X = rng.normal(size=(n, 5))
y = None
w = np.where(np.arange(n) == 0, 1e-18, 1.0)
model = cf.QuantileScaler()
model.fit(X, y, sample_weight=w)
check_fit(model, X)
