# ValueError in gate.py:check_real: radius must be a number in [0, inf); got inf.
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
from certifit.losses import Huber
from certifit.penalties import L1Ball, L2Ball
rng = np.random.default_rng(0)
X, y = 1e-150 * rng.normal(size=(5, 2)), 1e-170 * rng.normal(size=5)
for ball in (L1Ball(1e150), L2Ball(1e150)):
    model = cf.LinearModel(Huber(0.5), penalty="l1", alpha=1e-12, constraint=ball).fit(X, y)
    check_fit(model, X)
