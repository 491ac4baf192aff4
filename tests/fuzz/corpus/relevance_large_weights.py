# LinAlgError in evidence.py:_normal: the precision of the posterior is not positive definite
import numpy as np
import certifit as cf
rng = np.random.default_rng(980891663)
n = 3
X = rng.normal(size=(n, 12))
X = X > 0
y = 1.0 * rng.normal(size=n)
w = np.full(n, 1e9)
model = cf.BayesianLinearRegression()
model.set_params(relevance=True)
model.fit(X, y, sample_weight=w)
