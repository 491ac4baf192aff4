"""The native passes of the logistic loss of hard labels: what NumPy says, and what is no number."""

from __future__ import annotations

import numpy as np
import pytest

from certifit._native import stochastic
from certifit.evaluation.losses import Loss
from certifit.evaluation.losses.labels.margin import HardLogistic, Logistic

LOSS = HardLogistic()


@pytest.mark.parametrize("n", [1, 7, 8, 21, 400])
def test_sums_and_slopes(n: int) -> None:
    rng = np.random.default_rng(n)
    y, p, f = (rng.random(n) < 0.4).astype(float), rng.random(n), 50.0 * rng.standard_normal(n)
    theta, h = LOSS.slopes(y, f)
    np.testing.assert_allclose(theta, LOSS.derivative(y, f), rtol=1e-13)
    np.testing.assert_allclose(h, LOSS.second_derivative(y, f), rtol=1e-12)
    assert LOSS.risk(y, p, f) == pytest.approx(Loss.risk(LOSS, y, p, f), rel=1e-14)
    assert LOSS.conjugate_risk(y, p, theta) == pytest.approx(
        Loss.conjugate_risk(LOSS, y, p, theta), rel=1e-13, abs=1e-15
    )
    p /= p.sum()
    np.testing.assert_allclose(LOSS.constant_risks(y, p, 0.3), Logistic().constant_risks(y, p, 0.3), rtol=1e-13)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_what_is_nearly_certain_keeps_its_digits(label: float) -> None:
    """Of a probability of 1 − q a sum of terms about one says nothing of q."""
    q = 10.0 ** -np.arange(1.0, 40.0)
    y, p, u = np.full(q.shape, label), np.ones(q.shape), (1.0 - 2.0 * label) * q
    wanted = q * np.log(q) + (1.0 - q) * np.log1p(-q)
    np.testing.assert_allclose(Logistic().conjugate(y, u), wanted, rtol=1e-14)
    kernel = stochastic.loss("logistic")
    np.testing.assert_allclose([kernel.conjugate(label, float(each)) for each in u], wanted, rtol=1e-14)
    for k in range(q.size):  # sums of one row
        assert LOSS.conjugate_risk(y[k : k + 1], p[k : k + 1], u[k : k + 1]) == pytest.approx(wanted[k], rel=1e-14)
    f = (1.0 - 2.0 * label) * (np.log(q) - np.log1p(-q))  # scores whose loss is −ln(1 − q)
    np.testing.assert_allclose([kernel.value(label, float(each)) for each in f], -np.log1p(-q), rtol=1e-13)
    for k in range(0, q.size, 8):  # whole groups of eight, one row of which counts
        for at in range(min(8, q.size - k)):
            group, weight = np.resize(f[k : k + 8], 8), np.eye(8)[at]
            found = stochastic.conjugate_sum(np.full(8, label), weight, group, kernel, 0.0, 1.0, 1)
            assert found == pytest.approx(wanted[k + at], rel=1e-12)


def test_scores_that_are_no_number_have_no_small_risk() -> None:
    y, p = np.array([1.0, 0.0, 1.0]), np.full(3, 1 / 3)
    assert np.isnan(LOSS.risk(y, p, np.array([np.nan, 1.0, 1.0])))
    assert LOSS.risk(y, p, np.array([-np.inf, 1.0, 1.0])) == np.inf
    assert np.isnan(LOSS.conjugate_risk(y, p, np.array([np.nan, 0.5, -0.5])))
    assert LOSS.conjugate_risk(y, p, np.array([0.5, 0.5, -0.5])) == np.inf
    outside = np.array([0.5, 2.0, -0.5])
    np.testing.assert_array_equal(LOSS.into_domain(y, outside), [0.0, 1.0, -0.5])
    inside = np.array([-0.5, 0.25, -1.0])
    assert LOSS.into_domain(y, inside) is inside
