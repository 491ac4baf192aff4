# AssertionError in judge.py:_check_numbers: predict_proba gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1010552748)
n = 3
X = rng.normal(size=(n, 12))
X *= 1e150
y = rng.integers(2, size=n)
model = cf.NaiveBayes(alpha=0.05)
model.set_params(var_smoothing=1e+150)
model.fit(X, y)
check_fit(model, X)
