"""The stochastic pass: its single step against finite differences, and what it is worth as a start."""

from __future__ import annotations

import numpy as np
import pytest
from tests.optimization.chain.test_likelihood import exact_loss, make

from certifit import LinearChainCRF
from certifit.optimization.chain.descent import descend, first_pass
from certifit.optimization.chain.likelihood import Likelihood, constant_loss


@pytest.mark.parametrize("kind", ["sparse", "markov", "tree", "forbidden"])
def test_one_visit_is_one_step_down_the_slope(kind: str) -> None:
    full, w = make(kind)
    alpha, rate, visit = 0.1, 0.05, 2
    one = Likelihood(full.data, full.y, np.eye(full.data.n_sequences)[visit], full.shape, 1)
    eps, slope = 1e-5, np.empty(w.shape[0])
    for j in range(w.shape[0]):
        step = np.zeros(w.shape[0])
        step[j] = eps
        slope[j] = (exact_loss(one, w + step) - exact_loss(one, w - step)) / (2 * eps)
    slope[full.shape.n_unary + full.shape.n_markov :][~full.shape.free] = 0.0
    moved = w.copy()
    moved[full.shape.n_unary + full.shape.n_markov :][~full.shape.free] = 0.0
    wanted = moved - rate * (slope + alpha * moved)
    loss, t = descend(
        full.sequences,
        full.shape,
        full.y,
        np.array([visit], dtype=np.uint32),
        moved,
        alpha=alpha,
        rate=rate,
        t=0.0,
    )
    np.testing.assert_allclose(moved, wanted, atol=1e-8)
    assert t == 1.0
    assert loss == pytest.approx(exact_loss(one, w), rel=1e-10)


def many(n: int = 300, weight: float = 1.0) -> tuple[Likelihood, float]:
    rng = np.random.default_rng(1)
    steps, symbols = rng.dirichlet(np.full(4, 0.3), size=4), rng.dirichlet(np.full(30, 0.1), size=4)
    X, y = [], []
    for _ in range(n):
        path = [int(rng.integers(4))]
        for _ in range(int(rng.integers(1, 9))):
            path.append(int(rng.choice(4, p=steps[path[-1]])))
        X.append([{f"{j}={rng.choice(30, p=symbols[k])}": weight for j in range(3)} for k in path])
        y.append(path)
    model = LinearChainCRF(alpha=1.0)
    data = model._fit_data(X, y, None, None, None)
    one = Likelihood(data.positions, data.y, data.p, model._shape(data), 1)
    return one, constant_loss(data.y, data.position_weight, 4)


@pytest.mark.parametrize("weight", [1.0, 30.0])
def test_a_pass_ends_nearer_to_the_optimum_than_it_began(weight: float) -> None:
    one, unit = many(weight=weight)
    alpha = 1e-3 * weight**2
    w = first_pass(one, alpha, unit)
    value = one(w)[0] + 0.5 * alpha * float(w @ w)
    assert value < 0.6 * one(np.zeros(w.shape[0]))[0]


def test_a_pass_that_learns_nothing_is_forgotten() -> None:
    """Against a unit that no model reaches; where transitions alone matter and its steps are too long; where squares overflow."""
    assert not first_pass(many()[0], 1e-3, 0.0).any()
    faint, unit = many(weight=0.01)
    assert not first_pass(faint, 1e-7, unit).any()
    huge, unit = many(40, weight=1e200)
    assert np.isfinite(first_pass(huge, 1e-3, unit)).all()


def test_visits_follow_the_weights() -> None:
    """A sequence of weight zero leaves no trace: its features keep their weight at zero."""
    one, unit = many(50)
    p = one.p.copy()
    p[:25] = 0.0
    rows = one.data.sparse
    late = np.unique(rows.feature[rows.row[one.data.offset[25]] :])
    w = first_pass(Likelihood(one.data, one.y, p / p.sum(), one.shape, 1), 1e-3, unit)
    touched = np.flatnonzero(np.add.reduceat(np.abs(w[: one.shape.n_unary]), one.shape.pairs.first[:-1]))
    assert set(touched) <= set(late)
    assert len(touched) > 0
