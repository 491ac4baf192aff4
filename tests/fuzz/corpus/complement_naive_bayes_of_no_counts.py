# AssertionError in judge.py:_check_numbers: predict_proba gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
X = np.zeros((2, 12))
model = cf.ComplementNB(alpha=0.0)
model.fit(X, [0, 1])
check_fit(model, X)
