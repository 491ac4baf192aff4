# LinAlgError in minorant.py:_inverse_root: Eigenvalues did not converge
import numpy as np
import certifit as cf
rng = np.random.default_rng(1548320317)
n = 12
X = rng.normal(size=(n, 12))
y = 1.0 * np.exp(rng.normal(size=n))
y[0] = 1e8
w = None
model = cf.BestSubset(max_nodes=20000, max_size=2, loss='gamma')
model.fit(X, y, sample_weight=w)
