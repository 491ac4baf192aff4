# AssertionError in judge.py:_check_numbers: predict gives nan
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(1360604322)
n = 5
X = 1e150 * rng.normal(size=(n, 12))
y = 3e38 * rng.poisson(2.0, size=n)
model = cf.NeuralNetwork(
    loss='huber', hidden=(12,), learning_rate=1e150, epsilon=2.0, tol=1e-6, max_iter=40, dropout=0.1, optimizer='adam',
    dtype='float64', scoring='r2', random_state=0,
)
model.fit(X, y)
check_fit(model, X)
