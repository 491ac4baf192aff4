# MemoryError: 3.64 TiB
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(50, 5)), rng.normal(size=50)
model = cf.BaggingRegressor(n_estimators=3, random_state=0).fit(X, y, sample_weight=np.full(50, 1e10))
check_fit(model, X)
