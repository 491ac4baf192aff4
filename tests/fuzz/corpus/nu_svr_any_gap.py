# ValueError in smo.py:_minimized: target must not be negative, and bytes positive
import numpy as np
from numpy import array, inf
import certifit as cf
rng = np.random.default_rng(960991026)
n = 1
X = rng.normal(size=(n, 80))
y = 1.0 * rng.poisson(2.0, size=n)
w = np.where(np.arange(n) == 0, 1e-18, 1.0)
model = cf.NuSVR()
model.set_params(tol=inf)
model.fit(X, y, sample_weight=w)
