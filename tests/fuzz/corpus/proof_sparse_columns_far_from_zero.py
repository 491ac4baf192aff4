# the bound is 9.3e-01 of the scale above the optimum
import numpy as np
import scipy.sparse as sp
import certifit as cf
from tests.fuzz.judge import check_proof
rng = np.random.default_rng(795890455)
n = 20
X = rng.normal(size=(n, 2))
X[0] *= 1e6
X += 1e9 * np.abs(X).max() * np.sign(rng.normal(size=X.shape[1]))
y = 1.0 * (np.arange(n) % 2 if rng.random() < 0.3 else rng.random(n) < 0.5)
w = 10.0 ** rng.uniform(-10, 10, size=n)
model = cf.LinearModel('logistic', penalty='none', alpha=0.1).fit(sp.csr_array(X), y, sample_weight=w)
check_proof(model, X, y, w)
