# AssertionError in judge.py:check_proof: the bound is 4.0e-02 of the scale above the optimum
import numpy as np
import scipy.sparse as sp
import certifit as cf
from tests.fuzz.judge import check_proof
rng = np.random.default_rng(599150150)
n = 20
X = rng.normal(size=(n, 2))
X[:, -1] = X[:, 0] * (1 + 10.0 ** rng.uniform(-12, -5) * rng.normal(size=n))
y = 1.0 * rng.normal(size=n)
w = None
model = cf.LinearModel('epsilon_insensitive', penalty='none', alpha=0.1, fit_intercept=False)
model.fit(sp.csr_array(X), y, sample_weight=w)
check_proof(model, X, y, w)
