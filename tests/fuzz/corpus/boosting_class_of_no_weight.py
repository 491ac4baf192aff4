# ValueError in fit.py:__init__: weight must be finite and positive
# now refused: class_weight gives a class weight 0
import numpy as np
import certifit as cf
rng = np.random.default_rng(1137165703)
n = 60
X = rng.normal(size=(n, 3))
y = rng.integers(3, size=n)
w = np.ones(n)
model = cf.GradientBoostingClassifier(n_estimators=8)
model.set_params(class_weight={0: 0.0, 1: 1.0})
model.fit(X, y, sample_weight=w)
