# OverflowError in core.py:__init__: (34, 'Numerical result out of range')
import numpy as np
import certifit as cf
from certifit.penalties import L2Ball
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
n = 12
X = 1e30 * rng.normal(size=(n, 1))
y = 1.0 + rng.poisson(2.0, size=n)
w = 10.0 ** rng.uniform(-20, 20, size=n)
model = cf.LinearModel("relative", penalty="l2", alpha=1e-12, constraint=L2Ball(1e150)).fit(X, y, sample_weight=w)
check_fit(model, X)
