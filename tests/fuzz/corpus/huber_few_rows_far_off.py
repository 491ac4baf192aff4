# does not end within 20 s
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
X = np.array([[-1.5e12], [1.4e10], [2.0e12]])
model = cf.HuberRegressor(delta=1e-12, tol=0.0).fit(X, np.array([1e8, 0.0, 1.0]))
check_fit(model, X)
