# does not end within 20 s
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1350918409)
n = 2
X = rng.normal(size=(n, 80))
y = 1.0 * np.exp(rng.normal(size=n))
model = cf.PolynomialRegression(alpha=1e-12)
model.fit(X, y)
check_fit(model, X)
