# does not end within 20 s: a proof that nothing separates was mended by eigenvalues of the columns
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1480797931)
n = 5
X = rng.normal(size=(n, 5000))
X = X[np.zeros(len(X), dtype=int)]
X[0] *= 1e6
y = np.array(['no', 'yes'])[rng.integers(2, size=n)]
model = cf.Perceptron(max_iter=50, tol=0.1, random_state=0)
model.fit(X, y)
check_fit(model, X)
