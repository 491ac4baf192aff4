# half a second was the limit, and 18 were spent on the first fit of all columns
import time
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(478845370)
X, y = rng.normal(size=(60, 80)), np.arange(60) % 12
start = time.process_time()
model = cf.BestSubsetClassifier(max_nodes=15, max_size=2, time_limit=0.5).fit(X, y)
assert time.process_time() - start < 12.0
check_fit(model, X)
