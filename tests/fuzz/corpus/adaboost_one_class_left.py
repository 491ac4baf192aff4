# predict_proba gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(50, 5)), rng.normal(size=50)
k, w = np.arange(50) % 2, 1.0 * (np.arange(50) % 2)
model = cf.AdaBoostClassifier(algorithm="real", n_estimators=3).fit(X, k, sample_weight=w)
check_fit(model, X)
