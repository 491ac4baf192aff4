# ZeroDivisionError in kinked_map.py:_step: float division by zero
import numpy as np
import certifit as cf
rng = np.random.default_rng(1066154792)
n = 12
X = rng.normal(size=(n, 3))
y = np.zeros(n)
w = None
model = cf.GLM(family='laplace', alpha=0.02)
model.set_params(map='cloglog')
model.fit(X, y, sample_weight=w)
