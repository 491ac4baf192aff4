# predict gives inf
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(50, 5)), rng.normal(size=50)
k = np.arange(50) % 2
model = cf.LinearSVC(solver="pegasos").fit(X.astype(np.float32) * 1e30, k)
check_fit(model, X.astype(np.float32) * 1e30)
