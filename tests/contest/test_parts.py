"""The parts of a contest by themselves: search, blend, calibration, referee."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array
from scipy.special import expit
from tests.contest.tables import loans, prices

from certifit.contest.entrants import (
    ENTRANTS,
    Conditions,
    Encoded,
    Entrant,
    NotApplicable,
    Path,
    Predict,
    entrants_for,
    predictor,
)
from certifit.contest.record.model import Chain
from certifit.contest.search import limits
from certifit.contest.search.blend import blend_weights
from certifit.contest.search.calibrated import Calibrated, calibrated
from certifit.contest.search.limits import Budget, OutOfTime
from certifit.contest.search.race import race
from certifit.contest.search.search import expanded, fit_setting, search
from certifit.contest.standing import Silent, Standing
from certifit.contest.table.encoded import ENCODINGS, Training
from certifit.contest.table.table import Table
from certifit.contest.verdict.finalists import _candidates, rules_of
from certifit.contest.verdict.referee import Referee
from certifit.contest.verdict.scoring import scoring_for
from certifit.evaluation.splits.sealed import folds
from certifit.models.logistic.model import LogisticRegression
from certifit.models.margin.svm import LinearSVC
from certifit.models.tree.model import DecisionTreeClassifier
from certifit.representation.basis.quantiles import QuantileScaler
from certifit.representation.table.encoder import TableEncoder


def encoded(frame: Any, target: str) -> tuple[Training, Conditions, Any]:
    table = Table.from_source(frame, target)
    classes = table.task.classes or ()
    y = np.array([classes.index(label) for label in table.y]) if classes else table.y
    parts = folds(table.y, 4, task=table.task.kind, codes=table.codes, seed=0)
    scoring = scoring_for(table.task.kind, None, len(classes), None)
    conditions = Conditions(table.task.kind, scoring.metric.name, tuple(classes), 0, 1)
    return Training(table.features, y, parts, table.kinds), conditions, scoring


def test_a_path_gives_what_separate_fits_give() -> None:
    """The shortcuts along a path are shortcuts, not other models."""
    for frame, target in ((loans(), "default"), (prices(), "price")):
        training, conditions, _ = encoded(frame, target)
        for entrant in entrants_for(conditions.task):
            rows = training.fold(entrant.encoding, 0)
            if entrant.name in ("polynomial", "glm"):
                continue
            for path in entrant.paths(conditions, rows.train)[:2]:
                if path.predictors is None:
                    continue
                chosen = path.only([0, len(path.settings) // 2])
                n = len(conditions.classes)
                together = [predict(rows.validation) for predict in chosen.fitted(rows.train, n)]
                alone = Path(chosen.settings, chosen.build)
                apart = [predict(rows.validation) for predict in alone.fitted(rows.train, n)]
                for one, other in zip(together, apart, strict=True):
                    scale = max(1.0, float(np.abs(other).max()))
                    np.testing.assert_allclose(one, other, atol=3e-3 * scale, err_msg=entrant.name)


def test_the_encoder_of_a_fold_never_sees_its_validation_rows() -> None:
    frame = prices(60)
    training, _, _ = encoded(frame, "price")
    train, validation = training.folds[0]
    spoiled = frame.with_row_index().with_columns(
        size=np.where(np.isin(np.arange(60), validation), 1e9, frame["size"].to_numpy())
    )
    other = Training(spoiled.select("size", "town"), training.y, training.folds, training.kinds)
    np.testing.assert_array_equal(training.fold("matrix", 0).train.X, other.fold("matrix", 0).train.X)
    assert train.size + validation.size == 60


def guessing(values: Sequence[float], log: list[tuple[int, int]]) -> Entrant:
    """An entrant that predicts constants, and keeps a log of (fold, settings tried)."""

    def predictors(settings: Sequence[Mapping[str, Any]], data: Encoded) -> Iterator[Predict]:
        log.append((len(log), len(settings)))
        for s in settings:
            yield lambda X, v=s["value"]: np.full(X.shape[0], v)

    def paths(conditions: Conditions, data: Encoded) -> list[Path]:
        return [Path(tuple({"value": v} for v in values), lambda s, d: None, predictors)]

    return Entrant("guess", "Guess", "", paths)


def test_hopeless_settings_are_dropped_and_the_best_is_kept() -> None:
    training, conditions, scoring = encoded(prices(), "price")
    mean = float(training.y.mean())
    log: list[tuple[int, int]] = []
    found = search(guessing([mean, mean + 5.0, 1e6, -1e6], log), training, conditions, scoring, 10.0)
    assert found.best.setting["value"] == mean
    assert log[0][1] == 4
    assert log[1][1] == 2, "two are clearly behind after one fold"
    rows, predicted = found.left_out()
    assert sorted(rows) == list(range(training.y.shape[0]))
    assert (predicted == mean).all()


@pytest.mark.parametrize("name", [e.name for e in entrants_for("regression") if not e.baseline])
def test_the_unit_of_the_target_does_not_matter(name: str) -> None:
    """A price in cents is the same question: every setting of an entrant gives the same prediction in another unit."""
    frame = prices(150).filter(pl.col("price") > 0).with_columns(pl.col("price").round())
    unit, predicted = 1e5, []
    for factor in (1.0, unit):
        training, conditions, _ = encoded(frame.with_columns(pl.col("price") * factor), "price")
        entrant = ENTRANTS[name]
        rows = expanded(entrant, training.fold(entrant.encoding, 0), conditions)
        path = entrant.paths(conditions, rows.train)[0]
        model = path.build(path.settings[len(path.settings) // 2], rows.train).fit(rows.train.X, rows.train.y)
        predicted.append(np.asarray(model.predict(rows.validation)) / factor)
    close = 0.1 if name == "forest" else 2e-3  # a forest draws other rows when the target is written otherwise
    np.testing.assert_allclose(predicted[1], predicted[0], rtol=close, atol=close * np.std(predicted[0]))


@pytest.mark.parametrize(("name", "task"), [("kernel_logistic", "binary"), ("kernel_ridge", "regression")])
def test_kernel_entrants_see_products_from_landmarks(name: str, task: str) -> None:
    """A product of columns, which no weighted sum of them knows, from fewer landmarks than rows."""
    X = np.random.default_rng(0).normal(size=(500, 2))
    product = X[:, 0] * X[:, 1]
    y = (product > 0).astype(np.int64) if task == "binary" else product
    conditions, rows = Conditions(task, "any", ("0", "1") if task == "binary" else ()), Encoded(X[:400], y[:400])
    path = ENTRANTS[name].paths(conditions, rows)[0]
    model = path.build(path.settings[0], rows).fit(rows.X, rows.y)
    assert model.score(X[400:], y[400:]) > 0.8
    assert model.certificate_.certified
    assert "of 400 rows" in model.certificate_.claim


def test_a_search_without_time_takes_the_middle_of_the_path() -> None:
    training, conditions, scoring = encoded(prices(), "price")

    def slow(settings: Sequence[Mapping[str, Any]], data: Encoded) -> Iterator[Predict]:
        while True:
            sum(range(1000))
        yield lambda X: np.zeros(X.shape[0])

    settings = tuple({"alpha": a} for a in (1, 2, 3))
    entrant = Entrant("s", "S", "", lambda conditions, data: [Path(settings, lambda s, d: None, slow)])
    found = search(entrant, training, conditions, scoring, 0.1)
    assert found.stopped
    assert found.trials == []
    assert (found.best.setting, found.best.folds) == ({"alpha": 2}, 0)


def test_a_chain_predicts_what_its_parts_predict() -> None:
    training, conditions, scoring = encoded(loans(), "default")
    found = search(ENTRANTS["logistic"], training, conditions, scoring, 20.0)
    rows = training.whole("matrix")
    chain = fit_setting(ENTRANTS["logistic"], found.best, rows, conditions)
    wanted = LogisticRegression(alpha=found.best.setting["alpha"], **{
        k: v for k, v in found.best.setting.items() if k != "alpha"
    }).fit(rows.train.X, training.y)  # fmt: skip
    np.testing.assert_allclose(chain.predict(training.features), wanted.predict_proba(rows.train.X), atol=1e-6)
    assert chain.certificate is not None
    assert chain.certificate.certified


def test_classes_absent_from_a_part_have_probability_zero() -> None:
    X, y = np.arange(6.0)[:, None], np.array([0, 0, 0, 2, 2, 2])
    p = predictor(LogisticRegression(alpha=0.1).fit(X, y), 3)(X)
    assert p.shape == (6, 3)
    assert (p[:, 1] == 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


# blend


def test_a_blend_is_no_worse_than_its_members_and_its_gap_is_proven() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 500)
    members = {}
    for k in range(3):
        p = rng.dirichlet(np.ones(3), 500)
        p[np.arange(500), y] += rng.uniform(0, 1.5, 500)
        members[f"m{k}"] = p / p.sum(axis=1, keepdims=True)
    found = blend_weights(members, y, 3)

    def loss(p: np.ndarray) -> float:
        return float(-np.mean(np.log(p[np.arange(500), y])))

    assert loss(found.predicted) <= min(loss(p) for p in members.values()) + 1e-9
    assert found.certificate.certified
    assert sum(found.weights.values()) == pytest.approx(1.0)


def test_a_blend_of_numbers_agrees_with_the_grid() -> None:
    rng = np.random.default_rng(1)
    y = rng.normal(size=200) * 1e6
    a, b = y + rng.normal(size=200) * 1e6, y + rng.normal(size=200) * 5e5
    found = blend_weights({"a": a, "b": b}, y, 0)
    grid = np.linspace(0, 1, 2001)
    errors = [np.mean((y - w * a - (1 - w) * b) ** 2) for w in grid]
    assert found.weights["a"] == pytest.approx(grid[int(np.argmin(errors))], abs=1e-3)
    assert found.certificate.certified


def test_the_proof_of_a_blend_is_of_the_weights_that_are_used() -> None:
    """A member of small weight is left out: what is proven must be the best of those that stay."""
    rng = np.random.default_rng(3)
    y = rng.normal(size=400)
    a, b = y + rng.normal(size=400), y + rng.normal(size=400)
    c = y + 6.0 * rng.normal(size=400)
    found = blend_weights({"a": a, "b": b, "c": c}, y, 0)
    assert set(found.weights) == {"a", "b"}, "the third has a weight of about 0.014 in the best average of three"
    assert found.certificate.objective == pytest.approx(0.5 * np.mean((y - found.predicted) ** 2))
    assert found.weights == pytest.approx(blend_weights({"a": a, "b": b}, y, 0).weights)


# the race


def test_a_table_is_encoded_before_the_clock_of_an_entrant_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were it encoded within the time of an entrant and interrupted, every entrant would begin anew and none would end."""
    training, conditions, scoring = encoded(prices(), "price")
    calls = []

    def slow(self: Training, encoding: str, budget: Budget) -> None:
        calls.append((encoding, len(limits._ENDS)))
        self.whole(encoding)
        time.sleep(0.3)

    monkeypatch.setattr(Training, "encode", slow)
    standings = [Standing(ENTRANTS[name]) for name in ("baseline", "ridge", "huber")]
    budget = Budget(2.0)
    race(standings, training, conditions=conditions, scoring=scoring, budget=budget, watch=Silent())
    assert calls == [("none", 1), ("matrix", 1)], "once an encoding, under the limit of the race alone"
    assert all(standing.fitted for standing in standings)


