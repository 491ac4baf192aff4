# predict gives inf
# now refused: beyond the range of float32
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(50, 5)), rng.normal(size=50)
model = cf.Ridge().fit(X.astype(np.float32), y * 3e38)
check_fit(model, X.astype(np.float32))
