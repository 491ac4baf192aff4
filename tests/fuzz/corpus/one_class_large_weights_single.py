# AssertionError in judge.py:_check_numbers: decision_function gives inf
import numpy as np
import scipy.sparse as sp
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(2050656473)
n = 60
X = rng.normal(size=(n, 1))
X = sp.csr_array(X.astype(np.float32))
y = None
w = np.full(n, 1e300)
model = cf.OneClassSVM()
model.fit(X, y, sample_weight=w)
check_fit(model, X)
