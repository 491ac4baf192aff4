# does not end within 20 s
import numpy as np
import scipy.sparse as sp
from numpy import array, inf
import certifit as cf
from certifit.losses import *
from certifit.penalties import *
from tests.models.structured.sequences import trees
from tests.fuzz.judge import check_fit, check_sequences
rng = np.random.default_rng(1116579743)
n = 3
X = rng.normal(size=(n, 12))
X[0] *= 1e6
y = 1.0 * rng.normal(size=n)
w = None
model = cf.HuberRegressor()
model.set_params(alpha=0.1)
model.set_params(penalty='elasticnet')
model.set_params(fit_intercept=False)
model.fit(X, y, sample_weight=w)
check_fit(model, X)
