# ZeroDivisionError in kinked_map.py:_step: float division by zero
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(198804105)
X = rng.normal(size=(12, 1))
y = rng.normal(size=12)
model = cf.GLM(family='laplace', alpha=0.02)
model.set_params(map='probit')
model.fit(X, y)
check_fit(model, X)
