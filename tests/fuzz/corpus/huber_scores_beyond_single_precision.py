# ValueError in descent.py:native: tol must not be negative
import numpy as np
import scipy.sparse as sp
import certifit as cf
from certifit.losses import *
rng = np.random.default_rng(1567017825)
n = 3
X = rng.normal(size=(n, 12))
X = sp.csr_array(X.astype(np.float32))
y = 1.0 * np.exp(rng.normal(size=n))
y *= 3e38
w = None
model = cf.LinearModel(loss=Huber(delta=0.5, curvature=1.0), penalty='elasticnet', alpha=0.02)
model.set_params(fit_intercept=False)
model.set_params(max_iter=1)
model.fit(X, y, sample_weight=w)
