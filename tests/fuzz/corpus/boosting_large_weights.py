# AssertionError in judge.py:_check_numbers: feature_importances_ gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1288052682)
n = 5
X = rng.normal(size=(n, 2))
y = 1.0 * np.exp(rng.normal(size=n))
w = np.full(n, 1e300)
model = cf.BoostedTrees(n_estimators=8)
model.fit(X, y, sample_weight=w)
check_fit(model, X)
