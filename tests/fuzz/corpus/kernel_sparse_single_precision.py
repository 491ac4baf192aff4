# AssertionError in judge.py:_check_numbers: decision_function gives nan
import numpy as np
import scipy.sparse as sp
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(935564408)
X = 1e30 * rng.normal(size=(12, 80))
X = sp.csr_array(X.astype(np.float32))
y = rng.integers(5, size=12)
model = cf.NuSVC(cv=3)
model.fit(X, y)
check_fit(model, X)
