# LinAlgError in evidence.py:_shared: Eigenvalues did not converge
import numpy as np
import certifit as cf
rng = np.random.default_rng(41317779)
n = 12
X = rng.normal(size=(n, 12))
y = 1.0 * rng.poisson(2.0, size=n)
y *= 1e-170
w = 10.0 ** rng.uniform(-20, 20, size=n)
model = cf.BayesianLinearRegression()
model.fit(X, y, sample_weight=w)
