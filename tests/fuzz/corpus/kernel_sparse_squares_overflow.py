# OverflowError in basic.py:_gamma: (34, 'Numerical result out of range')
# now refused: gamma='scale' needs the variance of X
import numpy as np
import scipy.sparse as sp
import certifit as cf
rng = np.random.default_rng(24001338)
X = sp.csr_array(1e180 * rng.normal(size=(12, 2)))
model = cf.RandomFourierFeatures()
model.fit(X, None)
