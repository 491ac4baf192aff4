# AssertionError in judge.py:check_proof: the objective is 2.4e-05 of the scale off
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_proof
rng = np.random.default_rng(1768376090)
n = 5
X = rng.normal(size=(n, 2))
X += 1e6 * np.abs(X).max()
X[0] *= 1e6
y = 1.0 * (np.arange(n) % 2 if rng.random() < 0.3 else rng.random(n) < 0.5)
w = None
model = cf.LinearModel('hinge', penalty='none', fit_intercept=False)
model.fit(X, y, sample_weight=w)
check_proof(model, X, y, w)
