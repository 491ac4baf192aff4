# the bound is 3.6e-03 of the scale above the optimum
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_proof
rng = np.random.default_rng(1158954809)
n = 8
X = rng.normal(size=(n, 1))
X += 1e9 * np.abs(X).max() * np.sign(rng.normal(size=X.shape[1]))
X[0] *= 1e6
y = 1.0 * (np.arange(n) % 2 if rng.random() < 0.3 else rng.random(n) < 0.5)
model = cf.LinearModel('exponential', penalty='none').fit(X, y)
check_proof(model, X, y, None)
