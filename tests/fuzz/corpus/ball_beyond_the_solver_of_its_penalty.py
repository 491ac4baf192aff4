# ZeroDivisionError in ivanov.py:_bracketed_root: float division by zero
import numpy as np
import certifit as cf
from certifit.losses import Huber
from certifit.penalties import L1Ball
rng = np.random.default_rng(476381032)
n = 5
X = 1e30 * rng.normal(size=(n, 2))
y = 3e38 * rng.normal(size=n)
model = cf.LinearModel(loss=Huber(delta=0.5), penalty="l2", alpha=0.02, constraint=L1Ball(radius=1.0))
model.fit(X, y)
