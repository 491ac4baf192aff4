# the bound is 1.0e+00 of the scale above the optimum
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_proof
rng = np.random.default_rng(2116198833)
n = 12
X = rng.normal(size=(n, 3))
X += 1e9 * np.abs(X).max() * np.sign(rng.normal(size=X.shape[1]))
X[0] *= 1e6
y = 1e6 + rng.normal(size=n)
w = 10.0 ** rng.uniform(-10, 10, size=n)
model = cf.LinearModel('quantile', penalty='none').fit(X, y, sample_weight=w)
check_proof(model, X, y, w)
