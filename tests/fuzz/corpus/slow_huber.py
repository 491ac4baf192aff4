# does not end within 20 s
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(200, 5)), rng.normal(size=200)
X[0] *= 1e6
model = cf.HuberRegressor().fit(X, y)
check_fit(model, X)
