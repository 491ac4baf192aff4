# IndexError
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(50, 5)), rng.normal(size=50)
model = cf.DecisionTreeRegressorCV(criterion="poisson", cv=3).fit(X, 1e9 + np.abs(y))
check_fit(model, X)
