# AssertionError in judge.py:check_proof: the bound is 1.1e-07 of the scale above the optimum
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit, check_sequences, check_proof
rng = np.random.default_rng(1991917288)
n = 8
X = rng.normal(size=(n, 2))
X[:, -1] = X[:, 0] * (1 + 10.0 ** rng.uniform(-12, -5) * rng.normal(size=n))
X *= 1e10
y = 1.0 * (np.arange(n) % 2 if rng.random() < 0.3 else rng.random(n) < 0.5)
w = None
model = cf.LinearModel('hinge', penalty='lq', alpha=0.1, fit_intercept=True)
model.fit(X, y, sample_weight=w)
check_proof(model, X, y, w)
