# OverflowError in training.py:rate_at: (34, 'Numerical result out of range')
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1474817932)
X = rng.normal(size=(3, 1))
y = 1.0 * rng.poisson(2.0, size=3)
model = cf.MLPRegressor(hidden=(16, 8), learning_rate=0.01, max_iter=40)
model.set_params(schedule='invscaling', power_t=1e+150)
model.fit(X, y)
check_fit(model, X)
