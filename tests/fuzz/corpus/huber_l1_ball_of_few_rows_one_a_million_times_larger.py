# does not end within 20 s
import numpy as np
import scipy.sparse as sp
from numpy import array, inf
import certifit as cf
from certifit.losses import *
from certifit.penalties import *
from tests.models.structured.sequences import trees
from tests.fuzz.judge import check_fit, check_sequences
rng = np.random.default_rng(1655622823)
n = 5
X = rng.normal(size=(n, 12))
X[0] *= 1e6
y = 1.0 * np.exp(rng.normal(size=n))
w = None
model = cf.LinearModel(loss=Huber(delta=0.5, curvature=1.0), penalty='l2', alpha=0.02, constraint=L1Ball(radius=1.0))
model.fit(X, y, sample_weight=w)
check_fit(model, X)
