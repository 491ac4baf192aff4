# IndexError in medoids.py:_start: index 0 is out of bounds for axis 0 with size 0
import numpy as np
import certifit as cf
rng = np.random.default_rng(1355551722)
n = 60
X = rng.normal(size=(n, 5))
y = None
w = None
model = cf.KMedoids(n_clusters=2, metric='manhattan', n_init=2)
model.set_params(n_clusters=13)
model.set_params(max_rows=12)
model.fit(X, y, sample_weight=w)
