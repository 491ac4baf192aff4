"""The likelihood and its slopes against enumeration and finite differences; bounds against optima of another solver."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from tests.oracles.chains import Enumerated

from certifit.optimization.chain.likelihood import DualBound, Likelihood, constant_loss
from certifit.optimization.chain.quasi_newton import minimize
from certifit.optimization.chain.shape import ChainShape, observed_pairs
from certifit.progress import Progress
from certifit.representation.sequences.positions import Positions, SparseRows

K, D, E = 3, 5, 2


def make(kind: str, observed: bool = False, seed: int = 0) -> tuple[Likelihood, np.ndarray]:
    """A likelihood of a few sequences with unary and Markov features, and a point."""
    rng = np.random.default_rng(seed)
    lengths = [1, 3, 4, 2]
    N = sum(lengths)
    table = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.6)
    unary = SparseRows.of(sp.csr_array(table)) if kind != "dense" else table
    edge = rng.normal(size=(N, E)) * (rng.random((N, E)) < 0.5)
    markov = SparseRows.of(sp.csr_array(edge)) if kind in ("markov", "tree", "forbidden") else None
    offset = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    parent = order = None
    if kind == "tree":
        parent = np.array([-1, 1, -1, 1, -1, 0, 0, 1, -1, 0], dtype=np.int32)
        order = np.array([0, 1, 0, 2, 0, 1, 2, 3, 0, 1], dtype=np.int32)
    y = rng.integers(K, size=N).astype(np.int32)
    allowed = np.ones((K + 1, K + 1), dtype=bool)
    if kind == "forbidden":
        y = np.array([0, 0, 1, 1, 2, 2, 0, 1, 1, 1], dtype=np.int32)
        allowed[1, 0] = allowed[1, 2] = False
    free = np.concatenate([allowed[:K, :K].ravel(), np.ones(2 * K, dtype=bool)])
    data = Positions(offset, unary, markov, parent, order)
    pairs = observed_pairs(data.sparse, y, K) if observed else None
    shape = ChainShape(K, D, data.n_markov, allowed, free, pairs)
    p = np.array([0.1, 0.4, 0.3, 0.2])
    w = rng.normal(size=shape.size)
    w[shape.n_unary + shape.n_markov :][~free] = 0.0
    return Likelihood(data, y, p, shape, 1), w


def exact_loss(one: Likelihood, w: np.ndarray) -> float:
    """The loss by enumeration of all labellings."""
    shape, data = one.shape, one.data
    coef = shape.dense_weights(w)
    _, _, A, start, end = shape.split(w)
    A = np.where(shape.allowed[:K, :K], A, -np.inf)
    X = (
        data.dense
        if data.dense is not None
        else sp.csr_array((data.sparse.value, data.sparse.feature, data.sparse.row), shape=data.sparse.shape).toarray()
    )
    edges = np.zeros((data.n_positions, K, K))
    if data.markov is not None:
        Z = sp.csr_array((data.markov.value, data.markov.feature, data.markov.row), shape=data.markov.shape).toarray()
        edges = (Z @ shape.markov_weights(w)).reshape(-1, K, K)
    total = 0.0
    for i in range(data.n_sequences):
        rows = slice(data.offset[i], data.offset[i + 1])
        parent = None if data.parent is None else data.parent[rows].tolist()
        found = Enumerated(X[rows] @ coef, A + edges[rows], start, end, parent)
        total += one.p[i] * (found.log_z - found.scores[found.paths.index(tuple(one.y[rows].tolist()))])
    return total


KINDS = ["sparse", "dense", "markov", "tree", "forbidden"]


# Dense features have all weights, observed or not.
@pytest.mark.parametrize(
    ("kind", "observed"), [(kind, seen) for kind in KINDS for seen in (False, True) if (kind, seen) != ("dense", True)]
)
def test_value_and_slope(kind: str, observed: bool) -> None:
    one, w = make(kind, observed)
    value, slope = one(w)
    assert value == pytest.approx(exact_loss(one, w), rel=1e-12)
    free = np.ones(w.shape[0], dtype=bool)
    free[one.shape.n_unary + one.shape.n_markov :] = one.shape.free
    for j in range(w.shape[0]):
        step = np.zeros_like(w)
        step[j] = 1e-6
        difference = (exact_loss(one, w + step) - exact_loss(one, w - step)) / 2e-6
        assert slope[j] == pytest.approx(difference if free[j] else 0.0, abs=2e-8)


@pytest.mark.parametrize("threads", [2, 5])
@pytest.mark.parametrize("kind", ["sparse", "dense", "markov", "tree"])
def test_threads_change_nothing(kind: str, threads: int) -> None:
    one, w = make(kind)
    many = Likelihood(one.data, one.y, one.p, one.shape, threads)
    value, slope = one(w)
    other, other_slope = many(w)
    assert value == other
    np.testing.assert_array_equal(slope, other_slope)


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.03), (0.02, 0.0), (0.01, 0.02)])
def test_minimum_and_bound_against_another_solver(l1: float, l2: float) -> None:
    """The same objective in split variables, by SciPy; every bound on the way is below its optimum."""
    one, _ = make("markov")
    dual = DualBound(one.p, l1, l2)
    bounds: list[float] = []

    def bound(w: np.ndarray, f: float, g: np.ndarray) -> float:
        bounds.append(dual.add(w, f, g, one.losses))
        return bounds[-1]

    found = minimize(
        one,
        np.zeros(one.shape.size),
        l1=l1,
        l2=l2,
        curvature=np.ones(one.shape.size),
        bound=bound,
        unit=1.0,
        tol=1e-9,
        max_iter=2000,
        clock=Progress(),
    )

    def split(v: np.ndarray) -> tuple[float, np.ndarray]:
        a, b = np.split(v, 2)
        f, g = one(a - b)
        slope = g + l2 * (a - b)
        value = f + 0.5 * l2 * float((a - b) @ (a - b)) + l1 * float(v.sum())
        return value, np.concatenate([slope + l1, -slope + l1])

    start = np.zeros(2 * one.shape.size)
    other = scipy.optimize.minimize(
        split,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * start.shape[0],
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
    )
    assert found.objective == pytest.approx(other.fun, rel=1e-7)
    # With l1 the gap is of first order in the distance, which rounding of the objective leaves at 1e-8.
    assert found.objective - found.bound <= (2e-7 if l1 > 0 else 1e-9)
    assert max(bounds) <= other.fun + 1e-9
    if l1 > 0:
        assert (found.w == 0).sum() > 0


def test_strong_convexity_and_the_fenchel_gap_are_the_same_number() -> None:
    one, w = make("sparse", seed=3)
    alpha = 0.1
    f, g = one(w)
    bound = DualBound(one.p, 0.0, alpha).add(w, f, g, one.losses)
    slope = g + alpha * w
    objective = f + 0.5 * alpha * w @ w
    assert max(objective - slope @ slope / (2 * alpha), 0.0) == pytest.approx(bound, abs=1e-12)


def test_the_entropy_of_the_model_is_known() -> None:
    one, w = make("sparse", seed=4)
    f, g = one(w)
    coef, X = one.shape.dense_weights(w), one.data.sparse
    table = sp.csr_array((X.value, X.feature, X.row), shape=X.shape).toarray()
    _, _, A, start, end = one.shape.split(w)
    entropy = sum(
        one.p[i] * Enumerated(table[one.data.offset[i] : one.data.offset[i + 1]] @ coef, A, start, end).entropy
        for i in range(4)
    )
    assert f - w @ g == pytest.approx(entropy, rel=1e-10)


def test_the_best_constant() -> None:
    y, weight = np.array([0, 0, 1, 2]), np.array([0.5, 0.25, 0.25, 1.0])
    share = np.array([0.75, 0.25, 1.0]) / 2.0
    assert constant_loss(y, weight, 4) == pytest.approx(-2.0 * np.sum(share * np.log(share)))
