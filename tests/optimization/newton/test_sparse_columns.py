"""Newton's method on sparse columns in one native call: the optimum, and bounds that hold."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.optimization.newton.problems import LOSSES, SPARSE, check_bounds_far_from_the_optimum, check_optimum, drawn
from tests.peak import bytes_a_row, needs_proc

from certifit._native import newton as native
from certifit.evaluation.losses import Loss
from certifit.evaluation.losses.labels.margin import HardLogistic
from certifit.evaluation.penalties import L1, L2, NonNegative, Penalty
from certifit.optimization.newton.few_columns import on_sparse_columns
from certifit.optimization.newton.proximal import prox_newton
from certifit.optimization.objective.problem import Problem, Solution
from certifit.optimization.objective.regularizer import Regularizer
from certifit.progress import Progress


def problem(
    loss: Loss, penalty: Penalty, alpha: float = 0.01, *, intercept: bool = True, n: int = 120, d: int = 30
) -> Problem:
    rng = np.random.default_rng(0)
    X = sp.random(n, d, density=0.15, format="csc", random_state=1, data_rvs=rng.standard_normal)
    f = X @ rng.standard_normal(d) * min(1.0, (30 / d) ** 0.5) - 0.3
    return drawn(X, f, rng, loss, penalty, alpha, intercept)


def solved(of: Problem, tol: float = 1e-9, max_iter: int = 100) -> Solution | None:
    return on_sparse_columns(of, of.start(), tol * of.scale, max_iter, "prox_newton")


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", SPARSE)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum(loss: str, penalty: str, intercept: bool) -> None:
    of = problem(LOSSES[loss], SPARSE[penalty], intercept=intercept)
    check_optimum(of, solved(of), SPARSE[penalty], 0.01)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", SPARSE)
@pytest.mark.parametrize("loss", LOSSES)
def test_far_more_columns_than_rows(loss: str, penalty: str, intercept: bool) -> None:
    """Working sets are solved as problems of their own; what they prove holds for all columns."""
    of = problem(LOSSES[loss], SPARSE[penalty], 0.004, intercept=intercept, n=50, d=500)
    check_optimum(of, solved(of, 1e-8), SPARSE[penalty], 0.004, apart=2e-8, above=1e-9, gap=1e-8)


def test_a_start_that_uses_most_columns() -> None:
    """Then there is no small working set, and the bound of a set that was given up still holds."""
    of = problem(HardLogistic(), L1(), 0.004, n=50, d=500)
    w = np.random.default_rng(0).standard_normal(500)
    found = on_sparse_columns(of, (w, 0.3), 1e-8 * of.scale, 100, "prox_newton")
    best = solved(of, 1e-10)
    assert found is not None
    assert best is not None
    assert abs(found.objective - best.objective) <= 2e-8 * of.scale
    assert found.bound <= best.objective + 1e-14


@pytest.mark.parametrize("penalty", SPARSE)
@pytest.mark.parametrize(("loss", "d"), [("logistic", 30), ("logistic", 300), ("poisson", 30)])
def test_bounds_hold_far_from_the_optimum(loss: str, penalty: str, d: int) -> None:
    of = problem(LOSSES[loss], SPARSE[penalty], 0.003, d=d)
    check_bounds_far_from_the_optimum(lambda tol: solved(of, tol), 1e-11)


def test_the_general_method_is_not_needed() -> None:
    of = problem(HardLogistic(), L1(), d=300)
    found, direct = prox_newton(of, of.start(), 1e-8 * of.scale, 100, Progress()), solved(of, 1e-8)
    assert direct is not None
    assert np.array_equal(found.coef, direct.coef)


def test_what_is_left_to_the_general_method() -> None:
    of = problem(HardLogistic(), L1())
    assert solved(of, max_iter=1) is None  # too few steps
    assert solved(problem(HardLogistic(), L2())) is None
    held = Regularizer.of(L1(), 0.1, NonNegative(), 30)
    assert solved(Problem(of.X, of.y, of.p, of.loss, held, True)) is None
    assert solved(Problem(of.X.toarray(), of.y, of.p, of.loss, of.regularizer, True)) is None


def test_the_boundary_refuses() -> None:
    options, one, two = native.Options(True, 1e-6, 1.0, 10, 1), np.ones(1), np.ones(2)
    X = native.csc(two, np.array([0, 1], dtype=np.int32), np.array([0, 2], dtype=np.int32), 2)
    with pytest.raises(ValueError, match="every column"):
        native.minimize_columns("logistic", X, two, two, 0 * one, 0 * one, one, 0.0, options)
    with pytest.raises(ValueError, match="loss must be"):
        native.minimize_columns("gamma", X, two, two, one, one, one, 0.0, options)
    with pytest.raises(ValueError, match="compressed"):
        native.minimize_columns(
            "logistic", native.dense(np.asfortranarray([[1.0], [2.0]])), two, two, one, one, one, 0.0, options
        )


@pytest.mark.parametrize("n", [16, 61])
def test_equal_weights_are_one_number(n: int) -> None:
    of = problem(HardLogistic(), L1(), n=n, d=5)
    X, options = of.X.toarray(), native.Options(True, 1e-9, of.scale, 100, 1)
    held = native.csc(of.X.data, of.X.indices, of.X.indptr, n)
    rest = (np.full(5, 0.01), np.zeros(5), np.zeros(5), 0.0, options)
    for run, rows in (
        (native.minimize_columns, held),
        (native.minimize_packed, np.asfortranarray(X)),
        (native.minimize, np.ascontiguousarray(X)),
    ):
        one, many = (run("logistic", rows, of.y, np.full(size, 1.0 / n), *rest) for size in (1, n))
        np.testing.assert_array_equal(one[0], many[0])
        assert one[1:] == many[1:]
        with pytest.raises(ValueError, match="p has length 2"):
            run("logistic", rows, of.y, np.full(2, 0.5), *rest)


SPARSE_ROWS = "import scipy.sparse as sp; X = sp.csr_array(X.astype(float) * (rng.random((n, d)) < 0.05))"


@needs_proc
def test_tall_rows_are_not_held_ten_times() -> None:
    """Seven to nine vectors as long as y; 26 before the working sets let go of theirs."""
    assert bytes_a_row("LogisticRegression(penalty='l1', alpha=0.003)", SPARSE_ROWS) < 90
