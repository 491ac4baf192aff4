# AssertionError in judge.py:_check_numbers: predict gives nan
# now refused: bias_init must be
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit, check_sequences
rng = np.random.default_rng(87323378)
n = 1
X = rng.normal(size=(n, 2))
y = 1.0 * np.exp(rng.normal(size=n))
w = np.where(np.arange(n) == 0, 1e-18, 1.0)
model = cf.MLPRegressor(hidden=(16, 8), learning_rate=0.01, max_epochs=40)
model.set_params(bias_init=1e+150)
model.fit(X, y, sample_weight=w)
check_fit(model, X)
