# ValueError in fit.py:_set_gradients: gradients must be finite and curvatures finite and not negative
# now refused: boosting ran away
import numpy as np
import certifit as cf
rng = np.random.default_rng(172878525)
n = 60
X = rng.normal(size=(n, 1))
y = 1.0 * rng.poisson(2.0, size=n)
w = np.full(n, 1e9)
model = cf.GradientBoostingRegressor(n_estimators=8)
model.set_params(learning_rate=1e+150)
model.set_params(subsample=0.5)
model.fit(X, y, sample_weight=w)
