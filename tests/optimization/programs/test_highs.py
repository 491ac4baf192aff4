"""Linear programs by HiGHS beside the interior-point method: two solvers that share only the repair."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.optimization.interior_point.chebyshev import chebyshev
from certifit.optimization.interior_point.solve import TwoSidedHinge, solve_polyhedral
from certifit.optimization.programs.highs import chebyshev_lp, lad_lp, quantile_lp


def make(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + rng.standard_t(2, n), rng.integers(0, 4, n).astype(float)


@pytest.mark.parametrize("shape", [(60, 4), (10, 30), (200, 6)])
@pytest.mark.parametrize("l1", [0.0, 0.5])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_two_solvers_one_optimum(shape, l1, fit_intercept):
    X, y, p = make(*shape)
    options = {"l1": l1, "fit_intercept": fit_intercept}
    pairs = [
        (quantile_lp(X, y, p, quantile=q, **options),
         solve_polyhedral(X, TwoSidedHinge(y, y, q, 1 - q), p, tol=1e-9, **options))
        for q in (0.1, 0.5)
    ]  # fmt: skip
    pairs.append(
        (
            lad_lp(X, y, p, **options),
            solve_polyhedral(X, TwoSidedHinge(y, y, 1.0, 1.0), p, tol=1e-9, **options),
        )
    )
    pairs.append((chebyshev_lp(X, y, **options), chebyshev(X, y, tol=1e-9, **options)))
    for program, interior in pairs:
        assert program.status == interior.status == "optimal"
        assert program.gap <= 1e-9
        assert interior.objective == pytest.approx(program.objective, abs=3e-9)
        assert program.bound <= interior.objective + 1e-9
        assert interior.bound <= program.objective + 1e-9


def test_vertices_are_as_exact_as_the_simplex_method():
    X, y, _ = make(2000, 8)
    program = lad_lp(X, y)
    interior = solve_polyhedral(X, TwoSidedHinge(y, y, 1.0, 1.0), tol=1e-4 * program.objective)
    assert interior.objective <= program.objective * (1 + 1e-12)
    assert np.sum(np.abs(y - X @ interior.coef - interior.intercept) < 1e-9) >= 9


def test_theta_is_dual_feasible():
    X, y, p = make(80, 3)
    result = quantile_lp(X, y, p, quantile=0.3)
    assert result.theta.min() >= -0.3
    assert result.theta.max() <= 0.7
    np.testing.assert_allclose(X.T @ (p * result.theta), 0.0, atol=1e-9)
    assert -(p * result.theta) @ y == pytest.approx(result.bound)
    extreme = chebyshev_lp(X, y)
    assert np.abs(extreme.theta).sum() <= 1 + 1e-12
    assert -extreme.theta @ y == pytest.approx(extreme.bound)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scales_and_sparse_designs(scale):
    X, y, p = make(40, 3)
    for solver in (partial(lad_lp, p=p), chebyshev_lp):
        plain = solver(X, y)
        assert solver(X * scale, y * scale).objective / scale == pytest.approx(plain.objective, rel=1e-9)
        assert solver(sp.csr_array(X), y).objective == pytest.approx(plain.objective, rel=1e-9)


def test_bad_arguments_are_named():
    X, y, p = make(10, 2)
    with pytest.raises(ValueError, match="quantile"):
        quantile_lp(X, y, quantile=1.0)
    with pytest.raises(ValueError, match="p must"):
        lad_lp(X, y, 0 * p)
    with pytest.raises(ValueError, match="y must"):
        lad_lp(X, y[:-1])
