# AssertionError in judge.py:_check_numbers: predict gives -inf
# now refused: ran away
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit, check_sequences
rng = np.random.default_rng(1449186786)
n = 3
X = rng.normal(size=(n, 3))
X[rng.random(X.shape) < 0.3] = np.nan
y = 1.0 * rng.poisson(2.0, size=n)
y *= 1e150
w = None
model = cf.BoostedTrees(n_estimators=8)
model.set_params(n_estimators=2)
model.set_params(learning_rate=1e+150)
model.set_params(min_samples_leaf=0.1)
model.fit(X, y, sample_weight=w)
check_fit(model, X)
