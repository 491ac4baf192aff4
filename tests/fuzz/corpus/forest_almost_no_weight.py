# predict_proba gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(50, 5)), rng.normal(size=50)
k, w = 1 * (np.arange(50) == 0), np.where(np.arange(50) == 0, 1e-18, 1.0)
model = cf.RandomForestClassifier(5, class_weight="balanced", criterion="entropy", random_state=0).fit(X, k, sample_weight=w)
check_fit(model, X)
