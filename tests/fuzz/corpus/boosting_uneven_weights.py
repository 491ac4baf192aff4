# ValueError in fit.py:_set_gradients: gradients must be finite and curvatures finite and not negative
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1142669894)
n = 60
X = rng.normal(size=(n, 1))
X[rng.random(X.shape) < 0.7] = 0.0
y = rng.integers(5, size=n)
y = (y > 0)
w = 10.0 ** rng.uniform(-20, 20, size=n)
model = cf.GradientBoostingClassifier(n_estimators=8)
model.fit(X, y, sample_weight=w)
check_fit(model, X)
