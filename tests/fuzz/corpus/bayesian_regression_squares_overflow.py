# LinAlgError in evidence.py:_shared: Eigenvalues did not converge
# now refused: X or y holds numbers
import numpy as np
import certifit as cf
rng = np.random.default_rng(560523896)
n = 5
X = rng.normal(size=(n, 12))
X *= 1e150
X *= 1e150
y = 1.0 * rng.poisson(2.0, size=n)
w = None
model = cf.BayesianLinearRegression()
model.fit(X, y, sample_weight=w)
