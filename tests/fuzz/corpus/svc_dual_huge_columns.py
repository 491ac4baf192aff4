# AssertionError in piecewise.py:__call__
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1110013202)
X = 1e300 * rng.normal(size=(2, 3))
model = cf.LinearSVC(solver='dual').fit(X, [1, 0])
check_fit(model, X)
