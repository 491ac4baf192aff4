# does not end within 20 s
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y, w = rng.normal(size=(60, 5)) * 1e150, rng.normal(size=60), 10.0 ** rng.uniform(-20, 20, size=60)
model = cf.ElasticNet(alpha=0.1).fit(X, y, sample_weight=w)
check_fit(model, X)
