"""Cross-validation against loops by hand and scikit-learn, its intervals by simulation, and what must not break it."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression as Theirs
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from tests.grids import exhaustive
from tests.learners import Mean

from certifit import (
    KernelRidge,
    KernelRidgeCV,
    LinearRegression,
    RandomForestClassifier,
    RandomForestRegressor,
    Ridge,
)
from certifit import cross_validate as validate
from certifit.evaluation.metrics.registry import METRICS
from certifit.evaluation.resampling.division import divided
from certifit.evaluation.resampling.optimism import error_632_plus, no_information
from certifit.kernels import RBF

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = X @ [1.0, -1.0, 0.5] + RNG.normal(size=90)
LABELS = np.where(Y > 0, "up", "down")


class Fails(RegressorMixin, BaseEstimator):
    """Fails, or predicts NaN, on fits that lack row 0."""

    def __init__(self, how: str = "raise", always: bool = False):
        self.how, self.always = how, always

    def fit(self, X: np.ndarray, y: np.ndarray) -> Fails:
        self.bad_ = self.always or not (globals()["X"][0] == X).all(axis=1).any()
        if self.bad_ and self.how == "raise":
            raise RuntimeError("no row 0")
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(X.shape[0], np.nan if self.bad_ else 0.0)


class Recorder(ClassifierMixin, BaseEstimator):
    """Says which class was most frequent."""

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Recorder:
        self.classes_, counts = np.unique(y, return_counts=True)
        self.said_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(X.shape[0], self.said_)


def test_values_and_predictions_are_scikit_learns() -> None:
    cv = KFold(4, shuffle=True, random_state=1)
    found = validate(Ridge(alpha=0.1), X, Y, ["mse", "r2"], cv=cv)
    theirs = cross_val_score(Ridge(alpha=0.1), X, Y, cv=cv, scoring="neg_mean_squared_error")
    np.testing.assert_allclose(found["mse"].parts, -theirs)
    np.testing.assert_allclose(found["r2"].parts, cross_val_score(Ridge(alpha=0.1), X, Y, cv=cv, scoring="r2"))
    np.testing.assert_allclose(found.predictions["value"], cross_val_predict(Ridge(alpha=0.1), X, Y, cv=cv))
    assert found["mse"].value == pytest.approx(np.mean((Y - found.predictions["value"]) ** 2))
    assert found["mse"].low < found["mse"].value < found["mse"].high
    cv = KFold(3)
    found = validate(Theirs(), X, LABELS, ["log_loss", "accuracy", "roc_auc"], cv=cv)
    for ours, name in (("accuracy", "accuracy"), ("roc_auc", "roc_auc")):
        np.testing.assert_allclose(found[ours].parts, cross_val_score(Theirs(), X, LABELS, cv=cv, scoring=name))
    np.testing.assert_allclose(
        found.predictions["probability"], cross_val_predict(Theirs(), X, LABELS, cv=cv, method="predict_proba")
    )
    assert (found.predictions["label"] == cross_val_predict(Theirs(), X, LABELS, cv=cv)).all()


def test_frames_weights_threads_and_plain_data() -> None:
    arrays = validate(Ridge(), X, Y, repeats=2)
    assert len(arrays.parts) == 10
    assert "dealt 2 times" in arrays.method
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    assert validate(Ridge(), X, Y, repeats=2, n_jobs=2).scores == arrays.scores
    assert validate(Ridge(), frame, Y, repeats=2)["r2"].low == pytest.approx(arrays["r2"].low)
    weight = np.r_[np.zeros(30), np.ones(60)]
    weighted = validate(Ridge(), X, Y, sample_weight=weight)
    assert weighted["rmse"].value == pytest.approx(validate(Ridge(), X[30:], Y[30:])["rmse"].value)
    assert np.isnan(weighted.predictions["value"][:30]).all()
    pairs = [(np.arange(45), np.arange(45, 90)), (np.arange(45, 90), np.arange(45))]
    by_pairs = validate(Ridge(), X, Y, cv=pairs, sample_weight=weight)
    assert [part.test.shape[0] for part in by_pairs.parts] == [45, 15]
    assert json.loads(json.dumps(arrays.as_dict()))["scores"][0]["metric"] == "rmse"
    assert arrays.to_frame().shape == (10, 6)
    assert len(validate(Ridge(), X, Y, keep_models=True).models) == 5
    with pytest.raises(KeyError, match="rmse"):
        arrays["mae"]


def test_classes_in_proportion_groups_whole_and_time_in_order() -> None:
    rare = np.array(["rare"] * 9 + ["common"] * 81)
    for part in validate(Recorder(), X, rare, "accuracy", cv=9).parts:
        assert (rare[part.test] == "rare").sum() == 1
    groups = np.arange(90) // 7
    for part in validate(Ridge(), X, Y, groups=groups).parts:
        assert not set(groups[part.train]) & set(groups[part.test])
    for part in validate(Ridge(), X, Y, time=np.arange(90)[::-1]).parts:
        assert part.train.min() > part.test.max()
    alone = validate(Ridge(), X, Y, cv="loo", groups=groups)
    assert [part.test.shape[0] for part in alone.parts] == [7] * 12 + [6]


def test_intervals_of_groups_are_wider_when_rows_of_a_group_agree() -> None:
    groups = np.repeat(np.arange(18), 5)
    shared = RNG.normal(size=18)[groups] + 0.1 * RNG.normal(size=90)
    apart, together = (validate(Ridge(), X, shared, "mse", groups=g) for g in (None, groups))
    width = [np.log(found["mse"].high / found["mse"].low) for found in (apart, together)]
    assert width[1] > 1.5 * width[0]


@pytest.mark.parametrize(
    "model", [LinearRegression(), Ridge(alpha=0.2), KernelRidge(kernel=RBF(0.3), alpha=0.01)], ids=str
)
def test_leave_one_out_in_closed_form_is_the_refits(model: Any) -> None:
    closed = validate(model, X[:30], Y[:30], cv="loo")
    pairs = [(np.delete(np.arange(30), i), [i]) for i in range(30)]
    refits = validate(model, X[:30], Y[:30], "mse", cv=pairs)
    assert "closed form" in closed.method
    np.testing.assert_allclose(closed.predictions["value"], refits.predictions["value"], rtol=1e-6)
    assert closed["rmse"].value ** 2 == pytest.approx(refits["mse"].value)
    constrained = validate(Ridge(positive=True), X[:30], Y[:30], "mse", cv="loo")
    assert len(constrained.parts) == 30


@pytest.mark.parametrize("model", [KernelRidge(), KernelRidge(kernel=2.0 * RBF("median")), KernelRidgeCV()], ids=str)
def test_what_is_measured_on_the_rows_is_measured_without_the_row_left_out(model: Any) -> None:
    found = validate(model, X[:12], Y[:12], "mse", cv="loo")
    assert len(found.parts) == 12
    without = clone(model).fit(X[1:12], Y[1:12])
    assert found.predictions["value"][0] == pytest.approx(without.predict(X[:1])[0])
    with pytest.raises(ValueError, match="another without one of them"):
        model.loo_predictions(X[:12], Y[:12])


def test_out_of_bag_scores_are_the_forests_own() -> None:
    forest = RandomForestClassifier(n_estimators=20, random_state=0, oob_score=True).fit(X, LABELS)
    found = validate(clone(forest).set_params(oob_score=False), X, LABELS, ["accuracy", "roc_auc"], cv="oob")
    assert found["accuracy"].value == pytest.approx(forest.oob_score_)
    forest = RandomForestRegressor(n_estimators=20, random_state=0, oob_score=True).fit(X, Y)
    assert validate(forest, X, Y, "r2", cv="oob")["r2"].value == pytest.approx(forest.oob_score_)
    with pytest.raises(ValueError, match="oob_score; Ridge has none"):
        validate(Ridge(), X, Y, cv="oob")


def test_the_bootstrap_judges_rows_not_drawn_and_is_corrected() -> None:
    division = divided("bootstrap", Y, task="regression", n_resamples=40, rng=np.random.default_rng(0))
    for part in division.parts:
        assert part.train.shape[0] == 90
        assert set(part.train) | set(part.test) == set(range(90))
    assert division.overlap == pytest.approx(0.368 / 0.632, rel=0.1)
    # One neighbor remembers its rows, and labels that mean nothing are guessed: .632+ is not fooled, .632 would say 0.316.
    coin = RNG.choice(["a", "b"], size=90)
    found = validate(KNeighborsClassifier(1), X, coin, "zero_one", cv=".632+", n_resamples=40)
    assert 0.4 < found["zero_one"].value < 0.6
    stable = {
        cv: validate(Ridge(alpha=1e-3), X, Y, "mse", cv=cv, n_resamples=40)["mse"] for cv in ("bootstrap", ".632+", 10)
    }
    assert stable[".632+"].value < stable["bootstrap"].value
    assert stable[".632+"].value == pytest.approx(stable[10].value, rel=0.05)
    accuracy = validate(KNeighborsClassifier(3), X, LABELS, ["accuracy", "zero_one"], cv=".632+", n_resamples=20)
    assert accuracy["accuracy"].value == pytest.approx(1.0 - accuracy["zero_one"].value)


def test_the_rate_without_information_is_the_mean_over_all_pairs() -> None:
    metric, p, w = METRICS["zero_one"], RNG.choice(["up", "down"], 90), RNG.uniform(size=90)
    pairs = (LABELS[:, None] != p[None, :]) * np.outer(w, w)
    found = no_information(metric, LABELS, p, w, None, RNG)
    assert found == pytest.approx(pairs.sum() / np.outer(w, w).sum())
    assert error_632_plus(0.0, 0.3, 0.5) == pytest.approx(0.632 / (1 - 0.368 * 0.6) * 0.3)
    assert error_632_plus(0.3, 0.2, 0.1) == pytest.approx(0.368 * 0.3 + 0.632 * 0.2)


@pytest.mark.parametrize("how", ["raise", "nan"])
def test_a_part_that_fails_is_told_and_left_out(how: str) -> None:
    with pytest.warns(FitFailedWarning, match="1 of 3 failed"):
        found = validate(Fails(how), X, Y, "mse", cv=3)
    assert np.isnan(found["mse"].parts).sum() == 1
    assert len(found.failures) == 1
    judged = [fold.test for fold, value in zip(found.parts, found["mse"].parts, strict=True) if np.isfinite(value)]
    assert found["mse"].value == pytest.approx(np.mean(Y[np.concatenate(judged)] ** 2))
    assert json.loads(json.dumps(found.as_dict()))["scores"][0]["parts"].count(None) == 1
    with pytest.raises((RuntimeError, ValueError), match=r"no row 0|finite"):
        validate(Fails(how), X, Y, "mse", cv=3, on_failure="raise")
    with pytest.raises((RuntimeError, ValueError), match=r"no row 0|finite"):
        validate(Fails(how, always=True), X, Y, "mse", cv=3)


def test_a_class_absent_from_a_part() -> None:
    labels = np.array(["a"] * 45 + ["b"] * 44 + ["only"])
    pairs = [(np.r_[1:50, 51:89], [89, 0, 50]), (np.arange(20, 90), np.arange(20))]
    found = validate(Theirs(), X, labels, ["log_loss", "accuracy"], cv=pairs)
    assert found.predictions["probability"].shape == (90, 3)
    assert found.predictions["probability"][89, 2] == 0.0
    pairs = [(np.arange(20, 90), np.arange(20)), (np.r_[0:40, 60:90], np.arange(40, 60))]
    with pytest.warns(FitFailedWarning, match="roc_auc"):
        found = validate(Theirs(), X, [*labels[:89].tolist(), "b"], "roc_auc", cv=pairs)
    assert np.isfinite(found["roc_auc"].value)


def test_errors_of_zero_are_judged_in_silence() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = validate(Mean(), X, np.full(90, 3.0), "rmse")["rmse"]
    assert (score.low, score.value, score.high) == (0.0, 0.0, 0.0)


def test_equal_scores_and_constant_predictions_have_honest_intervals() -> None:
    easy = np.where(np.arange(90) % 2, "b", "a")
    perfect = validate(Theirs(C=1e6), np.where(easy == "b", 5.0, -5.0)[:, None], easy, ["accuracy", "roc_auc"])
    for score in perfect.scores:
        assert score.value == 1.0
        assert 0.9 < score.low < 0.97
        assert score.high == 1.0
    constant = validate(DummyClassifier(), X, easy, ["accuracy", "log_loss"])
    assert constant["accuracy"].low < 0.5 < constant["accuracy"].high


def test_bad_input() -> None:
    for problem, arguments in {
        "cv=91 folds need as many rows; there are 90": {"cv": 91},
        "cv=5 folds need as many groups; there are 3": {"groups": np.arange(90) % 3},
        "cv must be an integer": {"cv": 1},
        "cv must be a number of folds or one of": {"cv": "often"},
        "cv must be a number of folds, one of": {"cv": 0.5},
        "judges rows that it was fitted on": {"cv": [([0, 1, 2], [2])]},
        "no rows to judge": {"cv": [([0, 1, 2], [])]},
        "cv gives no parts": {"cv": []},
        "no list of row numbers below 90": {"cv": [([0, 1, 2], [99])]},
        "groups must have one entry": {"groups": [1, 2]},
        "groups has a missing label at row 3": {"groups": np.where(np.arange(90) == 3, np.nan, np.arange(90) % 9)},
        "groups has a missing label at row 0": {"groups": [None, *"ab" * 44, "a"]},
        "metrics mixes": {"metrics": ["rmse", "accuracy"]},
        "at least one metric": {"metrics": []},
        "is none: take 'mse'": {"metrics": "rmse", "cv": ".632+"},
        "on_failure": {"on_failure": "ignore"},
        "repeats": {"repeats": 0},
        "repeats must be 1 with a time": {"repeats": 2, "time": np.arange(90)},
        "ignores the order of time": {"cv": "loo", "time": np.arange(90), "metrics": "mae", "groups": np.arange(90)},
    }.items():
        with pytest.raises(ValueError, match=problem.replace("(", r"\(")):
            validate(Ridge(), X, Y, **arguments)
    with pytest.raises(ValueError, match="same number of rows"):
        validate(Ridge(), X, Y[:5])
    with pytest.raises(ValueError, match="one class only"):
        validate(Theirs(), X, np.ones(90, dtype=int))
    with pytest.raises(TypeError, match="no predict_proba"):
        validate(Recorder(), X, LABELS, "log_loss")


@exhaustive
@pytest.mark.parametrize("cv", [2, 5, 20, "loo", "bootstrap"])
def test_intervals_cover_the_risk_of_the_learner(cv: object) -> None:
    """95 % intervals of the mean squared error of 60 rows, whose squares are skewed."""
    draw, n, d, rounds = np.random.default_rng(1), 60, 5, 1000
    fitted = {2: 30, 5: 48, 20: 57, "loo": 59, "bootstrap": 38}[cv]  # type: ignore[index]
    truth = []
    for _ in range(4000):
        A = draw.normal(size=(fitted, d))
        w = np.linalg.lstsq(np.c_[np.ones(fitted), A], draw.normal(size=fitted), rcond=None)[0]
        truth.append(1.0 + w @ w)
    covered = 0
    for _ in range(rounds):
        A, b = draw.normal(size=(n, d)), draw.normal(size=n)
        found = validate(LinearRegression(), A, b, "mse", cv=cv, n_resamples=20, random_state=draw)["mse"]
        covered += found.low <= np.mean(truth) <= found.high
    # 0.94 to 0.97, and what 1,000 rounds leave open: 1.5 % are more than two standard errors.
    assert 0.925 < covered / rounds < 0.985
