# AssertionError in judge.py:_check_numbers: transform gives inf
import numpy as np
import scipy.sparse as sp
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(516313645)
X = sp.csr_array((1e30 * rng.normal(size=(12, 80))).astype(np.float32))
model = cf.KMeans(n_clusters=3).fit(X)
check_fit(model, X)
