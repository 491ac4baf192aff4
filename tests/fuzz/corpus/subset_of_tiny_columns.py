# AssertionError in judge.py:_check_numbers: predict gives nan
# now refused: The best coefficients are beyond the range
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit, check_sequences
rng = np.random.default_rng(134854826)
n = 40
X = rng.normal(size=(n, 12))
X *= 1e-300
y = 1.0 * np.exp(rng.normal(size=n))
y *= 1e150
w = None
model = cf.BestSubset(max_nodes=20000, max_size=2, loss='poisson')
model.set_params(choose='aic')
model.set_params(loss='squared')
model.fit(X, y, sample_weight=w)
check_fit(model, X)
