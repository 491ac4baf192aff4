# ZeroDivisionError in machine.py:_certificate: float division by zero
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1570116638)
n = 3
X = rng.normal(size=(n, 5))
y = rng.integers(2, size=n)
w = np.full(n, 1e-300)
model = cf.NuSVC()
model.fit(X, y, sample_weight=w)
check_fit(model, X)
