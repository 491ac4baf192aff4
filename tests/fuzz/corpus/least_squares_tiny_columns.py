# coefficients of infinity, certified
# now refused: beyond the range of double precision
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(50, 5)), rng.normal(size=50)
model = cf.LinearRegression().fit(X * 1e-300, y * 1e10)
check_fit(model, X * 1e-300)
