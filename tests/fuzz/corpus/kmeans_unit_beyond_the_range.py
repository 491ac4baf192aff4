# ValueError in centers.py:_floor: cannot convert float NaN to integer
import numpy as np
import certifit as cf
rng = np.random.default_rng(1567155008)
n = 3
X = rng.normal(size=(n, 3))
X *= 1e150
y = None
w = np.full(n, 1e10)
model = cf.KMeans(n_clusters=3, init='random', n_init=2)
model.fit(X, y, sample_weight=w)
