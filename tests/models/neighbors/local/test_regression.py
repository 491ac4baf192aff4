"""Local regression against weighted least squares in NumPy, one query at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from certifit import LocallyWeightedRegression
from certifit._native import local as native


def data(n: int, d: int, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n), rng.normal(size=(9, d))


def smoother(X: Any, s: Any, q: Any, kernel: str, degree: int, width: float | None, fraction: float) -> Any:
    """The weights l of the answers, by a pseudo-inverse."""
    r = np.linalg.norm(X - q, axis=1)
    if width is None:
        order = np.argsort(r, kind="stable")
        width = r[order][np.searchsorted(np.cumsum(s[order]), fraction * s.sum() * (1 - 1e-12))]
    z, t = (X - q) / width, r / width
    w = s * (np.exp(-0.5 * t**2) if kernel == "gaussian" else np.clip(1 - t**3, 0, None) ** 3)
    d = X.shape[1]
    squares = [z[:, a] * z[:, b] for a in range(d) for b in range(a, d)]
    P = np.column_stack([np.ones(len(X)), *(z.T if degree else []), *(squares if degree == 2 else [])])
    return (np.linalg.pinv((P.T * w) @ P) @ (P.T * w))[0]


@pytest.mark.parametrize("kernel", ["gaussian", "tricube"])
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_answers_are_those_of_weighted_least_squares(kernel: str, degree: int, d: int, weighted: bool) -> None:
    X, y, Q = data(300, d)
    s = np.random.default_rng(1).integers(1, 4, size=300).astype(float) if weighted else np.ones(300)
    for width, fraction in ((2.5, 0.5), (None, 0.5), (None, 1.0)):
        model = LocallyWeightedRegression(kernel, width or "nearest", fraction, degree)
        value, error = model.fit(X, np.column_stack([y, y**2]), s).predict(Q, return_std=True)
        single, alone = model.fit(X, y, s).predict(Q, return_std=True)  # one target has its own loop in one column
        rows = np.array([smoother(X, s, q, kernel, degree, width, fraction) for q in Q])
        np.testing.assert_allclose(value, rows @ np.column_stack([y, y**2]), rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(single, rows @ y, rtol=1e-7, atol=1e-8)
        norm = np.sqrt((rows**2 / s).sum(axis=1))
        np.testing.assert_allclose(error[:, 0] / error[0, 0], norm / norm[0], rtol=1e-6)
        np.testing.assert_allclose(alone, np.sqrt(model.noise_[0]) * norm, rtol=1e-6)


@pytest.mark.parametrize("kernel", ["gaussian", "tricube"])
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_errors_are_those_of_refits(kernel: str, weighted: bool) -> None:
    X, y, _ = data(60, 2)
    s = np.random.default_rng(1).integers(1, 3, size=60).astype(float) if weighted else np.ones(60)
    model = LocallyWeightedRegression(kernel).fit(X, y, s)
    both = LocallyWeightedRegression(kernel).fit(X, np.column_stack([y, 1e-3 * y]), s)
    np.testing.assert_allclose(both.loo_errors_, (1 + 1e-6) * model.loo_errors_, rtol=1e-10)
    assert model.certificate_.objective == pytest.approx(model.loo_errors_.min())
    for k in (0, 3):
        fixed = LocallyWeightedRegression(kernel, float(model.candidates_[k]))
        errors = []
        for i in range(60):
            less = s.copy()
            less[i] -= 1.0  # one copy
            errors.append(y[i] - fixed.fit(X, y, less).predict(X[i : i + 1])[0])
        assert model.loo_errors_[k] == pytest.approx(np.average(np.square(errors), weights=s), rel=1e-7)
    assert model.bandwidth_ == model.candidates_[np.argmin(model.loo_errors_)]
    assert model.certificate_.certified
    assert "15 bandwidths" in model.certificate_.claim


def test_fractions_are_chosen_too() -> None:
    X, y, _ = data(200, 1)
    model = LocallyWeightedRegression("tricube", "nearest", "loo").fit(X, y)
    assert model.fraction_ == model.candidates_[np.argmin(model.loo_errors_)]
    assert model.bandwidth_ is None
    assert LocallyWeightedRegression(bandwidth=0.3).fit(X, y).certificate_.kind == "none"


def test_the_noise_and_its_standard_error_cover() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 6, size=(1500, 1))
    model = LocallyWeightedRegression().fit(x, np.sin(x[:, 0]) + 0.2 * rng.normal(size=1500))
    assert model.noise_[0] == pytest.approx(0.04, rel=0.1)
    at = np.linspace(0.2, 5.8, 200)[:, None]
    value, error = model.predict(at, return_std=True)
    assert np.mean(np.abs(value - np.sin(at[:, 0])) < 2 * error) > 0.85


@pytest.mark.parametrize("kernel", ["gaussian", "tricube"])
def test_where_no_row_has_a_weight_the_nearest_row_answers(kernel: str) -> None:
    X = np.array([[0.0], [1.0], [2.0]])
    y = np.array([1.0, 2.0, 4.0])
    model = LocallyWeightedRegression(kernel, 0.01, degree=0).fit(X, y)
    np.testing.assert_allclose(model.predict([[100.0], [-7.0], [1.0], [0.4]]), [4.0, 1.0, 2.0, 1.0], rtol=1e-9)


def test_equal_rows_constant_columns_and_one_row() -> None:
    one = LocallyWeightedRegression(degree=2).fit([[3.0, 1.0]], [5.0])
    assert one.predict([[0.0, 0.0]])[0] == pytest.approx(5.0)
    assert np.isnan(one.noise_).all()
    for bandwidth in ("loo", "nearest", 0.5):
        same = LocallyWeightedRegression(bandwidth=bandwidth).fit(np.ones((20, 2)), np.arange(20.0))
        np.testing.assert_allclose(same.predict(np.ones((1, 2))), 9.5)
    X, y, Q = data(100, 1)
    wide = LocallyWeightedRegression(bandwidth=0.7).fit(np.column_stack([X, np.full(100, 3.0)]), y)
    narrow = LocallyWeightedRegression(bandwidth=0.7).fit(X, y)
    np.testing.assert_allclose(wide.predict(np.column_stack([Q, np.full(9, 3.0)])), narrow.predict(Q), rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_units_do_not_matter(scale: float) -> None:
    X, y, Q = data(80, 2)
    one = LocallyWeightedRegression().fit(X, y)
    other = LocallyWeightedRegression().fit(X * scale, y * scale)
    np.testing.assert_allclose(other.predict(Q * scale) / scale, one.predict(Q), rtol=1e-9)
    np.testing.assert_allclose(other.bandwidth_ / scale, one.bandwidth_, rtol=1e-9)


def test_a_width_that_rows_cannot_feel_is_refused() -> None:
    X, y, _ = data(30, 1)
    with pytest.raises(ValueError, match="bandwidth must be comparable"):
        LocallyWeightedRegression(bandwidth=1e-300).fit(X * 1e100, y).predict(X)


def test_the_native_kernels_refuse_what_does_not_fit() -> None:
    X, y, s, box = np.zeros((1, 2, 256)), np.zeros((1, 1, 256)), np.ones((1, 256)), np.zeros((1, 2))
    table = native.Table(X, y, s, box, box, 200, True)
    lens = native.Lens("gaussian", 1, 1.0, 1.0)
    bad = [
        lambda: native.Table(X, y, s, box, box, 300, True),
        lambda: native.Table(X, y, s[:, :5].copy(), box, box, 200, True),
        lambda: native.Table(X, y, s, box[:, :1].copy(), box, 200, True),
        lambda: native.Lens("round", 1, 1.0, 1.0),
        lambda: native.Lens("gaussian", 3, 1.0, 1.0),
        lambda: native.Lens("gaussian", 1, 0.0, 0.0),
        lambda: native.regress(table, lens, np.zeros((2, 3)), np.zeros((2, 1)), np.zeros(2), None, np.zeros(2), 1),
        lambda: native.regress(table, lens, np.zeros((2, 2)), np.zeros((3, 1)), np.zeros(2), None, np.zeros(2), 1),
        lambda: native.Objective(0.0, 1.0),
    ]
    for call in bad:
        with pytest.raises(ValueError, match=r"."):
            call()
