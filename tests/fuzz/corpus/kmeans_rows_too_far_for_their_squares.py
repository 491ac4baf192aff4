# AssertionError in judge.py:_check_numbers: transform gives inf
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(846280887)
n = 12
X = rng.normal(size=(n, 12))
X *= 1e180
model = cf.MiniBatchKMeans(n_clusters=3)
model.fit(X)
check_fit(model, X)
