# ValueError in model.py:_one_against_rest: y must be >= 0 for the Poisson loss; got -1 at row 1. Counts and rates are never negative.
# now refused: y must be >= 0 for the Poisson loss
import numpy as np
import certifit as cf
rng = np.random.default_rng(324153424)
X, y = rng.normal(size=(60, 12)), rng.integers(3, size=60)
model = cf.SGDClassifier(loss="poisson", n_jobs=2)
model.fit(X, y)