def test_folds_that_take_too_long_to_encode_are_given_up() -> None:
    training, _, _ = encoded(prices(), "price")
    assert len(training.folds) == 4
    training.encode("matrix", Budget(60.0))
    assert len(training.folds) == 4
    training.encode("codes", Budget(0.0))
    assert len(training.folds) == 1


# calibration


def test_calibrated_scores_are_probabilities() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    truth = expit(1.5 * X[:, 0])
    y = (rng.random(3000) < truth).astype(int)
    model = calibrated(LinearSVC(alpha=1e-2)).fit(X, y)
    assert np.abs(model.predict_proba(X)[:, 1] - truth).mean() < 0.03
    assert model.certificate_.certified
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))


def test_calibration_with_three_classes_and_with_hardly_any_rows() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    X = np.column_stack([y, y**2]) + 0.3 * rng.normal(size=(120, 2))
    p = calibrated(LinearSVC(alpha=1e-2)).fit(X, y).predict_proba(X)
    assert (p.argmax(axis=1) == y).mean() > 0.9
    few = calibrated(LinearSVC(alpha=1e-1)).fit(X[[0, 50]], y[[0, 50]]).predict_proba(X)
    assert np.isfinite(few).all()


def test_a_calibrated_classifier_of_an_earlier_contest_predicts() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    now = calibrated(LinearSVC(alpha=1e-2)).fit(X, y)
    then = Calibrated()
    then.__dict__.update(estimator_=now.estimator_, calibrator_=now.maps_[0], classes_=now.classes_)
    np.testing.assert_array_equal(then.predict_proba(X), now.predict_proba(X))
    np.testing.assert_array_equal(then.predict(X), now.predict(X))


