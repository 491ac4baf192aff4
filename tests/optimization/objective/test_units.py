"""Data at the edge of double precision: the right answer in its own units, or a plain word that there is none."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from certifit import ElasticNet, Lasso, LinearModel, LinearRegression, Ridge
from certifit.certificate import Certificate
from certifit.losses import LOSSES
from certifit.penalties import Box, L1Ball, Lq
from certifit.representation.design.design import as_design

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X @ [1.0, 2.0, 3.0] + RNG.normal(size=40)


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-170, 1e-150, 1e-20])
def test_a_box_is_kept_however_small_the_target(size: float) -> None:
    """Its best point is a corner, which has nothing to do with the unit of y."""
    model = LinearModel(constraint=Box(0.5, 2.0)).fit(X, Y * size)
    assert (model.coef_ >= 0.5).all()
    assert model.coef_ == pytest.approx(LinearModel(constraint=Box(0.5, 2.0)).fit(X, Y * 1e-10).coef_, abs=1e-9)
    assert model.certificate_


@pytest.mark.parametrize("size", [1e-150, 1e150])
@pytest.mark.parametrize(
    ("options", "degree"),
    [
        ({"penalty": "l2", "alpha": 0.3}, 0),
        ({"penalty": "l1", "alpha": 0.3}, 1),
        ({"penalty": Lq(1.5), "alpha": 0.3}, 0.5),
        ({"penalty": "l1", "alpha": 0.3, "constraint": L1Ball(1.0)}, 1),
        ({"loss": "absolute", "penalty": "l2", "alpha": 0.3}, -1),
    ],
)
def test_a_penalty_means_the_same_in_every_unit_of_the_target(size: float, options: Any, degree: float) -> None:
    """alpha·size^degree for y·size is alpha for y, even where alpha has left the range on the way."""
    plain = LinearModel(**options).fit(X, Y)
    given = dict(options, alpha=options["alpha"] * size**degree)
    if "constraint" in options:
        given["constraint"] = L1Ball(size)
    scaled = LinearModel(**given).fit(X, Y * size)
    assert scaled.coef_ / size == pytest.approx(plain.coef_, rel=1e-4, abs=1e-6)
    assert scaled.certificate_


@pytest.mark.parametrize("model", [Ridge(), Lasso(), LinearRegression(), LinearModel("huber")])
@pytest.mark.parametrize("size", [1e-170, 1e-300])
def test_targets_whose_squares_vanish(model: Any, size: float) -> None:
    found = model.fit(X, Y * size)
    assert np.isfinite(found.coef_).all()
    assert found.certificate_
    # The quadratic penalty and the loss shrink together.
    if isinstance(model, (Ridge, LinearRegression)):
        assert found.coef_ / size == pytest.approx(model.fit(X, Y).coef_, rel=1e-6)


def test_an_objective_beyond_the_range_is_not_claimed() -> None:
    with pytest.warns(ConvergenceWarning, match="beyond double precision"):
        model = LinearRegression().fit(X, Y * 1e200)
    assert model.coef_ / 1e200 == pytest.approx(LinearRegression().fit(X, Y).coef_, rel=1e-9)
    assert not model.certificate_
    proof = Certificate("duality gap", objective=1.0, bound=1.0, scale=1.0, tol=1e-6)
    assert proof.rescaled(1e300)
    assert not proof.rescaled(np.inf)
    assert not np.isnan(proof.rescaled(np.inf).gap)


def test_coefficients_beyond_the_range_are_refused() -> None:
    with pytest.raises(ValueError, match="beyond the range of double precision"):
        LinearRegression().fit(X * 1e-300, Y * 1e10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LinearRegression().fit(X * 1e-300, Y)
    assert model.coef_ * 1e-300 == pytest.approx(LinearRegression().fit(X, Y).coef_, rel=1e-9)


@pytest.mark.parametrize("offset", [1e5, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["absolute", "squared", "huber"])
def test_the_certificate_far_from_zero_is_that_of_the_coefficients_that_are_given(
    loss: str, dtype: Any, offset: float
) -> None:
    """Coefficients are rounded to the precision of X: an intercept from before would be off by that, times the offset."""
    far = (X + offset).astype(dtype)
    model = LinearModel(loss, alpha=0.01).fit(far, Y)
    assert model.coef_.dtype == dtype
    coef = model.coef_.astype(np.longdouble)
    f = far.astype(np.longdouble) @ coef + np.longdouble(model.intercept_)
    risk = LOSSES[loss]().value(Y, f.astype(np.float64)).mean()
    value = float(risk + 0.005 * coef @ coef)
    assert model.certificate_.objective == pytest.approx(value, rel=1e-9)
    assert model.certificate_


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize(
    "model", [Lasso(alpha=0.01, tol=1e-8), ElasticNet(alpha=0.01, tol=1e-8), LinearModel("huber", "l1", alpha=0.01, tol=1e-8)]
)
def test_sparse_columns_far_from_zero_are_taken_about_their_means(model: Any, form: Any) -> None:
    """Only a column with a number in every row can be so far off; one with zeros, however few, stays as it is stored."""
    holes = np.where(RNG.random((40, 4)) < 0.3, RNG.normal(size=(40, 4)), 0.0)
    near = np.column_stack([X, holes])
    far = near + np.array([1e7, -3e6, 1e5, 0, 0, 0, 0])
    plain, moved = clone(model).fit(near, Y), clone(model).fit(form(far), Y)
    assert moved.certificate_
    assert moved.certificate_.objective == pytest.approx(plain.certificate_.objective, rel=1e-7)
    np.testing.assert_allclose(moved.coef_, plain.coef_, atol=1e-4)
    assert as_design(form(far).tocsr()).full().tolist() == [0, 1, 2]
    assert as_design(form(holes).tocsr()).full().size == 0
