# does not end within 20 s
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(5, 12)), 1e9 + rng.normal(size=5)
model = cf.HuberRegressor(delta=1e-6, scale=1.0, penalty="elasticnet", alpha=1e-12)
model.fit(X, y)
check_fit(model, X)
