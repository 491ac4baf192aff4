# AssertionError in judge.py:_check_numbers: predict gives -inf
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1051491987)
X = rng.normal(size=(60, 1)).astype(np.float32)
y = rng.normal(size=60)
model = cf.LADRegressor()
model.set_params(alpha=1e+150, max_iter=1)
model.fit(X, y)
check_fit(model, X)
