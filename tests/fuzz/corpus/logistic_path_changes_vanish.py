# ZeroDivisionError in sketch.py:quasi_newton: float division by zero
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1520022843)
X = 1e150 * rng.normal(size=(5, 80))
y = rng.integers(3, size=5)
w = 10.0 ** rng.uniform(-20, 20, size=5)
model = cf.LogisticRegressionCV(n_alphas=6, cv=3).fit(X, y, sample_weight=w)
check_fit(model, X)
