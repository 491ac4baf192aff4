"""Newton's methods end where rounding hides what their steps gain, whatever gap is wanted and however many are allowed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from certifit import LinearModel
from certifit.penalties import L1, L2, NoPenalty, Penalty

ALLOWED, SEEDS = 2000, 8


def rows(loss: str, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 4)) * [0.3, 1.0, 2.0, 0.7]
    score = 0.3 * X @ rng.normal(size=4) + 0.5
    if loss == "poisson":
        return X, rng.poisson(np.exp(score)).astype(float)
    return X, (score + rng.normal(size=60) > 0.5).astype(float)


@pytest.mark.filterwarnings("ignore::certifit.base.ConvergenceWarning")  # no gap is as small as the one asked for
@pytest.mark.parametrize(
    ("solver", "penalty"),
    [("newton", L2()), ("newton", NoPenalty()), ("newton_cg", L2()), ("prox_newton", L1())],
    ids=str,
)
def test_steps_end_at_rounding(solver: str, penalty: Penalty) -> None:
    notes = []
    for loss, seed in itertools.product(("poisson", "logistic", "squared_hinge"), range(SEEDS)):
        model = LinearModel(loss=loss, penalty=penalty, alpha=0.1, solver=solver, tol=1e-18, max_iter=ALLOWED)
        found = model.fit(*rows(loss, seed)).certificate_
        assert found.iterations < 50
        assert found.gap <= 1e-13
        notes.append(found.note)
    assert any("rounding" in note for note in notes)  # the others reach a gap of 0
