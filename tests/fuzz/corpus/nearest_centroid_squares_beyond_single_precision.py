# AssertionError in judge.py:_check_numbers: decision_function gives -inf
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit

rng = np.random.default_rng(605790515)
X = 1e30 * rng.normal(size=(2, 5))
X = X.astype(np.float32)
y = np.array([0, 1])
model = cf.NearestCentroid()
model.fit(X, y)
check_fit(model, X)
assert np.isfinite(model.log_density(X)).all()
