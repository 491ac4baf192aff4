# MemoryError in factorizations.py:orthogonal: Unable to allocate 62.9 GiB for an array with shape (91880, 91880) and data type float64
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(892919592)
n = 40
X = rng.normal(size=(n, 80))
y = 1e9 + np.exp(rng.normal(size=n))
model = cf.PolynomialRegression(degree=3, alpha=1.0)
model.fit(X, y, sample_weight=np.full(n, 1e300))
check_fit(model, X)
