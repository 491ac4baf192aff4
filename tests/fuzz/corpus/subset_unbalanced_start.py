# LinAlgError in minorant.py:_inverse_root: Eigenvalues did not converge
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1698993337)
X = rng.normal(size=(3, 12))
X[0] *= 1e6
y = 1.0 * rng.poisson(2.0, size=3)
w = 10.0 ** rng.uniform(-20, 20, size=3)
model = cf.BestSubset(max_nodes=20000, max_size=2, loss='gamma').fit(X, y, sample_weight=w)
check_fit(model, X)
