"""Proximal gradient far beyond what a wanted gap asks for: nothing drifts away."""

from __future__ import annotations

import pytest
from tests.optimization.objective.test_solvers import ALPHA, data

from certifit import LinearModel
from certifit.losses import Huber
from certifit.penalties import L1, NonNegative


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("most", "left"), [(100, 1e-3), (300, 1e-7), (1000, 1e-11)])
def test_many_iterations_stay_at_the_optimum(most: int, left: float) -> None:
    loss = Huber(1.0, curvature=1.0)
    X, y, weight = data(loss, seed=1)
    options = {"penalty": L1(), "alpha": ALPHA, "constraint": NonNegative()}
    found = LinearModel(loss, **options, solver="proximal", tol=0.0, max_iter=most).fit(X, y, sample_weight=weight)
    assert found.certificate_.relative_gap < left
