"""Search against scikit-learn's, the rule of one standard error, halving, and what must not break it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from certifit import DecisionTreeClassifier, LinearSVC, LogisticRegression, Ridge, Search, StandardScaler, TableEncoder
from certifit.evaluation.splits.choice import Curve

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6))
Y = X[:, 0] + RNG.normal(size=120)
ALPHAS = [1e-3, 1e-2, 0.1, 1.0, 10.0]


class Fragile(RegressorMixin, BaseEstimator):
    """Fails, or predicts NaN, for one value of its parameter."""

    def __init__(self, level: float = 0.0, how: str = "raise"):
        self.level, self.how = level, how

    def fit(self, X: np.ndarray, y: np.ndarray) -> Fragile:
        if self.level == 1.0 and self.how == "raise":
            raise RuntimeError("level 1 is too much")
        self.fitted_ = True
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), np.nan if self.level == 1.0 else self.level)


@pytest.mark.parametrize("metric", [("mse", "neg_mean_squared_error"), ("r2", "r2")])
def test_it_finds_what_scikit_learn_finds(metric: tuple[str, str]) -> None:
    cv = KFold(4)
    ours = Search(Ridge(), {"alpha": ALPHAS}, metric=metric[0], cv=cv).fit(X, Y)
    theirs = GridSearchCV(Ridge(), {"alpha": ALPHAS}, scoring=metric[1], cv=cv).fit(X, Y)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_index_ == theirs.best_index_
    for name in ("mean_test_score", "std_test_score", "rank_test_score", "split2_test_score"):
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name])
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X))
    assert ours.score(X, Y) == pytest.approx(theirs.score(X, Y))
    assert ours.certificate_.certified


def test_the_simplest_within_one_standard_error() -> None:
    cv = KFold(5)
    search = Search(Ridge(), {"alpha": ALPHAS}, cv=cv, one_standard_error=True).fit(X, Y)
    errors = -np.column_stack([search.cv_results_[f"split{k}_test_score"] for k in range(5)])
    curve = Curve.of(errors, np.full(5, 24.0))
    best = int(np.argmin(curve.mean))
    equal = [a for a, m in zip(ALPHAS, curve.mean, strict=True) if m <= curve.mean[best] + curve.standard_error[best]]
    assert search.best_params_["alpha"] == max(equal) > ALPHAS[best]
    small = Search(
        Ridge(), {"alpha": ALPHAS}, cv=cv, one_standard_error=True, simplicity=lambda setting: -setting["alpha"]
    ).fit(X, Y)
    assert small.best_params_["alpha"] == min(equal)
    with pytest.raises(ValueError, match="which values of 'fit_intercept' are simpler is not known"):
        Search(Ridge(), {"fit_intercept": [True, False]}, one_standard_error=True).fit(X, Y)


def test_equal_scores_go_to_the_first() -> None:
    same = Search(DecisionTreeClassifier(), {"max_depth": [5, 3, 4]}).fit(X[:, :1], X[:, 0] > 0)
    assert same.best_params_ == {"max_depth": 5}
    assert same.cv_results_["rank_test_score"].tolist() == [1, 1, 1]


def test_draws_and_several_grids() -> None:
    drawn = [
        Search(Ridge(), {"alpha": loguniform(1e-3, 10)}, strategy="random", n_iter=7, random_state=3).fit(X, Y)
        for _ in "12"
    ]
    assert len(drawn[0].cv_results_["params"]) == 7
    assert drawn[0].best_params_ == drawn[1].best_params_
    grids = Search(Ridge(), [{"alpha": [1.0]}, {"alpha": [0.1], "fit_intercept": [False]}]).fit(X, Y)
    assert grids.cv_results_["param_fit_intercept"].tolist() == [None, False]
    few = Search(Ridge(), {"alpha": ALPHAS}, strategy="random", n_iter=50, random_state=0).fit(X, Y)
    assert len(few.cv_results_["params"]) == 5


def test_halving_ends_on_all_rows_with_the_best_of_few() -> None:
    search = Search(Ridge(), {"alpha": np.geomspace(1e-3, 100, 9).tolist()}, strategy="halving", cv=KFold(4), factor=3)
    search.fit(X, Y)
    rung, rows = search.cv_results_["iter"], search.cv_results_["n_resources"]
    assert np.bincount(rung).tolist() == [6, 2, 1]
    assert [int(rows[rung == r][0]) for r in range(3)] == [10, 30, 90]
    assert rung[search.best_index_] == 2
    assert search.cv_results_["rank_test_score"][search.best_index_] == 1
    whole = Search(Ridge(), {"alpha": [search.best_params_["alpha"]]}, cv=KFold(4)).fit(X, Y)
    assert search.best_score_ == pytest.approx(whole.best_score_)


def test_time_limit_threads_and_bar(capsys: pytest.CaptureFixture[str]) -> None:
    late = Search(Ridge(), {"alpha": ALPHAS}, time_limit=1e-9, verbose=1).fit(X, Y)
    assert not late.complete_
    assert np.isfinite(late.cv_results_["mean_test_score"]).sum() == 1
    assert late.best_params_ == {"alpha": 1e-3}
    assert "Search" in capsys.readouterr().out
    one, two = (Search(Ridge(), {"alpha": ALPHAS}, n_jobs=n).fit(X, Y) for n in (1, 2))
    assert one.best_score_ == two.best_score_
    assert one.complete_


@pytest.mark.parametrize("how", ["raise", "nan"])
def test_a_setting_that_fails_is_out(how: str) -> None:
    with pytest.warns(FitFailedWarning, match="5 of 15 failed"):
        search = Search(Fragile(how=how), {"level": [0.0, 1.0, 5.0]}).fit(X, Y)
    assert search.best_params_ == {"level": 0.0}
    assert np.isnan(search.cv_results_["mean_test_score"][1])
    assert len(search.failures_) == 5
    with pytest.raises((RuntimeError, ValueError), match=r"too much|finite"):
        Search(Fragile(how=how), {"level": [1.0]}).fit(X, Y)


def test_pipelines_frames_and_what_the_best_can_do() -> None:
    labels = np.where(Y > 0, "up", "down")
    frame = pl.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "x", "y")})
    model = make_pipeline(TableEncoder(), StandardScaler(), LogisticRegression())
    search = Search(model, {"logisticregression__alpha": [1e-3, 0.1]}, metric="accuracy").fit(frame, labels)
    assert search.predict_proba(frame).shape == (120, 2)
    assert search.classes_.tolist() == ["down", "up"]
    assert not hasattr(Search(Ridge(), {"alpha": ALPHAS}), "predict_proba")
    assert Search(LinearSVC(), {"alpha": [0.1]}).fit(X, labels).metric_ == "accuracy"
    table = Search(Ridge(), {"alpha": ALPHAS}).fit(X, Y).to_frame()
    assert table["rank_test_score"].to_list() == [1, 2, 3, 4, 5]
    unfitted = Search(Ridge(), {"alpha": ALPHAS}, refit=False).fit(X, Y)
    with pytest.raises(AttributeError, match="refit=False"):
        unfitted.predict(X)


def test_bad_input() -> None:
    for message, arguments in {
        "parameters must say which values": {"estimator": Ridge()},
        "a grid needs lists": {"estimator": Ridge(), "parameters": {"alpha": loguniform(0.1, 1)}},
        "Invalid parameter 'strength'": {"estimator": Ridge(), "parameters": {"strength": [1]}},
        "the values of 'alpha' must be a sequence": {"parameters": {"alpha": 1.0}},
    }.items():
        with pytest.raises(ValueError, match=message):
            Search(**arguments).fit(X, Y)
    with pytest.raises(ValueError, match="one class only"):
        Search(LogisticRegression(), {"alpha": [1.0]}).fit(X, np.ones(120, dtype=int))
    with pytest.raises(ValueError, match="same number of rows"):
        Search().fit(X, Y[:3])
    with pytest.raises(ValueError, match="at least 2"):
        Search().fit(X[:1], Y[:1])
