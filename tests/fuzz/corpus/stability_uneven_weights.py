# does not end within 20 s
import numpy as np
import certifit as cf
rng = np.random.default_rng(863214267)
n = 60
X = rng.normal(size=(n, 12))
X = np.round(X)
y = 1.0 * rng.poisson(2.0, size=n)
y = y > 0
w = 10.0 ** rng.uniform(-20, 20, size=n)
model = cf.StabilitySelection(n_features=17, n_pairs=17, threshold=0.6, random_state=0)
model.fit(X, y, sample_weight=w)
