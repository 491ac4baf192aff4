# AssertionError in judge.py:_check_numbers: predict_proba gives nan
# now refused: squares are beyond double precision
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1421294185)
X = 1e150 * rng.normal(size=(5, 12))
y = rng.integers(2, size=5)
model = cf.GaussianNB()
model.fit(X, y, sample_weight=np.full(5, 1e10))
check_fit(model, X)
