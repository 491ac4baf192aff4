# predict_proba gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
X = 1e156 * np.array([[1e6, -2e5], [0.3, 1.0], [-0.8, 0.1]])
model = cf.NearestCentroid().fit(X, [0, 1, 2])
check_fit(model, X)
assert (model.predict(X) == [0, 1, 2]).all()
