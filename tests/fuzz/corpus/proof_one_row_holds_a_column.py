# the bound is 9.7e-01 of the scale above the optimum
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_proof
rng = np.random.default_rng(1075761753)
n = 12
X = rng.normal(size=(n, 1))
X[0] *= 1e12
y = 1.0 * (np.arange(n) % 2 if rng.random() < 0.3 else rng.random(n) < 0.5)
w = 10.0 ** rng.uniform(-10, 10, size=n)
model = cf.LinearModel('modified_huber', penalty='l2', alpha=1e-3).fit(X, y, sample_weight=w)
check_proof(model, X, y, w)
