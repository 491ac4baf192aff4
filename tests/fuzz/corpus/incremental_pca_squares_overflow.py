# ValueError in leading.py:exact: array must not contain infs or NaNs
# now refused: squares are beyond double precision
import numpy as np
import certifit as cf
rng = np.random.default_rng(749111190)
n = 5
X = rng.normal(size=(n, 2))
X *= 1e150
X *= 1e150
y = None
w = None
model = cf.IncrementalPCA()
model.fit(X, y, sample_weight=w)
