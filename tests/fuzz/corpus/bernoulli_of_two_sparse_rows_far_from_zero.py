# does not end within 20 s
import numpy as np
import scipy.sparse as sp
from numpy import array, inf
import certifit as cf
from certifit.losses import *
from certifit.penalties import *
from tests.models.structured.sequences import trees
from tests.fuzz.judge import check_fit, check_sequences
rng = np.random.default_rng(444761446)
n = 2
X = rng.normal(size=(n, 12))
X += 1e9
X = sp.csr_array(X); X.indices = X.indices[::-1].copy()
y = 1.0 * rng.normal(size=n)
y = np.rint(np.exp(y))
w = None
model = cf.GLM(family='laplace', alpha=0.02)
model.set_params(family='bernoulli')
model.set_params(fit_intercept=False)
model.set_params(solver='prox_newton')
model.set_params(n_jobs=2)
model.fit(X, y, sample_weight=w)
check_fit(model, X)
