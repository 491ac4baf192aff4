# AssertionError in judge.py:check_proof: the bound is 4.2e-04 of the scale above the optimum
import numpy as np
import scipy.sparse as sp
import certifit as cf
from tests.fuzz.judge import check_proof
rng = np.random.default_rng(1)
n = 8
X = rng.normal(size=(n, 1))
X += 1e9
y = 1.0*(rng.random(n)<0.5)
w = 10.0 ** rng.uniform(-10, 10, size=n)
model = cf.LinearModel('logistic', penalty='l1', alpha=1e-3, fit_intercept=True)
model.fit(sp.csr_array(X), y, sample_weight=w)
check_proof(model, X, y, w)
