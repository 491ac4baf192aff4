# AxisError
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(50, 5)), rng.normal(size=50)
model = cf.BaggingClassifier(n_estimators=3, oob_score=True, random_state=0).fit(X[:1], [1])
check_fit(model, X[:1])
