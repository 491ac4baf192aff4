# certified at 1.5e-01 from the optimum: the scale was that of the constant −800
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_proof
rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
y = X[:, 0] + rng.normal(size=20) - 1e6
model = cf.LinearModel('squared', penalty='l1', alpha=0.1).fit(X, y)
check_proof(model, X, y, None)