# referee


def chain_of(model: Any, training: Training, n_classes: int) -> Chain:
    return Chain(training.whole("matrix").encoder, [], model, n_classes)


def test_the_referee_scores_once() -> None:
    training, _, scoring = encoded(prices(), "price")
    rows = training.whole("matrix")
    referee = Referee(training.features, training.y, scoring, 0)
    from certifit.models.linear.regression import Ridge

    model = chain_of(Ridge(alpha=1e-3).fit(rows.train.X, training.y), training, 0)
    judged = referee.judge("ridge", model, 1)
    residual = training.y - model.predict(training.features)
    assert judged.score.value == pytest.approx(float(np.sqrt(np.mean(residual**2))))
    assert judged.score.low < judged.score.value < judged.score.high
    with pytest.raises(ValueError, match="scored once"):
        referee.judge("ridge", model, 1)


def test_scores_come_before_their_intervals_which_may_be_late() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=60)
    features = pl.DataFrame({"guess": y + rng.normal(size=60)})

    class Guess:
        def predict(self, features: pl.DataFrame) -> Any:
            return features["guess"].to_numpy()

    referee = Referee(features, y, scoring_for("regression", None, 0, None), 0)
    standing = Standing(ENTRANTS["ridge"], verdict=referee.judge("ridge", Guess(), 1))
    assert standing.verdict is not None
    metrics = standing.verdict.metrics
    assert referee.look_further([standing], Budget(60.0)) == []
    assert {"rmse", "mae", "r2", "median_absolute_error"} <= set(metrics)
    assert [name for name, metric in metrics.items() if metric["low"] is not None] == ["rmse"]

    def endless(referee: Referee, verdict: Any) -> None:
        time.sleep(10)

    assert referee.look_further([standing], Budget(0.05), endless) == [standing]
    assert referee.look_further([standing], Budget(60.0), Referee.add_intervals) == []
    assert all(metric["low"] <= metric["value"] <= metric["high"] for metric in metrics.values())


