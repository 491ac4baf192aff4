"""All alphas from one decomposition: what each refit without a row would have said, and the best of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from tests.models.kernel.ridge.test_model import KERNEL, data

from certifit import KernelRidge, KernelRidgeCV, kernels
from certifit._native import products as native
from certifit.models.kernel.ridge import cv
from certifit.models.kernel.ridge import folds as by_folds
from certifit.optimization.closed_form.shifts import resolvent

ALPHAS = [1.0, 1e-2, 1e-4]


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_errors_are_those_of_leaving_one_out(fit_intercept: bool) -> None:
    X, y = data()
    weight = np.random.default_rng(1).integers(1, 4, size=len(y)).astype(float)
    for given in (None, weight):
        found = KernelRidgeCV(kernel=KERNEL, alphas=ALPHAS, fit_intercept=fit_intercept).fit(X, y, given)
        errors = []
        for alpha in ALPHAS:
            one = KernelRidge(kernel=KERNEL, alpha=alpha, fit_intercept=fit_intercept).fit(X, y, given)
            errors.append(np.average((one.loo_predictions() - y) ** 2, weights=given))
        np.testing.assert_allclose(found.cv_error_path_, errors, rtol=1e-8)
        assert found.alpha_ == ALPHAS[int(np.argmin(errors))]


def test_the_fit_is_that_of_the_chosen_alpha() -> None:
    X, y = data()
    Y = np.column_stack([y, -3.0 * y])
    model = KernelRidgeCV(kernel=KERNEL).fit(X, Y)
    wanted = KernelRidge(kernel=KERNEL, alpha=model.alpha_).fit(X, Y)
    assert model.certificate_.certified
    np.testing.assert_allclose(model.predict(X), wanted.predict(X), atol=1e-7)
    np.testing.assert_allclose(model.predict(X, return_std=True)[1], wanted.predict(X, return_std=True)[1], atol=1e-6)
    np.testing.assert_allclose(model.loo_predictions(), wanted.loo_predictions(), atol=1e-7)


def test_one_standard_error_takes_a_simpler_model() -> None:
    X, y = data()
    least = KernelRidgeCV(kernel=KERNEL).fit(X, y)
    simple = KernelRidgeCV(kernel=KERNEL, one_standard_error=True).fit(X, y)
    assert simple.alpha_ > least.alpha_


def test_too_many_rows_are_refused_before_their_matrix_is_made() -> None:
    X = np.arange(16_000.0)[:, None]
    with pytest.raises(ValueError, match="take fewer rows"):
        KernelRidgeCV().fit(X, X[:, 0])


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_band_says_what_eigenvectors_say(fit_intercept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(210, 3)), rng.normal(size=(210, 2))
    weight = rng.integers(0, 4, size=210).astype(float)
    alphas = [10.0, 1e-3, 1e-6]

    def found() -> KernelRidgeCV:
        return KernelRidgeCV(kernel=KERNEL, alphas=alphas, fit_intercept=fit_intercept).fit(X, Y, weight)

    spectrum = found()
    monkeypatch.setattr(resolvent, "BAND_FROM", 100)
    monkeypatch.setattr(resolvent, "BAND_RIDGES", 1.0)
    monkeypatch.setattr(resolvent.scipy.linalg, "eigh", None)  # would be called were the band not taken
    band = found()
    np.testing.assert_allclose(band.cv_error_path_, spectrum.cv_error_path_, rtol=1e-9)
    np.testing.assert_allclose(band.predict(X), spectrum.predict(X), rtol=1e-9, atol=1e-11)
    assert band.alpha_ == spectrum.alpha_
    assert band.certificate_.certified


def test_ridges_below_rounding_go_back_to_eigenvectors(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.repeat(np.linspace(-1.0, 1.0, 120), 2)[:, None] + 1e-9 * np.tile([0.0, 1.0], 120)[:, None]
    y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(size=240)
    monkeypatch.setattr(cv, "LEAST", 1e-150)
    wanted = KernelRidgeCV(kernel=KERNEL, alphas=[1e-2, 1e-30]).fit(X, y)
    monkeypatch.setattr(resolvent, "BAND_FROM", 100)
    monkeypatch.setattr(resolvent, "BAND_RIDGES", 1.0)
    model = KernelRidgeCV(kernel=KERNEL, alphas=[1e-2, 1e-30]).fit(X, y)
    np.testing.assert_array_equal(model.cv_error_path_, wanted.cv_error_path_)


@pytest.mark.parametrize("folds", [None, 2])
@pytest.mark.parametrize("weight", [1.0, 1e10, 1e300])
def test_no_ridge_on_equal_rows_divides_no_rounding(folds: Any, weight: float) -> None:
    """Rows with the same kernel values and other targets: what is left of them is rounding, divided by a ridge that is none."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * (rng.random((40, 3)) < 0.3)
    y = rng.normal(size=40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KernelRidgeCV(alphas=0.0, cv=folds).fit(X, y, np.full(40, weight)).predict(X)
    assert float(np.abs(found).max()) < 10.0


def folds_of_refits(X: Any, y: Any, weight: Any, folds: Any, alphas: Any, **given: Any) -> Any:
    """Errors on rows left out, by one model after the other."""
    found = []
    for alpha in alphas:
        missed, total = 0.0, 0.0
        for train, test in folds:
            model = KernelRidge(alpha=alpha, **given).fit(X[train], y[train], weight[train])
            missed += weight[test] @ ((model.predict(X[test]) - y[test]) ** 2).reshape(len(test), -1).sum(axis=1)
            total += weight[test].sum()
        found.append(missed / total)
    return np.array(found)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("krylov", [True, False])
def test_errors_of_folds_are_those_of_refits(
    krylov: bool, fit_intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(150, 3)), rng.normal(size=(150, 2)) + 5.0
    X[:, 0] = X[:, 0].round(1)
    X[100:110], Y[100:110] = X[:10], Y[:10]  # copies, which a splitter may put into other folds
    weight = rng.uniform(0.5, 3.0, size=150)
    folds = list(KFold(4).split(X))
    if krylov:
        monkeypatch.setattr(by_folds, "KRYLOV_FROM", 1)
        monkeypatch.setattr(by_folds.Parts, "_by_decomposition", None)
    for target in (Y, Y[:, 0]):
        given = {"kernel": KERNEL, "fit_intercept": fit_intercept}
        model = KernelRidgeCV(alphas=ALPHAS, cv=folds, **given).fit(X, target, weight)
        wanted = folds_of_refits(X, target, weight, folds, ALPHAS, **given)
        np.testing.assert_allclose(model.cv_error_path_, wanted, rtol=1e-8)
        assert model.alpha_ == ALPHAS[int(np.argmin(wanted))]
        assert model.certificate_.certified
        best = KernelRidge(alpha=model.alpha_, **given).fit(X, target, weight)
        np.testing.assert_allclose(model.predict(X), best.predict(X), rtol=1e-8)


GRIDS = {
    "smooth": (kernels.RBF(gamma=0.05), 20, None),
    "nearly of rank one": (kernels.RBF(gamma=1e-7), 4, None),
    "nearly the identity": (kernels.RBF(gamma=5.0), 20, None),
    "rough": (kernels.Laplacian(gamma=0.3), 5, np.geomspace(1e2, 1e-8, 12)),
    "of low rank": (kernels.Polynomial(degree=3), 3, np.geomspace(1e2, 1e-8, 12)),
    "strengths below rounding": (kernels.RBF(gamma=0.3), 2, np.geomspace(1.0, 1e-13, 8)),
    "far from zero": (1e120 * kernels.RBF(gamma=0.05), 20, None),
}


@pytest.mark.parametrize("name", GRIDS)
def test_krylov_spaces_give_the_errors_of_decompositions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, d, alphas = GRIDS[name]
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, d))
    y = 1e-80 * (np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.2 * rng.normal(size=400))
    weight = rng.integers(1, 4, size=400).astype(float)

    def found(**given: Any) -> KernelRidgeCV:
        return KernelRidgeCV(kernel=kernel, alphas=alphas, cv=5, **given).fit(X, y, weight)

    for given in ({}, {"fit_intercept": False}):
        wanted = found(**given)
        with monkeypatch.context() as patch:
            patch.setattr(by_folds, "KRYLOV_FROM", 1)
            model = found(**given)
        np.testing.assert_allclose(model.cv_error_path_, wanted.cv_error_path_, rtol=1e-8)
        assert model.alpha_ == wanted.alpha_
        assert model.certificate_.certified


