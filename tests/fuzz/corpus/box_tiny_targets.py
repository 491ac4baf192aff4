# a coefficient below its bound, certified
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(50, 5)), rng.normal(size=50)
model = cf.LinearModel(constraint=cf.penalties.Box(0.5, 2.0)).fit(X, y * 1e-150)
check_fit(model, X)
