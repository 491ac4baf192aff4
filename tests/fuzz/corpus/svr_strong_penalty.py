# AssertionError
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(50, 5)), rng.normal(size=50)
model = cf.LinearSVR(alpha=1e150).fit(X, y)
check_fit(model, X)
