# AssertionError in judge.py:check_proof: the objective is 4.8e-08 of the scale off
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_proof
rng = np.random.default_rng(1420356862)
n = 12
X = rng.normal(size=(n, 3))
X = np.round(X)
X += 1e6 * np.abs(X).max()
y = 1.0 * (np.arange(n) % 2 if rng.random() < 0.3 else rng.random(n) < 0.5)
w = 10.0 ** rng.uniform(-10, 10, size=n)
model = cf.LinearModel('logistic', penalty='none', alpha=1e-3, fit_intercept=True)
model.fit(X, y, sample_weight=w)
check_proof(model, X, y, w)
