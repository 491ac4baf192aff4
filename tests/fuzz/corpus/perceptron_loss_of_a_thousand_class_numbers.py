# MemoryError in multiclass.py:optimal_constant: Unable to allocate 19.7 GiB for an array with shape (1205604, 2196) and data type float64
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
X = np.random.default_rng(0).normal(size=(4, 2))
for loss in ("multiclass_perceptron", "multiclass_hinge"):
    model = cf.NeuralNetwork(loss=loss, hidden=(3,), max_iter=2, random_state=0).fit(X, np.array([0, 3, 1097, 3]))
    check_fit(model, X)
