"""Selection by the importance that a model gives."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_selection import SelectFromModel as Theirs

from certifit import KNeighborsClassifier, Lasso, LogisticRegression, RandomForestRegressor, SelectFromModel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 8))
Y = 2 * X[:, 1] - X[:, 6] + 0.5 * X[:, 3] + 0.1 * RNG.normal(size=150)


def test_lasso_keeps_what_is_not_zero() -> None:
    model = SelectFromModel(Lasso(alpha=0.2)).fit(X, Y)
    np.testing.assert_array_equal(model.get_support(indices=True), [1, 3, 6])
    np.testing.assert_array_equal(model.support_, model.estimator_.coef_ != 0)
    assert set(SelectFromModel().fit(X, Y).get_support(indices=True)) >= {1, 3, 6}


@pytest.mark.parametrize("rule", ["mean", "median", 0.05])
def test_thresholds_as_in_scikit_learn(rule: object) -> None:
    for inner in (Lasso(alpha=0.01), RandomForestRegressor(n_estimators=10, random_state=0)):
        ours = SelectFromModel(inner, threshold=rule).fit(X, Y)
        theirs = Theirs(inner, threshold=rule).fit(X, Y)
        np.testing.assert_array_equal(ours.support_, theirs.get_support())
        assert ours.threshold_ == pytest.approx(theirs.threshold_)


def test_at_most_so_many_and_several_scores() -> None:
    assert SelectFromModel(Lasso(alpha=0.01), n_features=2).fit(X, Y).get_support(indices=True).tolist() == [1, 6]
    three = LogisticRegression(alpha=0.01).fit(X, np.digitize(Y, [-1, 1]))
    model = SelectFromModel(LogisticRegression(alpha=0.01), n_features=1).fit(X, np.digitize(Y, [-1, 1]))
    np.testing.assert_allclose(model.importances_, np.linalg.norm(three.coef_, axis=0))
    assert model.get_support(indices=True).tolist() == [1]


def test_a_model_without_importances_is_refused() -> None:
    with pytest.raises(ValueError, match="neither coef_ nor feature_importances_"):
        SelectFromModel(KNeighborsClassifier()).fit(X, Y > 0)


def test_importances_are_drawn_with_the_threshold() -> None:
    plain = SelectFromModel(Lasso(alpha=0.2)).fit(X, Y).plot()
    assert len(plain.patches) == 8
    assert not plain.lines
    line = SelectFromModel(Lasso(alpha=0.2), threshold="mean").fit(X, Y).plot().lines[0]
    assert line.get_ydata()[0] == pytest.approx(np.mean(SelectFromModel(Lasso(alpha=0.2)).fit(X, Y).importances_))
