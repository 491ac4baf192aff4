# does not end within 20 s
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(619041737)
n = 60
X = rng.normal(size=(n, 80))
X[0] *= 1e6
y = 1.0 * np.exp(rng.normal(size=n))
w = None
model = cf.ElasticNet(alpha=0.05)
model.fit(X, y, sample_weight=w)
check_fit(model, X)
