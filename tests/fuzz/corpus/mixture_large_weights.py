# AssertionError in judge.py:_check_numbers: predict_proba gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1232850923)
n = 60
X = rng.normal(size=(n, 2))
X *= 1e150
y = None
w = np.full(n, 1e300)
model = cf.GaussianMixture(n_components=2, covariance_type='diag')
model.fit(X, y, sample_weight=w)
check_fit(model, X)
