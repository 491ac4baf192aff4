# ValueError in nonmetric_mds.py:_levels: Weights w must be strictly positive.
import numpy as np
import certifit as cf
rng = np.random.default_rng(807327005)
n = 3
X = rng.normal(size=(n, 1))
y = None
w = np.where(np.arange(n)==0,1e300,1.0)
model = cf.NonmetricMDS()
model.fit(X, y, sample_weight=w)
