# AssertionError in judge.py:check_proof: the objective is 7.0e-04 of the scale off
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_proof
rng = np.random.default_rng(17)
n = 200
X = rng.normal(size=(n, 3))
y = 1e6 + rng.poisson(2.0, size=n)
model = cf.LinearModel("poisson", penalty="l2", alpha=1e-8, solver="newton")
model.fit(X, y)
check_proof(model, X, y, None)
