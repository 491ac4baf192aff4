"""Newton steps on multipliers."""

from __future__ import annotations

import numpy as np
import pytest

from certifit.optimization.newton.kinked import _newton_step


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("few", [1, 5, 29])
def test_a_step_of_few_rows_is_that_of_the_hessian(few: int, fit_intercept: bool) -> None:
    rng = np.random.default_rng(few)
    A, p, l2 = rng.normal(size=(60, 30)), rng.random(60), 0.1 + rng.random(30)
    on, grad, grad_b, width = np.arange(60) < few, rng.normal(size=30), 0.3 * fit_intercept, 0.2
    step = _newton_step(A, p, on, l2, grad, grad_b, width, fit_intercept)
    assert step is not None
    dw, db = step
    slope = np.where(on, p / width, 0.0) * (A @ dw + db)
    np.testing.assert_allclose(l2 * dw + slope @ A, -grad, atol=1e-12)
    if fit_intercept:
        assert slope.sum() == pytest.approx(-grad_b, abs=1e-12)
    else:
        assert db == 0.0
