"""Calibration: maps against scikit-learn's where they are the same, and probabilities that come true."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from certifit import CalibratedClassifier, DecisionTreeClassifier, LinearSVC, LogisticRegression
from certifit.evaluation.decisions.calibration import calibration_curve
from certifit.models.reductions.calibrated import Beta, Isotonic, Sigmoid, learn_maps, mapped

RNG = np.random.default_rng(4)
F = RNG.normal(size=3000) * 2
Y = (RNG.uniform(size=3000) < expit(0.5 * F - 0.3)).astype(float)
ONES = np.ones(3000)


def test_the_sigmoid_finds_the_truth() -> None:
    found = Sigmoid(F, Y, ONES)
    np.testing.assert_allclose(
        found(np.array([-2.0, 0.0, 2.0])), expit(0.5 * np.array([-2.0, 0.0, 2.0]) - 0.3), atol=0.03
    )


def test_isotonic_is_pooled_adjacent_violators() -> None:
    theirs = IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1).fit(F, Y)
    np.testing.assert_allclose(Isotonic(F, Y, ONES)(F), theirs.predict(F), atol=1e-10)


def test_beta_undoes_a_distortion() -> None:
    truth = expit(0.5 * F - 0.3)
    distorted = truth**2 / (truth**2 + (1 - truth))
    found = Beta(distorted, Y, ONES)
    assert np.abs(found(distorted) - truth).mean() < 0.02
    assert found.a >= 0
    assert found.b >= 0


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature", "beta", "matrix"])
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_come_true(method: str, classes: int) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1500, 4))
    score = np.column_stack([X[:, k] * 1.5 for k in range(classes)])
    y = (score + rng.gumbel(size=score.shape)).argmax(axis=1)
    model = CalibratedClassifier(LinearSVC(alpha=0.01), method=method).fit(X[:750], y[:750])
    p = model.predict_proba(X[750:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert calibration_curve(y[750:] == 1, p[:, 1], bins=5).error < 0.06


def test_temperature_minimizes_the_deviance() -> None:
    model = CalibratedClassifier(LogisticRegression(alpha=1e-3), method="temperature", cv="prefit")
    X = F[:, None]
    inner = LogisticRegression(alpha=1e-3).fit(X, Y)
    model.set_params(estimator=inner).fit(X, Y)
    f = inner.decision_function(X)

    def deviance(t: float) -> float:
        return float(np.mean(np.logaddexp(0.0, -(2 * Y - 1) * f / t)))

    best = minimize_scalar(deviance, bounds=(0.1, 10), method="bounded").x
    assert model.maps_[0] == pytest.approx(best, rel=1e-3)
    # The slope at the temperature is zero to rounding: values alone would leave it at some 1e-8.
    p = 1.0 / (1.0 + np.exp(-f / model.maps_[0]))
    assert abs(float(np.mean((p - Y) * f))) < 1e-12


def test_labels_alone_and_few_rows() -> None:
    X = RNG.normal(size=(12, 2))
    y = np.array(["a"] * 11 + ["b"])
    assert CalibratedClassifier(DecisionTreeClassifier()).fit(X, y).predict_proba(X).shape == (12, 2)


def test_given_splits_number_the_rows_as_given() -> None:
    """Rows of weight zero are in the splits and in no fit."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    weight = np.where(np.arange(60) % 4 == 0, 0.0, 1.0)
    kept = weight > 0
    part = np.arange(60) % 3
    pairs = [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(3)]
    inner = [(np.flatnonzero(part[kept] != k), np.flatnonzero(part[kept] == k)) for k in range(3)]
    weighted = CalibratedClassifier(cv=pairs).fit(X, y, sample_weight=weight)
    dropped = CalibratedClassifier(cv=inner).fit(X[kept], y[kept])
    np.testing.assert_allclose(weighted.predict_proba(X), dropped.predict_proba(X), rtol=1e-9)


def test_a_fitted_classifier_must_know_the_classes() -> None:
    inner = LogisticRegression().fit(F[:, None], Y)
    with pytest.raises(ValueError, match="prefit"):
        CalibratedClassifier(inner, cv="prefit").fit(F[:, None], Y + 1)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature", "matrix"])
@pytest.mark.parametrize("size", [1e-140, 1e-9, 1e9, 1e140])
def test_maps_do_not_depend_on_the_unit_of_the_scores(method: str, size: float) -> None:
    scores = F[:200, None]
    codes, weight = Y[:200].astype(np.intp), np.ones(200)
    wanted = mapped(method, learn_maps(method, scores, codes, weight, 2), scores, 2)
    found = mapped(method, learn_maps(method, size * scores, codes, weight, 2), size * scores, 2)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_slopes_of_the_beta_map_are_the_best_that_are_not_negative() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        q = rng.random(30)
        y = (rng.random(30) < (q, 1.0 - q, np.full(30, 0.5))[rng.integers(3)]).astype(float)
        terms = np.column_stack([np.log(q), -np.log1p(-q), np.ones(30)])

        def deviance(x: np.ndarray, terms: np.ndarray = terms, y: np.ndarray = y) -> float:
            return float(np.mean(np.logaddexp(0.0, terms @ x) - y * (terms @ x)) + 0.5e-8 * x @ x)

        bounds = [(0.0, None), (0.0, None), (None, None)]
        best = minimize(deviance, np.ones(3), bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-10})
        found = Beta(q, y, np.ones(30))
        assert deviance(np.array([found.a, found.b, found.c])) <= best.fun + 1e-8
