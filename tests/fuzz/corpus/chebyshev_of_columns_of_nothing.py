# ValueError in problem.py:_least_norm: array must not contain infs or NaNs
import numpy as np
import scipy.sparse as sp
import certifit as cf
rng = np.random.default_rng(725566930)
n = 5
X = rng.normal(size=(n, 12))
X = sp.csr_array(X.shape)
y = 1.0 * np.exp(rng.normal(size=n))
y = np.rint(np.exp(y))
w = np.ones(n).tolist()
model = cf.ChebyshevRegressor()
model.set_params(tol=0.0)
model.fit(X, y, sample_weight=w)
