"""Magnitudes up to 1e±150, of X, of y and mixed: a correct answer or a clear refusal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.contract.data import D, assert_same, fit, make, output, unbothered
from tests.contract.discovery import ESTIMATORS, Case, parametrize
from tests.contract.input.test_bad_input import assert_finite_or_refused

from certifit.losses import LOSSES

EVERY = parametrize()
EXTREMES = [1e-150, 1e-30, 1e30, 1e150]


@parametrize(scale=EXTREMES)
def test_scaled_features(case: Case, scale: float) -> None:
    X, y = make(case)
    with np.errstate(all="ignore"):
        assert_finite_or_refused(case, X * scale, y)


@parametrize(lambda case: case.supervised and case.target != "labels", scale=EXTREMES)
def test_scaled_targets(case: Case, scale: float) -> None:
    X, y = make(case)
    assert y is not None
    with np.errstate(all="ignore"):
        assert_finite_or_refused(case, X, y * scale)


@EVERY
def test_columns_of_mixed_magnitude(case: Case) -> None:
    X, y = make(case)
    with np.errstate(all="ignore"):
        assert_finite_or_refused(case, X * np.array([1e-150, 1e150, 1.0, 1e-30, 1e30]), y)


@parametrize(scale=[1e-30, 1e30])
def test_extremes_in_single_precision(case: Case, scale: float) -> None:
    X, y = make(case)
    with np.errstate(all="ignore"):
        assert_finite_or_refused(case, (X * scale).astype(np.float32), y)


NAMES = {cls.__name__: cls for cls in ESTIMATORS}
# Unpenalized models: fit(c·X, y) has coefficients w/c, and fit(X, c·y) has c·w where the loss has no unit.
UNPENALIZED: list[tuple[str, dict[str, Any]]] = [
    ("LinearRegression", {}),
    ("LinearRegression", {"positive": True}),
    ("LADRegressor", {"alpha": 0.0}),
    ("QuantileRegressor", {"alpha": 0.0, "quantile": 0.7}),
    ("ChebyshevRegressor", {"alpha": 0.0}),
    ("HuberRegressor", {"alpha": 0.0}),
    ("PoissonRegressor", {"alpha": 0.0}),
    ("GammaRegressor", {"alpha": 0.0}),
    *(("LinearModel", {"loss": name, "penalty": None}) for name in LOSSES),
]
POSSIBLE = [Case(NAMES[name], params) for name, params in UNPENALIZED if name in NAMES]
UNPENALIZED_CASES = pytest.mark.parametrize("case", [case for case in POSSIBLE if case.target != "labels"], ids=str)
HOMOGENEOUS = ("LinearRegression", "LADRegressor", "QuantileRegressor", "ChebyshevRegressor")


@UNPENALIZED_CASES
@pytest.mark.parametrize("scale", [1e-150, 1e-8, 3.0, 1e8, 1e150])
def test_coefficients_follow_the_unit_of_x(case: Case, scale: float) -> None:
    X, y = make(case)
    with unbothered():
        one = fit(case.precise(), X, y)
        other = fit(case.precise(), X * scale, y)
    assert_same(other.coef_ * scale, one.coef_, 1e-5)
    assert_same(output(other, X * scale), output(one, X), 1e-5)


@UNPENALIZED_CASES
@pytest.mark.parametrize("scale", [1e-150, 1e-8, 3.0, 1e8, 1e150])
def test_coefficients_follow_the_unit_of_y(case: Case, scale: float) -> None:
    if case.cls.__name__ not in HOMOGENEOUS and case.params.get("loss") not in (
        "squared",
        "absolute",
        "relative",
    ):
        return
    X, y = make(case)
    assert y is not None
    with unbothered():
        one = fit(case.precise(), X, y)
        other = fit(case.precise(), X, y * scale)
    assert_same(other.coef_ / scale, one.coef_, 1e-5)
    assert_same(output(other, X) / scale, output(one, X), 1e-5)


@UNPENALIZED_CASES
def test_each_column_has_its_own_unit(case: Case) -> None:
    X, y = make(case)
    scale = np.array([1e-100, 1e100, 1.0, 1e-5, 1e5])[:D]
    with unbothered():
        one = fit(case.precise(), X, y)
        other = fit(case.precise(), X * scale, y)
    assert_same(other.coef_ * scale, one.coef_, 1e-5)


@UNPENALIZED_CASES
def test_predictions_follow_a_shift_of_x(case: Case) -> None:
    X, y = make(case)
    with unbothered():
        one = fit(case.precise(), X, y)
        other = fit(case.precise(), X + 100.0, y)
    assert_same(output(other, X + 100.0), output(one, X), 1e-5)
