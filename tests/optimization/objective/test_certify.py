"""What rounding of the scores may do is looked for where it can be seen."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.evaluation.losses import Loss, Squared
from certifit.evaluation.losses.labels.margin import HardLogistic
from certifit.evaluation.penalties import L2
from certifit.optimization.objective import certify
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer


@pytest.mark.parametrize("loss", [Squared(), HardLogistic()])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e6, 1e9])
def test_the_largest_entry_bounds_what_sparse_rows_say(loss: Loss, size: float) -> None:
    rng = np.random.default_rng(0)
    X = sp.random(200, 30, density=0.2, random_state=0, format="csr", data_rvs=rng.standard_normal)
    y, w = rng.integers(0, 2, 200).astype(float), size * rng.normal(size=30)
    problem = Problem(X, y, np.full(200, 1 / 200), loss, Regularizer.of(L2(), 1e-9, None, 30), True)
    state = problem.at(w, 0.3)
    doubt = certify._doubt(problem, w, 0.3, state.objective, state)
    assert doubt > 0.0
    harmless = certify._harmless(problem, w, 0.3, state.objective)
    assert doubt <= certify.UNSEEN * max(problem.scale, state.objective) or not harmless
    assert harmless or size > 1.0
    # The same numbers beside terms that cancel: a column that is large, and one that takes it back.
    far = sp.hstack([X, np.full((200, 1), 1e9), np.full((200, 1), 1e9)], format="csr")
    beside = Problem(far, y, problem.p, loss, Regularizer.of(L2(), 1e-9, None, 32), True)
    assert not certify._harmless(beside, np.append(w, [1e3, -1e3]), 0.3, state.objective)
