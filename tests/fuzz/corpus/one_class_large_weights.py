# OverflowError in one_class.py:fit: (34, 'Numerical result out of range')
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1799892824)
n = 40
X = rng.normal(size=(n, 80))
y = None
w = np.full(n, 1e300)
model = cf.OneClassSVM()
model.fit(X, y, sample_weight=w)
check_fit(model, X)
