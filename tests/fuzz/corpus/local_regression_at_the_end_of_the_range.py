# OverflowError in local.py:of: (34, 'Numerical result out of range')
import numpy as np
import certifit as cf
rng = np.random.default_rng(929808433)
n = 1
X = rng.normal(size=(n, 3))
X[0,0]=1e308
y = 1.0 * np.exp(rng.normal(size=n))
w = np.where(np.arange(n) < n // 2, 0.0, 1.0)
model = cf.LocallyWeightedRegression(kernel='tricube', bandwidth='nearest')
model.fit(X, y, sample_weight=w)
