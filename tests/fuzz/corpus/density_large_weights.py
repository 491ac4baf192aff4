# LinAlgError in density.py:_keep: Eigenvalues did not converge
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(2146080978)
n = 3
X = rng.normal(size=(n, 5))
X[0] *= 1e6
y = None
w = np.full(n, 1e300)
model = cf.GaussianDensity()
model.fit(X, y, sample_weight=w)
check_fit(model, X)
