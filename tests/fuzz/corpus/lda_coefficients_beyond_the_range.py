# AssertionError in judge.py:_check_numbers: coef_ gives -inf
# now refused: The linear scores are beyond the range
import numpy as np
import certifit as cf
rng = np.random.default_rng(1489791056)
n = 3
X = rng.normal(size=(n, 1))
X *= 1e-150
y = rng.integers(3, size=n)
w = 10.0 ** rng.uniform(-20, 20, size=n)
model = cf.LDA()
model.fit(X, y, sample_weight=w)
