"""The threads of the kernels: every kernel gives the same with any number of them, and in a process forked after it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import certifit._native.softmax as softmax_kernel
import numpy as np
import pytest
from tests.native.boosting.growers import make
from tests.native.test_chain import Case
from tests.native.test_network import trained
from tests.native.test_optimal import by_threads as best_trees
from tests.native.test_ridge import compressed
from tests.native.test_smo import by_threads
from tests.native.test_softmax import data, descend, run
from tests.native.test_tree import encoded, forest, grow, options, target

from certifit._native import (
    bayes,
    binning,
    coordinate,
    interior_point,
    linkage,
    lloyd,
    local,
    medoids,
    mixture,
    neighbors,
    newton,
    products,
    ridge,
    stochastic,
    tree,
)

RNG = np.random.default_rng(0)
N, D = 60_000, 40
X = RNG.normal(size=(N, D))
Y = X[:, 0] - X[:, 1] + RNG.normal(size=N)
P = np.full(N, 1 / N)
BINS = RNG.integers(0, 30, size=(N, 6)).astype(np.uint8)
LENGTHS = RNG.integers(1, 30, size=500).tolist()
Results = list[np.ndarray]


def passes(threads: int) -> Results:
    w = np.linspace(-1, 1, D)
    return [
        products.scores(X, w, 0.5, threads),
        products.residual(X, Y, P, w, 0.5, threads),
        products.residual_twice(X, Y, P, w, 0.5, threads),
        products.gram(X, P, True, threads),
        *map(np.asarray, products.squares(X, Y, P, np.full(D, 0.1), True, threads, np.inf)),
    ]


def softmax(threads: int) -> Results:
    value, *arrays = run(*data(N, 20, 4), threads=threads)
    return [np.array(value), *arrays, *map(np.asarray, descend(data(N, 20, 4), threads=threads))]


def conjugate(threads: int) -> Results:
    few = X[:20_000].copy()
    few[np.abs(few) < 0.5] = 0.0
    rows, y, p, l2 = compressed(few), Y[:20_000], np.full(20_000, 1 / 20_000), np.full(D, 0.1)
    found = [ridge.iterate(*given, y, p, l2, True, 1e-9, np.inf, 50, threads) for given in ((few,), rows)]
    sums = [
        ridge.gram(*rows, p, threads),
        ridge.pullback(*rows, p[None], threads),
        ridge.residual(*rows, y, p, l2, 0.5, threads),
    ]
    parts = [part for one in (*found, ridge.squares(*rows, y, p, l2, True, threads)) for part in one]
    return [*sums, *map(np.asarray, parts)]


def coordinates(threads: int) -> Results:
    many = np.full(D, 0.001)
    penalty = coordinate.Penalty(many, np.zeros(D), np.full(D, -np.inf), np.full(D, np.inf), 0.0)
    how = coordinate.Options(intercept=True, tolerance=1e-9, max_iter=1000, threads=threads)
    coef, intercept, objective, *_ = coordinate.least_squares(
        coordinate.dense(np.asfortranarray(X)), Y, P, penalty, np.zeros(D), how
    )
    held, level, *_ = coordinate.held_least_squares(X, Y, P, penalty, np.zeros(D), how)
    return [coef, np.array([intercept, objective]), held, np.array([level])]


def stochastic_passes(threads: int) -> Results:
    loss = stochastic.loss("logistic", 0.0, 0.0)
    rows, y = stochastic.dense(X), (Y > 0).astype(float)
    *sums, f = stochastic.evaluate(rows, y, P, loss, np.linspace(-1, 1, D), 0.1, threads)
    conjugate = stochastic.conjugate_sum(y, P, f, loss, 0.0, 0.9, threads)
    return [np.array(conjugate), f, *(np.asarray(part) for part in sums)]


def trees(threads: int) -> Results:
    few = np.ascontiguousarray(X[:8000, :6])
    what = target("squared", Y[:8000])
    one = grow(encoded(few, threads=threads), what, options(6, max_depth=8, threads=threads))
    coded = encoded(few, presort=False, threads=threads)
    many = grow(coded, what, options(6, max_features=2, threads=threads), 5, 8000, 8000)
    view = forest(many, np.zeros(6, dtype=np.uint32))
    return [one[0], one[4], many[0], tree.predict(view, many[4], few, threads), tree.apply(view, few, threads)]


def bins(threads: int) -> Results:
    columns = np.arange(D)
    return list(binning.quantile_edges(X, None, columns, 255, None, threads))


def grower(threads: int) -> Any:
    made = make(BINS, [30] * 6, threads=threads, max_leaves=20)
    made.set_squared(np.zeros(N), Y)
    return made


def grown(made: Any) -> Results:
    made.grow(None, np.ones(6, dtype=np.uint8))
    return [made.tree()["value"], made.rows()]


def boosted(threads: int) -> Results:
    return grown(grower(threads))


def chains(threads: int) -> Results:
    case = Case(LENGTHS, labels=9)
    return list(case.infer(threads).values())


def nearest(threads: int) -> Results:
    found = []
    tree = neighbors.Tree(*neighbors.build(np.ascontiguousarray(X[:, :3]), threads))
    for wide in (True, False):
        distance, row = np.empty((500, 7)), np.empty((500, 7), dtype=np.int64)
        if wide:
            neighbors.panels(X[:9000], X[:500], np.zeros(D), 0.1, distance, row, None, threads)
        else:
            neighbors.nearest(tree, np.ascontiguousarray(X[:500, :3]), "squared", 2.0, distance, row, None, threads)
        found += [distance, row]
    return found


def krylov(threads: int) -> Results:
    K = X[:2000] @ X[:2000].T
    root, constant = np.sqrt(np.abs(X[:2000, :2].T)).copy(), np.zeros((2, 2000))
    basis, diagonal, below = np.zeros((2, 9, 2000)), np.zeros((2, 9)), np.zeros((2, 9))
    basis[:, 0] = 2000**-0.5
    products.lanczos(K, root, constant, basis, diagonal, below, 0, 8, threads)
    return [basis, diagonal, below]


def moments_by_class(threads: int) -> Results:
    held, mean, scatter = np.zeros((3, 4, D))
    group = np.arange(N) % 4
    bayes.moments(X, group, P, held, mean, scatter, threads)
    density, codes = np.zeros((N, 4)), np.zeros((180, 4))
    bayes.gaussian(X, mean, 1.0 / scatter, np.zeros((4, D)), density, threads)
    bayes.count_categories(BINS.astype(np.int64), group, P, np.arange(7) * 30, codes, threads)
    return [held, mean, scatter, density, codes]


def local_fits(threads: int) -> Results:
    rows = np.ascontiguousarray(X[:5120, :3].reshape(20, 256, 3).transpose(0, 2, 1))
    box = np.ascontiguousarray(rows.min(axis=2)), np.ascontiguousarray(rows.max(axis=2))
    table = local.Table(rows, (rows[:, :1] > 0).astype(float), np.ones((20, 256)), *box, 5120, True)
    queries = np.ascontiguousarray(X[:60, :3])
    value, odds, own, missing, spread, width = (np.empty(s) for s in ((60, 1), (60, 1), 60, 60, 60, 60))
    lens = local.Lens("tricube", 1, 0.0, 0.1)
    local.regress(table, lens, queries, value, own, spread, width, threads)
    objective = local.Objective(0.01, 1e-6)
    local.classify(table, lens, objective, np.zeros(1), queries, None, 1.0, odds, missing, threads)
    return [value, own, spread, width, odds, missing]


def clusters(threads: int) -> Results:
    rows, labels = lloyd.Rows64(X, np.linspace(1.0, 2.0, N), threads), np.empty(N, dtype=np.int32)
    start = rows.seed(np.random.default_rng(1).random((12, 4)), threads)
    centers = X[start].copy()
    counts = rows.run(centers, labels, 6, 0.0, threads)
    return [start, centers, labels, np.array(counts)]


def exchanges(threads: int) -> Results:
    D = np.abs(X[:900, :1] - X[:900, 0])
    chosen, labels = np.arange(5), np.empty(900, dtype=np.int32)
    swaps = medoids.swap(D, P[:900], chosen, labels, 100, threads)
    bound = medoids.bound(D, P[:900], chosen, 10, np.inf, threads)
    return [np.array(swaps), chosen, labels, np.array(bound), np.array(medoids.center(D, P[:900], threads))]


def hierarchies(threads: int) -> Results:
    rows = np.ascontiguousarray(X[:3000, :20])
    distances = np.empty((3000, 3000))
    linkage.distances(rows, distances, threads)
    trees = [linkage.single(rows, tree, threads) for tree in (True, False)]
    return [
        *trees,
        linkage.ward(np.ascontiguousarray(X[:3000]), threads),
        linkage.square(distances, "average", threads),
    ]


def mixed(threads: int) -> Results:
    few, mean = np.ascontiguousarray(X[:, :5]), np.ascontiguousarray(X[:3, :5])
    A = np.tile(np.eye(5).ravel(), (3, 1))
    total, sums = mixture.step(few, P, mean, A, np.zeros(3), threads)
    return [np.array(total), sums, mixture.densities(few, mean, A, np.zeros(3), threads)]


def kinks(threads: int) -> Results:
    side = np.ascontiguousarray(Y[:20000] > 0).astype(float)
    lower, upper = np.where(side > 0, 1.0, -np.inf), np.where(side > 0, np.inf, -1.0)
    loss = interior_point.Loss(lower, upper, side, 1.0 - side, np.full(20000, 1 / 20000))
    how = interior_point.Options(intercept=True, tolerance=1e-9, scale=1.0, max_iter=100, threads=threads)
    coef, intercept, theta, *_ = interior_point.ridge(X[:20000], loss, np.full(D, 0.01), how)
    return [coef, np.array(intercept), theta]


def newton_steps(threads: int) -> Results:
    how = newton.Options(intercept=True, tolerance=1e-9, scale=0.7, max_iter=100, threads=threads)
    y, start = (Y > 0).astype(float), np.zeros(D)
    coef, *numbers = newton.minimize("logistic", X, y, P, np.full(D, 0.001), np.full(D, 0.01), start, 0.0, how)
    truncated, *others = newton.truncated("logistic", X, y, P, np.full(D, 0.01), start, 0.0, how, 1e3)
    return [coef, np.array(numbers), truncated, np.array(others)]


def softmax_steps(threads: int) -> Results:
    how = softmax_kernel.Options(intercept=True, tolerance=1e-6, scale=1.0, max_iter=100, threads=threads)
    rows, start = X[: N // 4], np.zeros((5, D + 1))
    y = np.digitize(rows[:, 0], [-1.0, -0.3, 0.3, 1.0])
    x, *numbers = softmax_kernel.truncated(rows, y, P[: N // 4] / P[: N // 4].sum(), np.full(D, 0.01), start, how, 1e3)
    return [x, np.array(numbers)]


KERNELS: dict[str, Callable[[int], Results]] = {
    "products": passes,
    "krylov": krylov,
    "softmax": softmax,
    "ridge": conjugate,
    "softmax steps": softmax_steps,
    "coordinate": coordinates,
    "stochastic": stochastic_passes,
    "tree": trees,
    "binning": bins,
    "boosting": boosted,
    "chain": chains,
    "neighbors": nearest,
    "linkage": hierarchies,
    "lloyd": clusters,
    "medoids": exchanges,
    "mixture": mixed,
    "network": trained,
    "optimal": best_trees,
    "smo": by_threads,
    "bayes": moments_by_class,
    "local": local_fits,
    "interior_point": kinks,
    "newton": newton_steps,
}


def report(work: Callable[[], Results], answer: Connection) -> None:
    answer.send(work())


def in_a_child(work: Callable[[], Results]) -> Results:
    """What a forked child finds; fails where it does not come back."""
    fork = multiprocessing.get_context("fork")
    receive, answer = fork.Pipe(duplex=False)
    child = fork.Process(target=report, args=(work, answer))
    child.start()
    if not receive.poll(100):
        child.kill()
        child.join()
        pytest.fail("the forked child never came back")
    found: Results = receive.recv()
    child.join()
    return found


def assert_equal(found: Results, wanted: Results) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("family", KERNELS)
def test_threads_do_not_show(family: str) -> None:
    wanted = KERNELS[family](1)
    for threads in (2, 5):
        assert_equal(KERNELS[family](threads), wanted)


@pytest.mark.parametrize("family", KERNELS)
def test_kernels_survive_a_fork(family: str) -> None:
    wanted = KERNELS[family](2)  # its threads have been started here once
    assert_equal(in_a_child(lambda: KERNELS[family](2)), wanted)


def test_a_team_that_was_alive_during_the_fork_goes_on() -> None:
    made = grower(2)
    wanted = grown(made)
    assert_equal(in_a_child(lambda: grown(made)), wanted)
    assert_equal(grown(made), wanted)
