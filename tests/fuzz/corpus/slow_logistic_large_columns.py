# does not end within 20 s
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 4)) * 1e30, rng.integers(3, size=60)
model = cf.LogisticRegressionCV().fit(X, y)
check_fit(model, X)
