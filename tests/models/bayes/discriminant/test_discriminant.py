"""Discriminants against scikit-learn's and SciPy's densities; what the notes say of priors, costs and outliers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

from certifit import LDA, QDA, NearestCentroid

RNG = np.random.default_rng(1)
Y = RNG.integers(0, 3, 200)
X = (
    RNG.normal(size=(200, 3)) @ np.array([[2.0, 0.3, 0], [0, 1.0, 0.5], [0, 0, 0.5]])
    + np.array([[0, 0, 0], [2, 1, 0], [0, 3, 1]])[Y]
)


def test_linear_discriminant_is_the_peer_s() -> None:
    # Their default solver divides by n − K in earlier releases.
    ours, theirs = LDA().fit(X, Y), LinearDiscriminantAnalysis(solver="eigen").fit(X, Y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-8)
    projected = ours.transform(X)
    within = sum(np.cov(projected[k == Y].T, bias=True) * np.mean(k == Y) for k in range(3))
    np.testing.assert_allclose(within, np.eye(2), atol=1e-10)
    scores = X @ ours.coef_.T + ours.intercept_
    np.testing.assert_array_equal(scores.argmax(axis=1), ours.predict(X))


@pytest.mark.parametrize("covariance", ["full", "diagonal", "isotropic"])
def test_quadratic_discriminant_is_bayes_rule_on_densities(covariance: str) -> None:
    model = QDA(covariance=covariance).fit(X, Y)
    joint = np.empty((200, 3))
    for k in range(3):
        S = np.cov(X[k == Y].T, bias=True)
        S = {"full": S, "diagonal": np.diag(np.diag(S)), "isotropic": np.eye(3) * np.trace(S) / 3}[covariance]
        joint[:, k] = np.log(np.mean(k == Y)) + stats.multivariate_normal(X[k == Y].mean(0), S).logpdf(X)
    np.testing.assert_allclose(model.decision_function(X), joint, rtol=1e-8)
    np.testing.assert_allclose(model.log_density(X), np.log(np.exp(joint).sum(axis=1)), rtol=1e-8)
    if covariance == "full":
        theirs = QuadraticDiscriminantAnalysis().fit(X, Y)
        assert np.mean(theirs.predict(X) == model.predict(X)) > 0.98  # they divide by n − 1


def test_the_objective_is_the_deviance_of_the_training_rows() -> None:
    for model in (LDA(), QDA(), QDA(covariance="diagonal"), NearestCentroid()):
        model.fit(X, Y)
        joint = model._of_rows(X)[np.arange(200), Y]
        assert model.certificate_.objective == pytest.approx(-joint.mean(), rel=1e-8)
        assert model.certificate_


def test_pooling_goes_from_quadratic_to_linear() -> None:
    np.testing.assert_allclose(QDA(pooling=1.0).fit(X, Y).predict_proba(X), LDA().fit(X, Y).predict_proba(X), rtol=1e-8)


def test_shrinkage_of_ledoit_and_wolf() -> None:
    from sklearn.covariance import ledoit_wolf

    z = X - np.array([X[k == Y].mean(0) for k in range(3)])[Y]
    z /= z.std(axis=0)
    assert LDA(shrinkage="ledoit-wolf").fit(X, Y).shrinkage_ == pytest.approx(
        ledoit_wolf(z, assume_centered=True)[1], rel=1e-6
    )


def test_priors_and_costs_change_without_a_fit() -> None:
    model = LDA().fit(X, Y)
    even = model.with_priors([1 / 3] * 3)
    np.testing.assert_allclose(even.predict_proba(X), LDA(priors=[1 / 3] * 3).fit(X, Y).predict_proba(X), rtol=1e-9)
    costs = np.array([[0, 1, 1], [50, 0, 1], [1, 1, 0]])
    dear = model.with_costs(costs)
    np.testing.assert_array_equal(dear.predict(X), (model.predict_proba(X) @ costs).argmin(axis=1))
    assert (dear.predict(X) == 0).sum() < (model.predict(X) == 0).sum()
    np.testing.assert_array_equal(model.predict(X), LDA().fit(X, Y).predict(X))


def test_outlier_probability_is_a_probability() -> None:
    model = QDA().fit(X, Y)
    rng = np.random.default_rng(0)
    drawn = np.vstack(
        [model.means_[k] + model._forms[k].sample(int(1000 * p), rng) for k, p in enumerate(model.priors_)]
    )
    low = model.outlier_probability(drawn)
    assert np.mean(low < 0.05) == pytest.approx(0.05, abs=0.03)
    assert model.outlier_probability([[40.0, 40.0, 40.0]])[0] < 1e-4


def test_directions_without_variance_are_left_out() -> None:
    flat = np.column_stack([X, X[:, 0] + X[:, 1], np.full(200, 2.0)])
    np.testing.assert_allclose(
        LDA().fit(flat, Y).predict_proba(flat), LDA().fit(X, Y).predict_proba(X), rtol=1e-5, atol=1e-9
    )
    assert "left out" in str(LDA().fit(flat, Y).certificate_)
    small = X * [1.0, 1e-9, 1e9]  # a column in small units is no flat direction
    np.testing.assert_allclose(
        QDA().fit(small, Y).predict_proba(small), QDA().fit(X, Y).predict_proba(X), rtol=1e-5, atol=1e-9
    )


def test_nearest_centroid_is_nearest() -> None:
    model = NearestCentroid().fit(X, Y)
    means = np.array([X[k == Y].mean(0) for k in range(3)])
    np.testing.assert_array_equal(model.predict(X), ((X[:, None] - means) ** 2).sum(-1).argmin(axis=1))


@pytest.mark.parametrize("model", [LDA(), QDA(), NearestCentroid()], ids=lambda m: type(m).__name__)
def test_blocks_add_up_to_the_whole(model: object) -> None:
    whole = model.fit(X, Y).predict_proba(X)  # type: ignore[attr-defined]
    parts = type(model)()
    for rows in (slice(0, 50), slice(50, 60), slice(60, None)):
        parts.partial_fit(X[rows], Y[rows], classes=[0, 1, 2])
    np.testing.assert_allclose(parts.predict_proba(X), whole, rtol=1e-8, atol=1e-14)


def test_a_class_with_too_few_rows_has_the_covariance_of_all() -> None:
    more, labels = np.vstack([X, [[9.0, 9.0, 9.0]]]), np.r_[Y, 7]
    model, shared, alone = QDA().fit(more, labels), LDA().fit(more, labels), QDA().fit(X, Y)
    np.testing.assert_array_equal(model.pooling_, [0.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(model.covariance_[3], shared.covariance_)
    np.testing.assert_allclose(model.covariance_[:3], alone.covariance_)
    assert "7" in model.certificate_.note
    assert "fewer directions" not in alone.certificate_.note
    assert model.predict([[9.0, 9.0, 9.0]]) == [7]


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="sum to 1"):
        LDA(priors=[0.5, 0.2, 0.2]).fit(X, Y)
    with pytest.raises(ValueError, match="n_components"):
        LDA(n_components=3).fit(X, Y)
    np.testing.assert_allclose(LDA().fit(np.ones((4, 2)), [0, 0, 0, 1]).predict_proba([[1.0, 1.0]]), [[0.75, 0.25]])
    with pytest.raises(ValueError, match="negative diagonal"):
        LDA().fit(X, Y).with_costs(-np.eye(3))
    with pytest.raises(ValueError, match=r"3 rows|one row"):
        LDA().fit(X, Y).with_costs(np.ones((2, 2)))
    with pytest.raises(ValueError, match="all rows at once"):
        LDA(shrinkage="ledoit-wolf").partial_fit(X, Y, classes=[0, 1, 2])
