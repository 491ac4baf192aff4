# AssertionError in judge.py:check_proof: the bound is 4.1e-03 of the scale above the optimum
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_proof
rng = np.random.default_rng(977446629)
n = 5
X = rng.normal(size=(n, 2))
y = 1.0 * rng.poisson(2.0, size=n)
w = 10.0 ** rng.uniform(-10, 10, size=n)
model = cf.LinearModel('poisson', penalty='lq', alpha=0.1)
model.fit(X, y, sample_weight=w)
check_proof(model, X, y, w)
