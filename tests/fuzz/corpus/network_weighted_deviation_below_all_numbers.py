# predict gave nan: the inverse of a deviation of 1e-309 is infinite
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1916337995)
X = 1e-300 * rng.normal(size=(2, 12))
y = 1.0 * rng.poisson(2.0, size=2)
model = cf.MLPRegressor(hidden=(16, 8), learning_rate=0.01, max_iter=40).fit(X, y, sample_weight=np.array([1e-18, 1.0]))
check_fit(model, X)
