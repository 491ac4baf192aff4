# ZeroDivisionError in gram.py:in_units: float division by zero
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1410343281)
n = 12
X = rng.normal(size=(n, 5))
y = 1.0 * rng.poisson(2.0, size=n)
y *= 1e-170
model = cf.KernelRidge()
model.fit(X, y)
check_fit(model, X)
