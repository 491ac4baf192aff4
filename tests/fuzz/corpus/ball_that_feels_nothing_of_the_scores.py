# ZeroDivisionError in core.py:__init__: float division by zero
import numpy as np
import certifit as cf
from certifit.penalties import *
rng = np.random.default_rng(2124842554)
n = 3
X = rng.normal(size=(n, 5))
X *= 1e-300
y = 1.0 * np.exp(rng.normal(size=n))
w = None
model = cf.LinearModel(loss='squared', penalty='l1', alpha=0.02, constraint=L2Ball(radius=1.0))
model.set_params(loss='epsilon_insensitive')
model.fit(X, y, sample_weight=w)
