# decision_function gives inf
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(787409585)
X = rng.normal(size=(2, 2)).astype(np.float32)
y = rng.integers(2, size=2)
w = rng.random(2)
model = cf.GradientBoostingClassifier(n_estimators=8, learning_rate=1e150, min_samples_leaf=0.0)
model.fit(X, y, sample_weight=w)
check_fit(model, X)
