"""What the cost model decides, and that a wrong guess costs time but no digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certifit import LinearSVC, LogisticRegression, Ridge
from certifit.optimization.closed_form import factorizations
from certifit.optimization.newton import smooth
from certifit.optimization.objective import costs, piecewise
from certifit.optimization.objective.costs import epochs_before, iterating_pays, newton_passes, shared_passes


def classes(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, :3].sum(axis=1) + rng.logistic(size=n) > 0).astype(int)


@pytest.mark.parametrize(
    ("n", "d", "solver"), [(300, 10, "newton"), (600, 20, "newton_cg"), (300, 250, "newton_cg"), (90_000, 50, "newton")]
)
def test_the_choice_follows_the_shape(n: int, d: int, solver: str) -> None:
    model = LogisticRegression(alpha=0.05).fit(*classes(n, d))
    assert (model.solver_, model.certificate_.certified) == (solver, True)


def test_no_penalty_needs_exact_steps() -> None:
    assert LogisticRegression(alpha=0.0).fit(*classes(900, 120)).solver_ == "newton"


def test_conjugate_gradients_that_cost_too_much_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 60)) * np.logspace(0, -2, 60) @ np.linalg.qr(rng.normal(size=(60, 60)))[0]
    y = (X.sum(axis=1) + 0.1 * rng.logistic(size=200) > 0).astype(int)
    wanted = LogisticRegression(alpha=1e-7, solver="newton", tol=1e-9).fit(X, y)
    solved: list[int] = []
    of = smooth.cholesky
    monkeypatch.setattr(smooth, "cholesky", lambda *a: solved.append(1) or of(*a))
    found = LogisticRegression(alpha=1e-7, solver="newton_cg", tol=1e-9).fit(X, y)
    assert solved
    assert found.certificate_.certified
    assert found.certificate_.objective == pytest.approx(wanted.certificate_.objective, rel=1e-8)


def test_a_small_sparse_matrix_is_made_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = classes(120, 6)
    X[np.abs(X) < 1.0] = 0.0
    fits: list[Any] = []
    for most in (costs.SMALL, 0):
        monkeypatch.setattr(costs, "SMALL", most)
        fits.append([model.fit(sp.csr_array(X), y) for model in (LogisticRegression(alpha=0.01), Ridge(alpha=0.01))])
    for dense, sparse in zip(*fits, strict=True):
        assert dense.solver_ == sparse.solver_
        np.testing.assert_allclose(dense.coef_, sparse.coef_, rtol=1e-8)


def test_sparse_ridge_iterates_where_the_penalty_is_strong(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    X = sp.random(400, 500, 0.02, format="csr", random_state=2)
    y = X @ rng.normal(size=500) + rng.normal(size=400)
    monkeypatch.setattr(costs, "FACTORING", 1e8)  # the choice of a much larger problem
    fits = []
    for pays in (iterating_pays, lambda *size: False):
        monkeypatch.setattr(factorizations, "iterating_pays", pays)
        fits.append(Ridge(alpha=1e-2, solver="closed_form").fit(X, y))
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-9, atol=1e-12)
    assert not np.array_equal(fits[0].coef_, fits[1].coef_)  # by different ways
    assert all(fit.certificate_.certified for fit in fits)
    assert not iterating_pays(400, 500, 4000, 0.0)
    assert not iterating_pays(400, 500, 4000, 1e-8)


def test_sparse_ridge_is_solved_by_products_up_to_tol() -> None:
    rng = np.random.default_rng(3)
    X = sp.random(3000, 400, 0.02, format="csr", random_state=3)
    Y = X @ rng.normal(size=(400, 40)) + rng.normal(size=(3000, 40))
    exact = Ridge(alpha=1e-3, solver="closed_form").fit(X, Y[:, 0])
    fit = Ridge(alpha=1e-3).fit(X, Y[:, 0])
    assert (fit.solver_, exact.solver_) == ("newton_cg", "closed_form")
    assert fit.certificate_.certified
    assert fit.certificate_.bound <= exact.certificate_.objective * (1 + 1e-12)
    assert fit.certificate_.objective <= exact.certificate_.objective + fit.tol * 0.5 * float(np.var(Y[:, 0]))
    np.testing.assert_allclose(Ridge(alpha=1e-3, tol=1e-13).fit(X, Y[:, 0]).coef_, exact.coef_, rtol=1e-5, atol=1e-7)
    assert Ridge(alpha=1e-3).fit(X, Y).solver_ == "closed_form"  # one factorization serves all targets
    assert Ridge(alpha=0.0).fit(X, Y[:, 0]).solver_ == "closed_form"
    flat = sp.random(1001, 1000, 0.01, format="csr", random_state=3)
    assert Ridge(alpha=1e-10).fit(flat, rng.normal(size=1001)).solver_ == "closed_form"  # nearly flat: many products
    few = sp.random(600, 3000, 0.01, format="csr", random_state=3)
    assert Ridge(alpha=1e-9).fit(few, rng.normal(size=600)).solver_ == "newton_cg"  # but not in the space of the rows


def test_passes_grow_with_what_is_solved() -> None:
    assert newton_passes(10**6, 20, 3) == pytest.approx(8 + 63 / 4, rel=1e-3)
    assert newton_passes(100, 200, 10) > newton_passes(10_000, 200, 10) > 500
    assert shared_passes(1000, 400, 5, 1) < shared_passes(1000, 400, 5, 5) < newton_passes(1000, 400, 5)


def test_gradients_take_the_place_of_most_hessians(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Hessian of some rows, or the products of one step, precondition the gradients that follow."""
    X, y = classes(4000, 120)
    counts: dict[str, int] = {"cholesky": 0, "conjugate_gradients": 0}
    for name in counts:
        of = getattr(smooth, name)

        def counted(*a: Any, name: str = name, of: Any = of, **k: Any) -> Any:
            counts[name] += 1
            return of(*a, **k)

        monkeypatch.setattr(smooth, name, counted)
    found = [LogisticRegression(alpha=1e-3, solver=solver).fit(X, y) for solver in ("newton", "newton_cg")]
    assert counts["cholesky"] <= 1
    assert counts["conjugate_gradients"] <= 2
    exact = LogisticRegression(alpha=1e-3, solver="newton", tol=1e-12).fit(X, y).certificate_
    for model in found:
        assert model.certificate_.certified
        assert model.certificate_.bound <= exact.objective * (1 + 1e-12)
        assert model.certificate_.objective <= exact.bound + 1e-6 * np.log(2.0)


