# LinAlgError in gaussian.py:of: Eigenvalues did not converge
# now refused: squares are beyond double precision
import numpy as np
import certifit as cf
rng = np.random.default_rng(44596558)
n = 5
X = rng.normal(size=(n, 3))
X *= 1e150
y = rng.integers(5, size=n)
w = np.full(n, 1e300)
model = cf.QDA()
model.fit(X, y, sample_weight=w)
