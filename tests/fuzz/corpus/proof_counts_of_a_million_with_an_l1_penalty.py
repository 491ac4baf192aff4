# AssertionError in judge.py:check_proof: the objective is 1.4e-03 of the scale off
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_proof
rng = np.random.default_rng(51)
n = 8
X = rng.normal(size=(n, 2))
y = 1e6 + rng.poisson(2.0, size=n)
model = cf.LinearModel("poisson", penalty="l1", alpha=1e-8, solver="auto")
model.fit(X, y)
check_proof(model, X, y, None)
