"""Linear models whose fits are drawn or estimated: near scikit-learn's, and proven."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.linear_model
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from certifit.sklearn import linear_model
from certifit.sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from certifit.sklearn.svm import LinearSVR

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
y = X @ [1.0, -2.0, 0.0, 0.5] + 0.5 * RNG.normal(size=150) + 1.0
WEIGHT = RNG.uniform(0.2, 2.0, 150)
CLASSES = {"alpha": 0.05, "tol": None, "max_iter": 4000, "random_state": 0}  # no tolerance: on to the optimum


@pytest.mark.parametrize("name", ["BayesianRidge", "ARDRegression"])
def test_the_evidence_is_maximized(name: str) -> None:
    theirs, ours = (getattr(home, name)(tol=1e-5).fit(X, y) for home in (sklearn.linear_model, linear_model))
    assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-3)
    assert ours.alpha_ == pytest.approx(theirs.alpha_, rel=2 / 150)  # the intercept is a parameter too
    sure = np.asarray(theirs.lambda_) < 10
    assert_allclose(np.asarray(ours.lambda_)[sure], np.asarray(theirs.lambda_)[sure], rtol=1e-2)
    for a, b in zip(ours.predict(X, return_std=True), theirs.predict(X, return_std=True), strict=True):
        assert_allclose(a, b, rtol=0.02, atol=5e-3)
    with pytest.raises(NotImplementedError, match="compute_score"):
        getattr(linear_model, name)(compute_score=True).fit(X, y)
    with pytest.warns(UserWarning, match="flat"):
        getattr(linear_model, name)(lambda_1=0.5).fit(X, y)


@pytest.mark.parametrize("class_weight", [None, "balanced", {1: 3.0}])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_descent_goes_to_the_optimum_of_scikit_learns_objective(class_weight: Any, weight: Any) -> None:
    labels = (y > 0.5).astype(int)
    model = linear_model.SGDClassifier(loss="log_loss", class_weight=class_weight, **CLASSES)
    model.fit(X, labels, sample_weight=weight)
    # C times the sum of the losses plus half the square is their objective for C = 1/(alpha·n), whatever the weights.
    best = LogisticRegression(C=1 / (0.05 * 150), class_weight=class_weight).fit(X, labels, weight)
    assert_allclose(model.coef_, best.coef_, atol=0.02)
    assert_allclose(model.predict_proba(X), best.predict_proba(X), atol=0.01)
    assert model.certificate_.relative_gap <= 1e-5


def test_descent_on_values() -> None:
    model = linear_model.SGDRegressor(alpha=0.1, tol=1e-6, random_state=0).fit(X, y, sample_weight=WEIGHT)
    assert_allclose(model.coef_, Ridge(alpha=0.1 * 150).fit(X, y, WEIGHT).coef_, atol=0.01)
    free = linear_model.SGDRegressor(penalty=None, tol=1e-6, random_state=0).fit(X, y)
    assert_allclose(free.coef_, LinearRegression().fit(X, y).coef_, atol=0.01)
    assert model.intercept_.shape == (1,)


@pytest.mark.parametrize("loss", ["squared_hinge", "modified_huber"])
def test_squares_of_margins_are_scikit_learns(loss: str) -> None:
    side = np.where(y > 0.5, 1.0, -1.0)
    model = linear_model.SGDClassifier(loss=loss, **CLASSES).fit(X, side)

    def objective(coef: Any, intercept: Any) -> float:
        margin = side * (X @ coef + intercept)
        squares = np.maximum(0.0, 1.0 - margin) ** 2
        losses = np.where(margin < -1.0, -4.0 * margin, squares) if loss == "modified_huber" else squares
        return float(np.mean(losses) + 0.5 * 0.05 * coef @ coef)

    best = objective(model.coef_[0], model.intercept_[0])
    for step in 1e-2 * np.vstack([np.eye(4), -np.eye(4)]):
        assert best < objective(model.coef_[0] + step, model.intercept_[0])


def test_paths_refuse_what_they_do_not_know() -> None:
    for path in (linear_model.lasso_path, linear_model.enet_path):
        for unknown in ({"sample_weight": WEIGHT}, {"normalize": True}):
            with pytest.raises(ValueError, match="Unexpected parameters"):
                path(X, y, **unknown)
        with pytest.warns(FutureWarning, match="n_alphas"):
            assert path(X, y, n_alphas=4)[0].shape == (4,)
        with pytest.warns(FutureWarning, match="alphas=None"):
            path(X, y, alphas=None)
        with pytest.raises(ValueError, match="positive=True is not allowed"):
            path(X, np.column_stack([y, y]), positive=True)


def test_grids_of_alphas_without_a_largest_one() -> None:
    with pytest.raises(ValueError, match="l1_ratio=0"):
        linear_model.ElasticNetCV(l1_ratio=[0.5, 0.0]).fit(X, y)
    assert linear_model.ElasticNetCV(l1_ratio=0.0, alphas=[0.1]).fit(X, y).score(X, y) > 0.9
    model = linear_model.LassoCV(alphas=3).fit(X, np.full(150, 5.0))
    assert_allclose(model.alphas_, 1e-15, rtol=1e-12)
    assert_allclose(model.predict(X), 5.0)


def test_no_tolerance_at_all_is_not_reached() -> None:
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        linear_model.LassoCV(max_iter=1, tol=0).fit(csr_array(X.astype(np.float32)), y)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"l1_ratio": 1.0}, "supports only 'l2'"),
        ({"l1_ratio": 0.5, "solver": "liblinear"}, "Only 'saga'"),
        ({"dual": True}, "supports only dual=False"),
        ({"C": np.inf, "solver": "liblinear"}, "not supported for the liblinear"),
    ],
)
def test_solvers_refuse_the_penalties_of_others(settings: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LogisticRegression(**settings).fit(X, y > 0)


def test_tubes_are_scikit_learns() -> None:
    model = linear_model.SGDRegressor(
        loss="squared_epsilon_insensitive", epsilon=0.3, alpha=0.05, tol=1e-6, random_state=0
    ).fit(X, y)
    best = LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.3, C=1 / (0.05 * 150), intercept_scaling=1e4).fit(
        X, y
    )
    assert_allclose(model.coef_, best.coef_, atol=0.01)


@pytest.mark.parametrize(
    ("settings", "start", "words"),
    [
        ({"learning_rate": "pa1", "loss": "log_loss"}, {}, "pa1"),
        ({"penalty": "elasticnet", "l1_ratio": None}, {}, "l1_ratio must be set"),
        ({"early_stopping": True, "validation_fraction": 0.999}, {}, "left to learn from"),
        ({}, {"coef_init": np.zeros(3)}, "coef_init does not match"),
        ({}, {"intercept_init": np.zeros(3)}, "intercept_init does not match"),
        ({"class_weight": {7: 2.0}}, {}, "not in class_weight"),
    ],
)
def test_descent_refuses_what_scikit_learns_does(settings: Any, start: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        linear_model.SGDClassifier(**settings).fit(X, y > 0, **start)
    model = linear_model.SGDClassifier(random_state=0).fit(X, y > 0, coef_init=np.ones((1, 4)), intercept_init=1.0)
    assert_allclose(model.coef_, linear_model.SGDClassifier(random_state=0).fit(X, y > 0).coef_)


def test_passes_and_what_is_not_offered() -> None:
    model = linear_model.SGDClassifier(random_state=0).partial_fit(X, y > 0, classes=[False, True])
    model.partial_fit(X, y > 0)
    assert model.n_iter_ == 2
    assert model.score(X, y > 0) > 0.85
    assert linear_model.SGDRegressor(random_state=0).partial_fit(X, y).score(X, y) > 0.5
    with pytest.raises(ValueError, match="balanced"):
        linear_model.SGDClassifier(class_weight="balanced").partial_fit(X, y > 0, classes=[False, True])
    with pytest.raises(ValueError, match="early_stopping should be False"):
        linear_model.SGDRegressor(early_stopping=True).partial_fit(X, y)
    with pytest.warns(FutureWarning, match="power_t"):
        linear_model.SGDRegressor(power_t=-1.0).fit(X, y)
    with pytest.warns(UserWarning, match="Maximum number of iteration reached"):
        linear_model.SGDClassifier(max_iter=1, tol=1e-9).fit(X, y > 0)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("name", ["PoissonRegressor", "GammaRegressor"])
def test_of_several_optima_that_of_least_norm(name: str, fit_intercept: bool, form: Any) -> None:
    rng = np.random.default_rng(1)
    narrow = rng.normal(size=(40, 3))
    wide = np.hstack([narrow, narrow @ [[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]]])  # of rank 3
    amounts = np.exp(0.3 * narrow[:, 0]) * rng.uniform(0.5, 1.5, 40)
    weight = np.repeat([1.0, 2.0, 0.0], [20, 18, 2])
    settings = {"alpha": 0.0, "tol": 1e-6, "fit_intercept": fit_intercept}
    best = getattr(linear_model, name)(**settings).fit(narrow[:38], amounts[:38], weight[:38])
    wide[38:] = rng.normal(size=(2, 5))  # without weight, and so not in the row space
    found = getattr(linear_model, name)(**settings).fit(form(wide), amounts, weight)
    scores = narrow[:38] @ best.coef_
    centre = wide[:38].mean(axis=0) if fit_intercept else 0.0
    least = np.linalg.pinv(wide[:38] - centre, rcond=1e-10) @ (scores - scores.mean() * fit_intercept)
    assert_allclose(found.coef_, least, rtol=1e-5, atol=1e-7)
    assert_allclose(found.predict(wide[:38]), best.predict(narrow[:38]), rtol=1e-6)
    assert_allclose(found.model_.coef_, found.coef_, rtol=0)
    assert found.certificate_.certified
    assert found.certificate_.objective == pytest.approx(best.certificate_.objective, rel=1e-9)


def test_least_norm_in_single_precision_and_of_one_row() -> None:
    twice = np.repeat(RNG.normal(size=(30, 1)), 2, axis=1).astype(np.float32)
    model = linear_model.PoissonRegressor(alpha=0.0).fit(twice, np.arange(30) % 4)
    assert model.coef_.dtype == np.float32
    assert model.coef_[0] == pytest.approx(model.coef_[1], rel=1e-6)
    single = linear_model.GammaRegressor(alpha=0.0, fit_intercept=False).fit([[3.0, 4.0]], [np.exp(5.0)])
    assert_allclose(single.coef_, [0.6, 0.8], rtol=1e-7)


def test_at_the_least_tolerance_slopes_are_rounding() -> None:
    counts = np.arange(150) % 5
    for fit_intercept in (False, True):
        model = linear_model.PoissonRegressor(alpha=1.0, fit_intercept=fit_intercept, tol=1e-12).fit(X, counts)
        slope = X.T @ (model.predict(X) - counts) / 150 + model.coef_
        assert np.abs(slope).max() <= 1e-14


@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_paths_are_the_same_of_dense_and_sparse_rows(l1_ratio: float) -> None:
    rng = np.random.RandomState(0)
    dense = rng.randn(50, 20)
    target = dense[:, :10] @ rng.randn(10)
    alphas, coefs, _ = linear_model.enet_path(dense, target, l1_ratio=l1_ratio, alphas=20, tol=1e-10)
    assert alphas[0] == pytest.approx(np.abs(dense.T @ target).max() / (50 * l1_ratio))
    assert not coefs[:, 0].any()
    assert coefs[:, 1].any()
    assert_allclose(linear_model.enet_path(csr_array(dense), target, l1_ratio=l1_ratio, alphas=20, tol=1e-10)[1], coefs)


@pytest.mark.parametrize("name", ["Lasso", "ElasticNet"])
def test_without_a_penalty_theirs_warn_and_ours_are_exact(name: str) -> None:
    with pytest.warns(UserWarning, match="You are advised to use the LinearRegression estimator"):
        model = getattr(linear_model, name)(alpha=0.0).fit(X, y)
    assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_)


def test_a_gram_matrix_is_looked_at() -> None:
    centered = X - X.mean(axis=0)
    model = linear_model.ElasticNet(alpha=0.1, precompute=centered.T @ centered)
    assert_allclose(model.fit(centered, y).coef_, linear_model.ElasticNet(alpha=0.1).fit(X, y).coef_)
    with pytest.warns(UserWarning, match="recomputing Gram matrix"):
        model.fit(X + 1.0, y)
    with pytest.raises(ValueError, match=r"did not pass validation .* element \(2,3\)"):
        model.set_params(precompute=np.eye(4)).fit(centered, y)
    with pytest.raises(ValueError, match=r"precompute must have shape .* \(4, 4\)"):
        model.set_params(precompute=np.eye(3)).fit(centered, y)


def test_alphas_of_targets_that_do_not_vary() -> None:
    constant = np.tile([1.0, 2.0], (X.shape[0], 1))
    model = linear_model.MultiTaskLassoCV(alphas=3).fit(X, constant)
    assert_allclose(model.alphas_, np.full(3, np.finfo(np.float64).resolution))
    assert not model.coef_.any()
    assert_allclose(model.predict(X), constant)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_least_squares_tell_the_rank_and_the_singular_values_of_the_rows(fit_intercept: bool, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)) * [1.0, 5.0, 0.1] + 2.0, rng.normal(size=40)
    weight = rng.uniform(0.5, 2.0, 40) if weighted else None
    both = [
        home.LinearRegression(fit_intercept=fit_intercept).fit(X, y, weight)
        for home in (sklearn.linear_model, linear_model)
    ]
    assert both[0].rank_ == both[1].rank_ == 3
    np.testing.assert_allclose(both[1].singular_, both[0].singular_, rtol=1e-8)
    twice = np.column_stack([X, X[:, 0]])
    model = linear_model.LinearRegression(fit_intercept=fit_intercept).fit(twice, y, weight)
    assert model.rank_ == 3
    for missing in (model, linear_model.LinearRegression(), linear_model.LinearRegression(positive=True).fit(X, y)):
        assert not hasattr(missing, "singular_")


@pytest.mark.parametrize(("quantile", "slopes"), [(0.5, (1.0, 10.0)), (0.51, (10.0, 10.0)), (0.49, (1.0, 1.0))])
@pytest.mark.parametrize("dtype", [int, float])
def test_a_vertex_is_that_of_its_rows_to_the_last_bit(
    quantile: float, slopes: tuple[float, float], dtype: type
) -> None:
    rows, target = np.array([[0], [1], [1]], dtype=dtype), np.array([1, 2, 11], dtype=dtype)
    model = linear_model.QuantileRegressor(quantile=quantile, alpha=0).fit(rows, target)
    assert slopes[0] <= model.coef_[0] <= slopes[1]
    assert model.intercept_ == 1.0
    assert model.predict(rows)[0] == 1.0