def test_folds_take_weights_for_repetitions_and_any_order_of_the_rows() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    weight = rng.integers(0, 4, size=60)
    once = KernelRidgeCV(kernel=KERNEL, cv=3).fit(X, y, weight)
    rows = rng.permutation(np.repeat(np.arange(60), weight))
    copies = KernelRidgeCV(kernel=KERNEL, cv=3).fit(X[rows], y[rows])
    np.testing.assert_allclose(once.cv_error_path_, copies.cv_error_path_, rtol=1e-9)
    assert once.alpha_ == copies.alpha_
    gram = KERNEL(X, X)
    folds = list(KFold(3).split(X))
    given = KernelRidgeCV(kernel="precomputed", cv=folds, alphas=ALPHAS).fit(gram, y)
    rows_given = KernelRidgeCV(kernel=KERNEL, cv=folds, alphas=ALPHAS).fit(X, y)
    np.testing.assert_allclose(given.cv_error_path_, rows_given.cv_error_path_, rtol=1e-8)
    with pytest.raises(ValueError, match="at least 2 distinct rows"):
        KernelRidgeCV(cv=2).fit(np.ones((4, 1)), np.ones(4))


def test_targets_that_are_constant_are_fit_by_the_intercept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_folds, "KRYLOV_FROM", 1)
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = KernelRidgeCV(cv=5).fit(X, np.full(50, 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0, rtol=1e-12)
    np.testing.assert_allclose(model.cv_error_path_, 0.0, atol=1e-20)


def test_the_native_process_refuses_what_does_not_fit() -> None:
    K, rows = np.eye(4), np.ones((2, 4))
    basis, T = np.zeros((2, 3, 4)), np.zeros((2, 3))
    for wrong in (
        (K[:3], rows, rows, basis, T, T, 0, 1),
        (K, rows[:1], rows, basis, T, T, 0, 1),
        (K, rows, rows, basis, T[:, :2].copy(), T, 0, 1),
        (K, rows, rows, basis, T, T, 0, 3),
        (K, rows, rows, basis, T, T, -1, 1),
    ):
        with pytest.raises(ValueError, match=r"must|room"):
            native.lanczos(*wrong, 1)
