# ValueError in stepwise.py:_search: min() arg is an empty sequence
import numpy as np
import certifit as cf
rng = np.random.default_rng(1440961210)
X = rng.normal(size=(2, 2))
y = 1.0 * rng.poisson(2.0, size=2)
model = cf.StepwiseSelection(cv=3, direction="floating").fit(X, y, sample_weight=[1e-18, 1.0])
assert np.isfinite(model.error_)
