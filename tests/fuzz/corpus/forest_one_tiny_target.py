# OverflowError in targets.py:target_of_numbers: (34, 'Numerical result out of range')
import numpy as np
import certifit as cf
rng = np.random.default_rng(59936021)
n = 1
X = rng.normal(size=(n, 2))
y = 1.0 * rng.normal(size=n)
y *= 1e-170
w = np.where(np.arange(n) == 0, 1.0, 0.0)
model = cf.RandomForestRegressor(n_estimators=8)
model.fit(X, y, sample_weight=w)
