# AssertionError in judge.py:_check_numbers: predict_proba gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
X = np.random.default_rng(721354231).normal(size=(3, 2))
y = np.array([0, 1, 0])
model = cf.RandomForestClassifier(n_estimators=8, random_state=0)
model.set_params(class_weight={0: 0.0, 1: 1.0})
model.fit(X, y)
check_fit(model, X)