def test_intervals_of_more_entrants_are_wider() -> None:
    training, _, scoring = encoded(prices(), "price")
    rows = training.whole("matrix")
    from certifit.models.linear.regression import Ridge

    model = chain_of(Ridge(alpha=1e-3).fit(rows.train.X, training.y), training, 0)
    widths = []
    for entrants in (1, 10):
        score = Referee(training.features, training.y, scoring, 0).judge("r", model, entrants).score
        widths.append(score.high - score.low)
    assert widths[1] > widths[0]


def test_of_very_many_columns_those_that_matter_are_shuffled() -> None:
    rng = np.random.default_rng(0)
    features = pl.DataFrame(rng.normal(size=(500, 200)), schema=[f"x{j}" for j in range(200)])
    features = features.with_columns(pl.Series("town", rng.choice(["a", "b", "c"], 500)))

    def predict(X: pl.DataFrame) -> Any:
        return X["x7"].to_numpy() ** 2 + 3.0 * (X["town"] == "b").to_numpy() + np.abs(X["x150"].to_numpy())

    chosen = _candidates(predict, features, 0)
    assert chosen is not None
    assert len(chosen) == 60
    assert {"x7", "town", "x150"} <= set(chosen)
    assert _candidates(predict, features.select("x7", "town", "x150"), 0) is None


