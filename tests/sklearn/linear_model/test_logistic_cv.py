"""C and l1_ratio by cross-validation, and the perceptron: scikit-learn's folds, scores and planes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.linear_model
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale

from certifit.sklearn.linear_model import LogisticRegressionCV, Perceptron

X, CODES = load_iris(return_X_y=True)
X = scale(X) + 0.8 * np.random.default_rng(0).normal(size=X.shape)
y = np.array(["a", "b", "c"])[CODES]
GRID: dict[str, Any] = {"Cs": [0.01, 0.3, 5.0], "cv": 3, "tol": 1e-10, "max_iter": 5000, "scoring": "neg_log_loss"}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("refit", [True, False])
def test_scores_and_paths_are_those_of_scikit_learn(classes: int, refit: bool) -> None:
    rows = slice(50 if classes == 2 else 0, None)
    options = {**GRID, "l1_ratios": (0.0,), "use_legacy_attributes": False, "refit": refit}
    theirs = sklearn.linear_model.LogisticRegressionCV(**options).fit(X[rows], y[rows])
    ours = LogisticRegressionCV(**options).fit(X[rows], y[rows])
    for name in ("scores_", "coefs_paths_", "coef_", "intercept_"):
        assert getattr(ours, name).shape == getattr(theirs, name).shape, name
        assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-4, err_msg=name)
    assert (ours.C_, ours.l1_ratio_) == (pytest.approx(theirs.C_), theirs.l1_ratio_)
    assert ours.certificate_.certified == refit
    assert ours.score(X[rows], y[rows]) == pytest.approx(theirs.score(X[rows], y[rows]), abs=1e-4)


def test_the_old_shapes() -> None:
    options = {**GRID, "Cs": 2, "l1_ratios": None, "use_legacy_attributes": True}
    with pytest.warns(FutureWarning, match="l1_ratios=None"):
        theirs = sklearn.linear_model.LogisticRegressionCV(**options).fit(X, y)
    with pytest.warns(FutureWarning, match="l1_ratios=None"):
        ours = LogisticRegressionCV(**options).fit(X, y)
    assert_allclose(ours.Cs_, theirs.Cs_)
    for name in ("scores_", "coefs_paths_"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert {key: value.shape for key, value in mine.items()} == {key: value.shape for key, value in other.items()}
    assert ours.C_.shape == theirs.C_.shape
    assert ours.n_iter_.shape == theirs.n_iter_.shape


def test_a_class_that_a_fold_lacks_has_no_chance() -> None:
    folds = [(np.flatnonzero(k != CODES), np.flatnonzero(k == CODES)) for k in range(3)]
    options = {**GRID, "cv": folds, "scoring": "accuracy", "l1_ratios": (0.0,), "use_legacy_attributes": False}
    model = LogisticRegressionCV(**options).fit(X, y)
    assert_array_equal(model.scores_, 0.0)
    assert model.coefs_paths_.shape == (3, 1, 3, 3, 5)
    for scoring in ("neg_log_loss", "neg_brier_score"):  # they know the classes that a fold lacks
        judged = LogisticRegressionCV(**{**options, "scoring": scoring}).fit(X, y).scores_
        assert np.isfinite(judged).all()
        assert (judged < -1.0).all()


def test_weights_of_rows_and_classes() -> None:
    weight = np.linspace(0.2, 2.0, len(y))
    options = {**GRID, "class_weight": "balanced", "l1_ratios": (0.0,), "use_legacy_attributes": False}
    theirs = sklearn.linear_model.LogisticRegressionCV(**options).fit(X, y, sample_weight=weight)
    ours = LogisticRegressionCV(**options).fit(X, y, sample_weight=weight)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert_allclose(ours.scores_, theirs.scores_, atol=1e-4)
    with pytest.raises(ValueError, match="class labels as keys"):
        LogisticRegressionCV(**{**options, "class_weight": {"z": 1.0}}).fit(X, y)


def test_the_perceptron_makes_the_steps_of_scikit_learn() -> None:
    settings: dict[str, Any] = {"max_iter": 3, "shuffle": False, "tol": None}
    theirs = sklearn.linear_model.Perceptron(**settings).fit(X, y)
    ours = Perceptron(**settings).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-9)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-9)
    assert ours.n_iter_ == 3
    assert not hasattr(ours, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit"):
        ours.partial_fit(X, y)


def penalized_steps(rows: Any, side: Any, passes: int, eta: float, alpha: float, l1_ratio: float) -> Any:
    """The perceptron's steps and the penalty's, one row after the other."""
    w, b = np.zeros(rows.shape[1]), 0.0
    for _ in range(passes):
        for x, s in zip(rows, side, strict=True):
            if s * (x @ w + b) <= 0:
                w, b = w + eta * s * x, b + eta * s
            w = (
                np.sign(w)
                * np.maximum(np.abs(w) - eta * alpha * l1_ratio, 0.0)
                / (1.0 + eta * alpha * (1.0 - l1_ratio))
            )
    return w, b


@pytest.mark.parametrize(
    ("penalty", "l1_ratio", "share"), [("l2", 0.5, 0.0), ("l1", 0.5, 1.0), ("elasticnet", 0.3, 0.3)]
)
def test_a_penalty_draws_the_perceptron_toward_zero_at_every_row(penalty: str, l1_ratio: float, share: float) -> None:
    named = y == y[0]
    options: dict[str, Any] = {"penalty": penalty, "alpha": 0.01, "l1_ratio": l1_ratio, "eta0": 0.5, "shuffle": False}
    model = Perceptron(**options, max_iter=4, tol=None).fit(X, named)
    w, b = penalized_steps(X, np.where(named, 1.0, -1.0), 4, 0.5, 0.01, share)
    assert_allclose(model.coef_[0], w, atol=1e-12)
    assert_allclose(model.intercept_, [b], atol=1e-12)
    assert model.n_iter_ == 4
    assert not model.certificate_.certified
    assert "minimize nothing" in str(model.certificate_)


def test_a_penalty_of_no_strength_leaves_the_steps_of_scikit_learn() -> None:
    options: dict[str, Any] = {"penalty": "l2", "alpha": 0.0, "shuffle": False, "eta0": 2.0}
    theirs = sklearn.linear_model.Perceptron(**options).fit(X, y)
    ours = Perceptron(**options).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-9)
    assert ours.n_iter_ == theirs.n_iter_  # passes end by the same rule
    whole, light = (Perceptron(penalty="l1", alpha=alpha).fit(X, y) for alpha in (0.0, 1.0))
    assert np.abs(light.coef_).sum() < np.abs(whole.coef_).sum()
