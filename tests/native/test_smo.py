"""Blocks of variables in native code: threads, precisions, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from certifit._native import smo

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 6)) * 0.5
SQUARE = np.einsum("ij,ij->i", X, X)
Y = np.where(np.sin(3 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=700) > 0, 1.0, -1.0)
GRAM = np.exp(-np.maximum(SQUARE[:, None] + SQUARE - 2 * X @ X.T, 0.0))


def task(rows, C=1.0, y=Y):
    n = len(rows)
    sides = np.ascontiguousarray(y[rows][None])
    low, high = np.where(sides > 0, 0.0, -C), np.where(sides > 0, C, 0.0)
    beta, g = np.zeros((1, n)), np.zeros(n)
    return smo.Task(np.asarray(rows, dtype=np.int64), sides, sides, low, high, beta, g), beta, g


def solve(tasks, threads=1, *, single=True, block=128, megabytes=1.0, form=2, target=1e-6, rounds=-1):
    targets = np.full(len(tasks), target)
    return smo.solve_features(
        X, SQUARE, form, 1.0, 2, tasks, targets, megabytes * 2**20, rounds, block, single, threads
    )


def by_threads(threads):
    """For the test of teams: one problem with all threads, and five at a time."""
    one, beta, g = task(np.arange(700))
    solve([one], threads)
    many = [task(np.flatnonzero(np.arange(700) % 5 != k)) for k in range(5)]
    solve([each for each, *_ in many], threads)
    return [beta, g, *(b for _, b, _ in many)]


@pytest.mark.parametrize("form", [0, 1, 2])
def test_single_and_double_precision_and_rows_of_others_agree(form):
    K = {0: X @ X.T, 1: (X @ X.T + 1.0) ** 2, 2: GRAM}[form]
    found = []
    for single in (True, False):
        one, beta, g = task(np.arange(700))
        ((rounds, steps, gap),) = solve([one], single=single, form=form)
        assert 0 <= gap <= 1e-6
        assert steps > rounds > 1
        np.testing.assert_allclose(g, K @ beta[0], atol=1e-9)
        assert abs(beta.sum()) < 1e-9
        found.append(g)
    one, _, g = task(np.arange(700))
    smo.solve_rows(lambda rows: np.ascontiguousarray(K[rows]), np.diagonal(K).copy(), one, 1e-6, 1e6, -1, 128, 2)
    for other in found:
        np.testing.assert_allclose(other, g, atol=1e-3)


def test_a_problem_may_be_about_some_rows():
    rows = np.arange(50, 400)
    one, beta, g = task(rows)
    solve([one])
    np.testing.assert_allclose(g, GRAM[np.ix_(rows, rows)] @ beta[0], atol=1e-9)


def test_no_rounds_give_the_scores_of_the_start():
    one, beta, g = task(np.arange(700))
    beta[0, Y > 0] = 0.5
    solve([one], rounds=0)
    np.testing.assert_allclose(g, GRAM @ beta[0], atol=1e-9)


def test_an_error_of_the_callback_leaves_as_itself():
    one, *_ = task(np.arange(700))

    def make(rows):
        raise KeyError("of my own")

    with pytest.raises(KeyError, match="of my own"):
        smo.solve_rows(make, np.ones(700), one, 1e-6, 1e6, -1, 128, 2)


def test_what_does_not_fit_is_refused():
    one, beta, _ = task(np.arange(700))
    with pytest.raises(ValueError, match="one row of K"):
        smo.solve_rows(lambda rows: np.ones((1, 3)), np.ones(700), one, 1e-6, 1e6, -1, 128, 2)
    with pytest.raises(ValueError, match="block"):
        solve([one], block=1)
    with pytest.raises(ValueError, match="threads"):
        solve([one], 0)
    with pytest.raises(ValueError, match="form"):
        solve([one], form=7)
    beta[0, 0] = 9.0
    with pytest.raises(ValueError, match="between low and high"):
        solve([one])
    with pytest.raises(ValueError, match="numbers of rows"):
        solve([task(np.arange(700))[0], smo.Task(np.array([701]), *(np.zeros((1, 1)) for _ in range(5)), np.zeros(1))])
