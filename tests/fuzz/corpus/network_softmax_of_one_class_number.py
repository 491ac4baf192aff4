# AxisError in softmax.py:value: axis 1 is out of bounds for array of dimension 1
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
X = np.random.default_rng(0).normal(size=(5, 3))
model = cf.NeuralNetwork(loss='softmax', hidden=(12,), max_iter=20, polish=True, random_state=0)
model.fit(X, np.zeros(5))
check_fit(model, X)
