# ValueError: unexpected array size
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(50, 5)), rng.normal(size=50)
k = np.arange(50) % 3
model = cf.LogisticRegression(penalty="l1", alpha=100.0, fit_intercept=False).fit(X, k)
check_fit(model, X)
