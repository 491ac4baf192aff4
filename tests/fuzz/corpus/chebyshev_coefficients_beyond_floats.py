# predict gives inf
# now refused: beyond the range of double precision
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
X = np.array([[-1e-300]])
model = cf.ChebyshevRegressor(fit_intercept=False).fit(X, [1e9])
check_fit(model, X)
