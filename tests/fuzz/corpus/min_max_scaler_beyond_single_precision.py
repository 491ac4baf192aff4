# AssertionError in judge.py:_check_numbers: transform gives inf
# now refused: beyond single precision
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit, check_sequences
rng = np.random.default_rng(1309650479)
n = 60
X = rng.normal(size=(n, 5))
X = X.astype(np.float32)
y = None
w = np.full(n, 1e9)
model = cf.MinMaxScaler()
model.set_params(high=1e+150)
model.fit(X, y, sample_weight=w)
check_fit(model, X)