def test_wide_data_stay_in_their_columns_where_the_penalty_is_strong() -> None:
    assert costs.rows_pay(200, 4000, 1.0, 10.0)
    assert not costs.rows_pay(1500, 8000, 1.0, 10.0)
    assert costs.rows_pay(1500, 8000, 1e-6, 10.0)


@pytest.mark.parametrize(("alpha", "tol", "solver"), [(1.0, 1e-3, "dual"), (1e-6, 1e-6, "interior_point")])
def test_rows_in_turn_come_before_the_interior_point_and_give_way(alpha: float, tol: float, solver: str) -> None:
    X, y = classes(600, 400)
    model = LinearSVC(alpha=alpha, tol=tol).fit(X, y)
    assert (model.solver_, model.certificate_.certified) == (solver, True)
    exact = LinearSVC(alpha=alpha, tol=1e-8, solver="interior_point").fit(X, y)
    lower, upper = exact.certificate_.bound, model.certificate_.objective
    assert model.certificate_.bound - 1e-9 <= exact.certificate_.objective
    assert lower - 1e-9 <= upper <= lower + 1.1 * tol


@pytest.mark.parametrize(
    ("n", "d", "alpha", "tol", "solver"),
    [
        (700, 250, 0.3, 1e-3, "dual"),  # few epochs do
        (700, 250, 1e-5, 1e-3, "interior_point"),  # many would be needed
        (60, 5, 0.3, 1e-3, "interior_point"),  # all digits cost nothing
        (9000, 4, 0.3, 1e-3, "dual"),
        (9000, 4, 1e-6, 1e-3, "interior_point"),  # of the rows near a kink
        (9000, 30, 1e-6, 1e-3, "newton"),  # which merges rows that have one kink each
    ],
)
def test_rows_in_turn_come_first_where_few_epochs_do(n: int, d: int, alpha: float, tol: float, solver: str) -> None:
    X, y = classes(n, d)
    model = LinearSVC(alpha=alpha, tol=tol).fit(X, y)
    assert (model.solver_, model.certificate_.certified) == (solver, True)
    exact = LinearSVC(alpha=alpha, tol=1e-7, solver="interior_point").fit(X, y).certificate_
    assert model.certificate_.bound <= exact.objective
    assert exact.bound <= model.certificate_.objective <= exact.objective + 2.0 * tol


def test_epochs_that_get_nowhere_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the guess is wrong, the other method solves the problem as if nothing had been tried."""
    X, y = classes(300, 120)
    alone = LinearSVC(alpha=1e-6, tol=1e-6).fit(X, y)
    monkeypatch.setattr(piecewise, "epochs_before", lambda *given: 30)
    tried = LinearSVC(alpha=1e-6, tol=1e-6).fit(X, y)
    assert tried.solver_ == alone.solver_ == "interior_point"
    np.testing.assert_array_equal(tried.coef_, alone.coef_)


def test_more_epochs_are_likely_where_rows_crowd() -> None:
    assert epochs_before("interior_point", 1000, 400, None, 0.1, 1e-3) > 0
    assert epochs_before("interior_point", 1000, 400, None, 1e4, 1e-3) == 0
    assert epochs_before("interior_point", 1000, 400, None, 1e4, 1e-9) == 0
    assert epochs_before("interior_point", 400, 1000, 8000, 1e4, 1e-3) > 0  # each row has a direction of its own
    assert epochs_before("interior_point", 660, 500, None, 1e4, 1e-3) > 0  # nearly so
    assert epochs_before("interior_point", 50, 5, None, 0.1, 1e-3) == 0
