# does not end within 20 s
import numpy as np
import certifit as cf
from certifit.losses import Huber
from certifit.penalties import L1Ball
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(500318485)
n = 60
X = 1e30 * rng.normal(size=(n, 3))
y = 1e150 * np.exp(rng.normal(size=n))
model = cf.LinearModel(loss=Huber(delta=0.5), penalty="l2", alpha=0.02, constraint=L1Ball(radius=1.0))
model.fit(X, y)
check_fit(model, X)
