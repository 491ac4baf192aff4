"""Equal rows once, and no columns of nothing: the same value at every point, the same bound, the same fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.optimization.interior_point.test_ridge import LOSSES
from tests.oracles.convex import optimum

from certifit import LinearModel
from certifit.losses import Hinge, Loss
from certifit.optimization.objective.forms.copies import WithoutCopies, without_copies
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer
from certifit.penalties import L2, ElasticNet

KINDS, TIMES = 30, 40


def copied(loss: Loss, *, empty: bool = False) -> tuple[Any, Any, Any]:
    """Rows of few kinds in any order, weights; zeros of both signs; every other column without entries if `empty`."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(KINDS, 6)), 1)
    X[np.abs(X) < 0.7] = 0.0
    if empty:
        X[:, ::2] = 0.0
    y = X @ rng.normal(size=6) + rng.normal(size=KINDS)
    order = rng.permutation(np.repeat(np.arange(KINDS), TIMES))
    X, y = X[order], (y[order] > 0).astype(float) if isinstance(loss, Hinge) else np.round(y[order], 1)
    X[::3] = np.where(X[::3] == 0.0, -0.0, X[::3])
    return X, y, rng.integers(1, 4, X.shape[0]).astype(float)


def problem(X: Any, y: Any, weight: Any, loss: Loss, penalty: Any = None) -> Problem:
    return Problem(X, y, weight / weight.sum(), loss, Regularizer.of(penalty or L2(), 0.02, None, X.shape[1]), True)


@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
@pytest.mark.parametrize("name", LOSSES)
def test_the_value_at_every_point(name: str, form: Any) -> None:
    X, y, weight = copied(LOSSES[name], empty=True)
    whole = problem(form(X), y, weight, LOSSES[name], L2(weights=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    found = without_copies(whole)
    assert isinstance(found, WithoutCopies)
    kinds = np.unique(np.c_[X + 0.0, y], axis=0).shape[0]
    assert kinds <= KINDS
    assert found.problem.shape == (kinds, 3 if form is sp.csr_array else 6)
    assert found.problem.p.sum() == pytest.approx(1.0, rel=1e-15)
    rng = np.random.default_rng(1)
    for _ in range(3):
        w, b = rng.normal(size=6), rng.normal()
        w[::2] = 0.0  # of columns without entries
        few, _ = found.enter((w, b))
        assert found.problem.at(few, b).objective == pytest.approx(whole.at(w, b).objective, rel=1e-13)


@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
@pytest.mark.parametrize("name", LOSSES)
def test_the_optimum(name: str, form: Any) -> None:
    loss = LOSSES[name]
    X, y, weight = copied(loss, empty=True)
    value, *_ = optimum(X, y, weight, loss, L2(), 0.02)
    model = LinearModel(loss, "l2", 0.02, tol=1e-9).fit(form(X), y, sample_weight=weight)
    assert model.certificate_.certified
    assert abs(model.certificate_.objective - value) <= 1e-7 * value
    assert model.certificate_.bound <= value + 1e-9 * value
    coef = np.ravel(model.coef_)
    assert coef.shape == (6,)
    assert not coef[::2].any()
    f = X @ coef + float(np.ravel(model.intercept_)[0])
    said = weight / weight.sum() @ loss.value(y, f) + 0.01 * coef @ coef
    assert model.certificate_.objective == pytest.approx(said, rel=1e-12)


def test_what_has_no_copies_stays() -> None:
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(500, 4)), np.ones(500)
    y = (X[:, 0] > 0).astype(float)
    assert without_copies(problem(X, y, weight, Hinge())) is None
    twice = np.vstack([X, X])
    assert without_copies(problem(twice, np.r_[y, 1 - y], np.ones(1000), Hinge())) is None  # other targets
    assert without_copies(problem(twice, np.r_[y, y], np.ones(1000), Hinge(), ElasticNet(0.5))) is None


def test_rows_that_differ_in_one_place() -> None:
    """A code is a sum: only the comparison of the rows themselves makes them copies."""
    X = np.zeros((4000, 4))
    X[np.arange(4000), np.arange(4000) % 4] = 1.0 + np.arange(4000) % 3
    y = (np.arange(4000) % 2).astype(float)
    found = without_copies(problem(X, y, np.ones(4000), Hinge()))
    assert found is not None
    assert found.which is not None
    kept = found.problem.X
    np.testing.assert_array_equal(kept[found.which], X)
    np.testing.assert_array_equal(found.problem.y[found.which], y)
    assert found.problem.shape[0] == len(np.unique(np.c_[X, y], axis=0))
