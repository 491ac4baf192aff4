# ValueError in factorizations.py:_svd: A has a NaN entry
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1749376645)
X, y = rng.normal(size=(5, 12)), rng.normal(size=5)
options = {'hidden': (16, 8), 'learning_rate': 0.01, 'max_iter': 40, 'random_state': 0, 'optimizer': 'sgd', 'dropout': 0.9}
for polish in (False, True):
    model = cf.MLPRegressor(**options, polish=polish).fit(X, y, sample_weight=2.0)
    check_fit(model, X)
