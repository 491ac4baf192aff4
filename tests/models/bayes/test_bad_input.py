"""Tables and arguments that probability is asked about and should not be surprised by."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from certifit import (
    LDA,
    QDA,
    BayesianLinearRegression,
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    CostMatrix,
    GaussianNB,
    MultinomialNB,
    NaiveBayes,
    NearestCentroid,
    decide,
)

X = np.random.default_rng(0).normal(size=(21, 3))
Y = np.array([0] * 10 + [1] * 10 + [2])
GAUSSIAN = [LDA, QDA, GaussianNB, NearestCentroid, NaiveBayes]


@pytest.mark.parametrize("model", GAUSSIAN)
def test_a_class_with_one_example(model: Any) -> None:
    fitted = model().fit(X, Y)
    assert np.isfinite(fitted.predict_proba(X)).all()
    assert fitted.predict(X[-1:]) == 2


@pytest.mark.parametrize("model", GAUSSIAN)
def test_a_feature_constant_within_a_class(model: Any) -> None:
    Z = X.copy()
    Z[:10, 1] = 4.0
    fitted = model().fit(Z, Y)
    assert np.isfinite(fitted.predict_proba(Z)).all()
    assert (fitted.predict(Z) == Y).mean() > 0.9


@pytest.mark.parametrize("model", GAUSSIAN)
@pytest.mark.parametrize("far", [1e9, 1e155, 1e162, 1e307])
def test_rows_too_far_for_their_squares_are_judged_by_their_direction(model: Any, far: float) -> None:
    fitted = model().fit(X, Y)
    assert np.isfinite(fitted.predict_proba(far * X)).all()
    np.testing.assert_array_equal(fitted.predict(far * X), fitted.predict(1e5 * X))


@pytest.mark.parametrize("model", [LDA, QDA])
def test_a_singular_covariance(model: Any) -> None:
    fitted = model().fit(np.column_stack([X, X[:, 0] + X[:, 1]]), Y)
    wanted = model().fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(fitted.predict_proba(np.column_stack([X, X[:, 0] + X[:, 1]])), wanted, atol=1e-8)
    assert "1 direction without variance is left out" in fitted.certificate_.note


COSTS = {
    "shape": ([[0, 1], [1, 0]], "has 2 rows, but there are 3 classes"),
    "one row": ([[0, 1]], "at least two classes"),
    "negative diagonal": (
        [[-1, 1, 1], [1, 0, 1], [1, 1, 0]],
        "negative diagonal: the right decision for class 0 costs -1",
    ),
    "cheap mistake": ([[2, 1, 3], [1, 0, 1], [1, 1, 0]], "saying 1 for class 0 costs 1, saying 0 costs 2"),
    "NaN": ([[0, np.nan, 1], [1, 0, 1], [1, 1, 0]], "finite"),
    "text": ("dear", "the cost matrix must be numbers"),
}


@pytest.mark.parametrize(("costs", "words"), COSTS.values(), ids=COSTS)
def test_costs_that_are_none(costs: Any, words: str) -> None:
    model = LDA().fit(X, Y)
    for ask in (
        model.with_costs,
        lambda given: decide(model, X, given),
        lambda given: CostMatrix(given, classes=[0, 1, 2]),
    ):
        with pytest.raises(ValueError, match=words):
            ask(costs)


@pytest.mark.parametrize("priors", [[0.5, 0.6, 0.1], [0.5, 0.5], [1.5, -0.5, 0.0], [0.2, 0.3, np.nan]], ids=str)
@pytest.mark.parametrize("model", [LDA, QDA, GaussianNB, MultinomialNB, NaiveBayes])
def test_priors_that_are_none(model: Any, priors: Any) -> None:
    with pytest.raises(ValueError, match="priors must be 3 probabilities that sum to 1"):
        model(priors=priors).fit(np.abs(X), Y)
    if model in (LDA, QDA):
        with pytest.raises(ValueError, match="priors must be 3 probabilities"):
            model().fit(X, Y).with_priors(priors)


def test_a_category_unseen_at_training_is_left_out() -> None:
    model = NaiveBayes().fit(pl.DataFrame({"c": ["a", "b", "a", "b"], "n": [1.0, 2.0, 3.0, 4.0]}), [0, 1, 0, 1])
    new, gone = (pl.DataFrame({"c": [c], "n": [1.0]}, schema={"c": pl.String, "n": pl.Float64}) for c in ("zzz", None))
    np.testing.assert_array_equal(model.predict_proba(new), model.predict_proba(gone))
    np.testing.assert_array_equal(CategoricalNB().fit([[0], [1]], [0, 1]).predict_proba([[9]]), [[0.5, 0.5]])


NAIVE = [GaussianNB(), BernoulliNB(), CategoricalNB(), MultinomialNB(), ComplementNB()]
NAIVE += [
    NaiveBayes(kinds=kind) for kind in ("gaussian", "kernel", "poisson", "categorical", "bernoulli", "multinomial")
]


@pytest.mark.parametrize("model", NAIVE, ids=repr)
def test_a_column_all_missing_says_nothing(model: Any) -> None:
    Z = (X > 0).astype(np.float64)
    Z[:, 1] = np.nan
    found = model.fit(Z, Y).predict_proba(Z)
    np.testing.assert_allclose(found, model.fit(Z[:, [0, 2]], Y).predict_proba(Z[:, [0, 2]]))


@pytest.mark.parametrize("model", [LDA(), QDA(), BayesianLinearRegression()], ids=repr)
def test_missing_values_are_refused_where_they_have_no_meaning(model: Any) -> None:
    Z = X.copy()
    Z[:, 1] = np.nan
    with pytest.raises(ValueError, match="21 missing values in column 1"):
        model.fit(Z, Y)
