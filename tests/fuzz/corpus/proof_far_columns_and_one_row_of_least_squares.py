# the bound is 1.4e-01 of the scale above the optimum
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_proof
rng = np.random.default_rng(686679168)
n = 12
X = rng.normal(size=(n, 2))
X += 1e9 * np.abs(X).max() * np.sign(rng.normal(size=X.shape[1]))
X[0] *= 1e6
y = 1.0 * rng.normal(size=n)
model = cf.LinearModel('squared', penalty='l2', alpha=1e-8).fit(X, y)
check_proof(model, X, y, None)
