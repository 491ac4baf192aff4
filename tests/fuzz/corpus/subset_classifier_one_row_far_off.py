# RuntimeError in separability.py:separability: The linear program of the separability test failed: The HiGHS status code was not recognized
import numpy as np
import certifit as cf
rng = np.random.default_rng(1767232533)
n = 12
X = rng.normal(size=(n, 3))
X[0] *= 1e6
y = rng.integers(5, size=n)
model = cf.BestSubsetClassifier(max_nodes=20000, max_size=2)
model.fit(X, y)
