# AssertionError in judge.py:_check_numbers: predict gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit, check_sequences
rng = np.random.default_rng(1665283887)
n = 60
X = rng.normal(size=(n, 2))
y = 1.0 * np.exp(rng.normal(size=n))
y = y > 0
w = None
model = cf.MinimaxModel(alpha=0.05)
model.set_params(loss='exponential')
model.fit(X, y, sample_weight=w)
check_fit(model, X)
