# LinAlgError in bound.py:spectral_bound: Internal Error.
import numpy as np
import certifit as cf
X = np.zeros((60, 1))
model = cf.SpectralClustering(n_neighbors=11, n_vectors=10)
model.fit(X)
