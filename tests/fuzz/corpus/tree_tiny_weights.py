# OverflowError
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(50, 5)), rng.normal(size=50)
model = cf.DecisionTreeRegressor().fit(X, y, sample_weight=np.full(50, 1e-300))
check_fit(model, X)
