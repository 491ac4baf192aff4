# AssertionError in judge.py:check_proof: the bound is 1.8e-03 of the scale above the optimum
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit, check_sequences, check_proof
rng = np.random.default_rng(1390947883)
n = 5
X = rng.normal(size=(n, 2))
X[:, 0] *= 1e12
y = 1.0 * rng.normal(size=n)
w = 10.0 ** rng.uniform(-10, 10, size=n)
model = cf.LinearModel('absolute', penalty='l1', alpha=1.0, fit_intercept=True)
model.fit(X, y, sample_weight=w)
check_proof(model, X, y, w)
