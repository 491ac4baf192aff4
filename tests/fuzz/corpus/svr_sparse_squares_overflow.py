# OverflowError in machine.py:_scale: (34, 'Numerical result out of range')
# now refused: gamma='scale' needs the variance of X
import numpy as np
import scipy.sparse as sp
import certifit as cf
rng = np.random.default_rng(124645332)
X = sp.coo_array(1e300 * rng.normal(size=(5, 12)))
y = rng.normal(size=5)
model = cf.SVR()
model.fit(X, y)
