"""Data at the edge of double precision: the right answer in its own units, or a plain word that there is none."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from certifit import Lasso, LinearModel, LinearRegression, LogisticRegression, Ridge
from certifit.certificate import Certificate
from certifit.losses import LOSSES
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer
from certifit.optimization.objective.units import Deviations, condition, is_extreme
from certifit.penalties import Box, L1Ball, Lq, NoPenalty
from certifit.representation.design.design import Design, as_design

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


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_sparse_columns_far_from_zero_are_centered(format: str) -> None:
    """Those without gaps, which are no less sparse for it; one with a gap is not far from zero beside its spread."""
    far = X + np.array([1e9, 0.0, -1e9])
    far[3, 2] = 0.0
    p = np.full(40, 1 / 40)
    given = Problem(
        sp.coo_array(far).asformat(format), Y, p, LOSSES["squared"](), Regularizer.of(NoPenalty(), 0.0, None, 3), True
    )
    assert is_extreme(given)
    problem, units = condition(given)
    assert np.flatnonzero(units.center).tolist() == [0]
    assert problem.X.nnz == given.X.nnz
    dense = condition(replace(given, X=far))[1]
    assert units.center == pytest.approx(dense.center, rel=1e-15)
    assert units.column == pytest.approx(dense.column)


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_sparse_columns_far_from_zero_give_the_fit_of_dense_ones(format: str) -> None:
    far, labels = X + np.array([1e9, 0.0, -1e9]), np.median(Y) < Y
    dense = LogisticRegression(alpha=1e-3).fit(far, labels)
    sparse = LogisticRegression(alpha=1e-3).fit(sp.coo_array(far).asformat(format), labels)
    assert sparse.certificate_
    assert sparse.coef_ == pytest.approx(dense.coef_, rel=1e-4)
    assert sparse.certificate_.objective == pytest.approx(dense.certificate_.objective, rel=1e-5)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_array])
def test_a_design_tells_the_moments_of_its_columns(form: Any) -> None:
    """Those of its blocks add up; a kind of design that says nothing of them has those of its rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) + np.array([1e6, 0.0, 3.0])
    X[:, 1] = np.where(X[:, 1] > 0, X[:, 1], 0.0)
    parts = [Deviations(*as_design(form(part)).moments()) for part in (X[:20], X[20:])]
    found, kept = parts[0] + parts[1], [0, 2]
    assert found.count == 50
    np.testing.assert_allclose(found.columns[0, kept], X.mean(axis=0)[kept])
    np.testing.assert_allclose(found.columns[1, kept], 50 * X.var(axis=0)[kept], rtol=1e-6)
    assert bool(np.isnan(found.columns[0, 1])) == (form is not np.asarray)
    assert list(found.judged()[1]) == [0]
    by_rows = Deviations(*Design.moments(as_design(form(X))))
    assert list(by_rows.judged()[1]) == [0]
    np.testing.assert_allclose(by_rows.columns[0], X.mean(axis=0))
