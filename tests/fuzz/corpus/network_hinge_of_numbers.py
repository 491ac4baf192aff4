# ValueError in multiclass.py:optimal_constant: 'list' argument must have no negative elements
# now refused: y must hold class numbers
import numpy as np
import certifit as cf
rng = np.random.default_rng(671741699)
n = 5
X = rng.normal(size=(n, 5))
y = 1.0 * rng.normal(size=n)
w = np.ones(n)
model = cf.NeuralNetwork(loss='huber', hidden=(12,), learning_rate=0.02, max_epochs=40, dropout=0.1, optimizer='adamw')
model.set_params(loss='multiclass_hinge')
model.fit(X, y, sample_weight=w)