def test_a_setting_that_was_dropped_is_never_chosen_when_time_runs_out() -> None:
    """Its scores may look better by a metric other than the one that it was dropped for."""
    training, conditions, scoring = encoded(prices(), "price")
    mean = float(training.y.mean())

    def predictors(settings: Sequence[Mapping[str, Any]], data: Encoded) -> Iterator[Predict]:
        if len(settings) == 1:  # the second fold, after one setting was dropped
            raise OutOfTime
        for s in settings:
            yield lambda X, v=s["value"]: np.full(X.shape[0], v)

    path = Path(({"value": mean}, {"value": 1e6}), lambda s, d: None, predictors)
    found = search(Entrant("g", "G", "", lambda conditions, data: [path]), training, conditions, scoring, 10.0)
    assert found.stopped
    assert [trial.dropped for trial in found.trials] == [False, True]
    assert found.best.setting["value"] == mean
    rows, predicted = found.left_out()
    assert rows.shape[0] == predicted.shape[0] == training.folds[0][1].shape[0]


def test_the_rules_of_a_tree_are_in_the_words_of_the_table() -> None:
    frame = pl.DataFrame({"color": ["red", "blue", "green", "red"] * 20, "size": np.arange(80.0)})
    encoder = TableEncoder(**ENCODINGS["codes"]).fit(frame)
    kinds = list(encoder.code_labels())
    tree = DecisionTreeClassifier(categorical_features=kinds)
    tree.fit(encoder.transform(frame), (frame["color"] == "red").to_numpy().astype(int))
    text = rules_of(Chain(encoder, [], tree, 2), ("no", "yes"))
    assert "color in {blue, green}: no (40 rows, 100%)" in text
    assert "color in {red}: yes (40 rows, 100%)" in text
    assert tree.classes_.tolist() == [0, 1]  # the tree itself is as it was


def test_a_network_on_quantiles_does_not_see_how_large_a_number_is() -> None:
    training, conditions, _ = encoded(prices(), "price")
    rows = training.fold("matrix", 0)
    entrant = ENTRANTS["network_quantiles"]
    (scaler,) = entrant.expand(conditions, rows.train)
    X = np.asarray(rows.train.X)
    plain, bent = (QuantileScaler().fit(rows) for rows in (X, np.exp(X)))
    for levels, others in zip(plain.levels_, bent.levels_, strict=True):
        np.testing.assert_allclose(levels, others, atol=1e-12)
    assert repr(scaler) == repr(QuantileScaler())
    with pytest.raises(NotApplicable, match="sparse"):
        entrant.expand(conditions, replace(rows.train, X=csr_array(X)))


@pytest.mark.parametrize("frame", ["loans", "prices"])
def test_several_networks_come_last_and_say_their_mean(frame: str) -> None:
    table, target = (loans(), "default") if frame == "loans" else (prices(), "price")
    training, conditions, _ = encoded(table, target)
    rows = training.fold("matrix", 0)
    paths = ENTRANTS["network"].paths(conditions, rows.train)
    counts = [path.settings[0]["networks"] for path in paths]
    assert counts == sorted(counts)
    assert counts[0] == 1 < counts[-1]
    path = paths[-1]
    bag = path.build(path.settings[0], rows.train).fit(rows.train.X, rows.train.y)
    assert len(bag.estimators_) == counts[-1]
    said = predictor(bag, len(conditions.classes))(rows.validation)
    each = [predictor(network, len(conditions.classes))(rows.validation) for network in bag.estimators_]
    np.testing.assert_allclose(said, np.mean(each, axis=0), rtol=1e-9)
    assert not np.array_equal(each[0], each[1])
    assert conditions.classifies == (frame == "loans")
