# does not end within 20 s
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y, w = rng.normal(size=(101, 4)), rng.integers(5, size=101), rng.random(101)
w[0] = 0.0
model = cf.LogisticRegressionCV(alphas=[1e-8, 1e-4, 1.0, 100.0], penalty="l1").fit(X, y, sample_weight=w)
check_fit(model, X)
