"""RidgeCV: leave-one-out equals refitting, in our convention, with weights as repetitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold

from certifit.evaluation.splits.choice import folds_of
from certifit.models.linear.path.ridge_cv import RidgeCV
from certifit.optimization.closed_form import spectrum
from certifit.optimization.closed_form.least_squares import solve_least_squares

ALPHAS = np.array([0.0, 1e-3, 0.1, 1.0, 30.0])


def data(n=30, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 1.0
    return X, X @ rng.normal(size=d) + 2.0 + rng.normal(size=n)


def refitted(X, y, alphas, fit_intercept, splits):
    errors = np.zeros((len(alphas), len(y)))
    for a, alpha in enumerate(alphas):
        for train, test in splits:
            p = np.full(len(train), 1 / len(train))
            l2 = np.full(X.shape[1], alpha)
            fit = solve_least_squares(X[train], y[train], p, l2=l2, fit_intercept=fit_intercept)
            errors[a, test] = (y[test] - X[test] @ fit.coef - fit.intercept) ** 2
    return errors.mean(axis=1)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(30, 4), (10, 25)])
@pytest.mark.parametrize("small", [True, False])
def test_leave_one_out_is_refitting(fit_intercept, shape, small, monkeypatch):
    if not small:  # the decompositions for large data
        monkeypatch.setattr(spectrum, "SMALL", 0)
    X, y = data(*shape)
    alphas = ALPHAS[1:] if shape[0] < shape[1] else ALPHAS
    model = RidgeCV(alphas=alphas, fit_intercept=fit_intercept).fit(X, y)
    splits = [(np.delete(np.arange(len(y)), i), [i]) for i in range(len(y))]
    np.testing.assert_allclose(model.cv_error_path_, refitted(X, y, alphas, fit_intercept, splits), rtol=1e-7)
    assert model.alpha_ == alphas[np.argmin(model.cv_error_path_)]
    p = np.full(len(y), 1 / len(y))
    full = solve_least_squares(X, y, p, l2=np.full(X.shape[1], model.alpha_), fit_intercept=fit_intercept)
    np.testing.assert_allclose(model.coef_, full.coef)


def test_folds_are_refitting():
    X, y = data()
    folds = KFold(5, shuffle=True, random_state=0)
    model = RidgeCV(alphas=ALPHAS, cv=folds).fit(X, y)
    pairs = list(folds.split(X))
    np.testing.assert_allclose(model.cv_error_path_, refitted(X, y, ALPHAS, True, pairs), rtol=1e-9)
    np.testing.assert_allclose(
        RidgeCV(alphas=ALPHAS, cv=3).fit(X, y).cv_error_path_,
        refitted(X, y, ALPHAS, True, folds_of(3, X, y, kept=np.ones(len(y), dtype=bool), given=y)),
        rtol=1e-9,
    )


def test_index_pairs_count_the_rows_as_given():
    X, y = data()
    s = np.ones(30)
    s[[3, 17]] = 0.0
    pairs = [(np.arange(15, 30), np.arange(15)), (np.arange(15), np.arange(15, 30))]
    model = RidgeCV(alphas=ALPHAS, cv=pairs).fit(X, y, sample_weight=s)
    kept = s > 0
    halves = [(np.arange(14, 28), np.arange(14)), (np.arange(14), np.arange(14, 28))]
    np.testing.assert_allclose(model.cv_error_path_, refitted(X[kept], y[kept], ALPHAS, True, halves), rtol=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_weight_is_repetition(fit_intercept):
    X, y = data()
    s = np.random.default_rng(1).integers(0, 4, size=30)
    weighted = RidgeCV(fit_intercept=fit_intercept).fit(X, y, sample_weight=s)
    repeated = RidgeCV(fit_intercept=fit_intercept).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    np.testing.assert_allclose(weighted.alphas_, repeated.alphas_, rtol=1e-12)
    np.testing.assert_allclose(weighted.cv_error_path_, repeated.cv_error_path_, rtol=1e-9)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)


@pytest.mark.parametrize("shape", [(40, 5), (8, 30)])
@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sparse_equals_dense(shape, small, fit_intercept, monkeypatch):
    if not small:
        monkeypatch.setattr(spectrum, "SMALL", 0)
    X, y = data(*shape)
    X[X < 0.5] = 0.0
    alphas = ALPHAS[1:]
    dense = RidgeCV(alphas=alphas, fit_intercept=fit_intercept).fit(X, y)
    sparse = RidgeCV(alphas=alphas, fit_intercept=fit_intercept).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.cv_error_path_, dense.cv_error_path_, rtol=1e-8)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-8)
    columns = RidgeCV(alphas=alphas, fit_intercept=fit_intercept, cv=4).fit(sp.csc_matrix(X), y)
    rows = RidgeCV(alphas=alphas, fit_intercept=fit_intercept, cv=4).fit(X, y)
    np.testing.assert_allclose(columns.cv_error_path_, rows.cv_error_path_, rtol=1e-8)


@pytest.mark.parametrize("unit", [1e-150, 1e-20, 1e20, 1e150])
def test_scales(unit):
    X, y = data()
    base = RidgeCV().fit(X, y)
    scaled = RidgeCV().fit(X * unit, y)
    assert np.argmin(scaled.cv_error_path_) == np.argmin(base.cv_error_path_)
    np.testing.assert_allclose(scaled.predict(X * unit), base.predict(X), rtol=1e-7)
    scaled = RidgeCV().fit(X, y * unit)
    np.testing.assert_allclose(scaled.predict(X) / unit, base.predict(X), rtol=1e-7)


def test_certificate():
    X, y = data()
    certificate = RidgeCV().fit(X, y).certificate_
    assert certificate.kind == "closed form"
    assert certificate.certified
    assert 0 < certificate.bound <= certificate.objective
    assert RidgeCV().fit(X, np.full(30, 0.1)).certificate_.certified


def test_noise_is_shrunk_and_signal_is_kept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 30))
    noise = RidgeCV().fit(X, rng.normal(size=60))
    signal = RidgeCV().fit(X, X @ np.ones(30))
    assert noise.alpha_ > 1e3 * signal.alpha_
    assert noise.cv_error_path_.min() < noise.cv_error_path_[0]


def test_float32_stays_float32():
    X, y = data()
    model = RidgeCV().fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float32
    np.testing.assert_allclose(model.coef_, RidgeCV().fit(X, y).coef_, rtol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"alphas": [-1.0]}, ValueError, "alphas"),
        ({"alphas": [np.nan]}, ValueError, "alphas"),
        ({"alphas": ["a"]}, TypeError, "alphas"),
        ({"alphas": []}, ValueError, "alphas"),
        ({"alphas": [[1.0, 2.0]]}, ValueError, "alphas"),
        ({"cv": 1}, ValueError, "cv"),
        ({"cv": 2.5}, TypeError, "cv"),
        ({"fit_intercept": "yes"}, TypeError, "fit_intercept"),
    ],
)
def test_bad_arguments_are_named(arguments, error, match):
    X, y = data()
    with pytest.raises(error, match=match):
        RidgeCV(**arguments).fit(X, y)
