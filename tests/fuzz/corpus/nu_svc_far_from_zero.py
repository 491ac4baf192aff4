# AssertionError in judge.py:_check_numbers: predict_proba gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit, check_sequences

rng = np.random.default_rng(1374562200)
n = 60
X = rng.normal(size=(n, 3))
X += 1e9
X *= 1e150
y = rng.integers(2, size=n)
w = rng.random(n)
model = cf.NuSVC(cv=3)
model.fit(X, y, sample_weight=w)
check_fit(model, X)
