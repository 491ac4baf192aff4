# SIGSEGV: an index beyond the columns
# now refused: damaged sparse matrix
import scipy.sparse as sp
import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(50, 5)), rng.normal(size=50)
S = sp.csr_array(X)
S.indices[:1] = 10**6
check_fit(cf.Lasso().fit(S, y), S)
