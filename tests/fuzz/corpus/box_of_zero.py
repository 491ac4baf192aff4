# _flapack.error
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(50, 5)), rng.normal(size=50)
model = cf.LinearModel("absolute", "l1", 0.1, constraint=cf.penalties.Box(0.0, 0.0)).fit(X, y)
check_fit(model, X)
