# does not end within 20 s
import numpy as np
import scipy.sparse as sp
from numpy import array, inf
import certifit as cf
from certifit.losses import *
from certifit.penalties import *
from tests.fuzz.judge import check_fit, check_sequences
from tests.models.structured.sequences import trees
rng = np.random.default_rng(2138242275)
n = 60
X = rng.normal(size=(n, 80))
X[:, -1] = X[:, 0]
y = 1.0 * np.exp(rng.normal(size=n))
y *= 3e38
w = None
model = cf.HuberRegressor()
model.set_params(delta=1e-06)
model.set_params(penalty=None)
model.set_params(n_jobs=1)
model.fit(X, y, sample_weight=w)
check_fit(model, X)
