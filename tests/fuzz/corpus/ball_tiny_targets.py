# OverflowError in ivanov.py:attempt: (34, 'Numerical result out of range')
import numpy as np
import certifit as cf
from certifit.penalties import L2Ball
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1146377669)
n = 40
X = rng.normal(size=(n, 2))
y = 1.0 * rng.normal(size=n)
y *= 1e-170
model = cf.LinearModel(loss='squared', penalty='l1', alpha=0.02, constraint=L2Ball(radius=1.0))
model.fit(X, y)
check_fit(model, X)
