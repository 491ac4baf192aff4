# LinAlgError in least_squares.py:separable_part: Eigenvalues did not converge
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1972975746)
n = 40
X = rng.normal(size=(n, 5))
X[:, -1] = X[:, 0]
y = 1.0 * rng.poisson(2.0, size=n)
y[0] = 1e8
model = cf.BestSubset(max_nodes=20000, max_size=2, loss='poisson', time_limit=0.5)
model.fit(X, y)
check_fit(model, X)
