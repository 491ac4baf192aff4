"""Boosted trees: every loss, weights, missing values, categories, constraints, stopping, the contract."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from tests.evaluation.user_losses import USER_LOSSES

from certifit import BoostedTrees, GradientBoostingClassifier, GradientBoostingRegressor
from certifit.losses import LOSSES, Absolute, Huber, Logistic, MulticlassHinge, Quantile, Softmax
from certifit.models.boosting.trees import TreeSum

FAST = {"n_estimators": 20, "max_leaf_nodes": 8, "min_samples_leaf": 5, "early_stopping": False}


def data(n=400, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + 0.3 * rng.normal(size=n)
    return X, y


@pytest.mark.parametrize(
    "loss",
    [
        loss
        for loss in (*(cls() for cls in LOSSES.values()), *USER_LOSSES)
        if getattr(loss, "task", "regression") in ("regression", "binary")
    ],  # losses of one score
    ids=repr,
)
def test_every_loss_lowers_itself(loss):
    X, y = data()
    y = (y > 0).astype(float) if loss.task == "binary" else np.exp(0.5 * y)
    model = BoostedTrees(loss=loss, **FAST).fit(X, y)
    start = loss.value(y, np.full(y.shape, model.start_[0])).mean()
    assert model.certificate_.objective < 0.8 * start or start == 0  # the perceptron's is zero at the start
    assert model.certificate_.bound == 0
    assert not model.certificate_  # greedy: nothing is claimed
    assert "tationarity" in model.certificate_.note
    score = model._scores(X)[:, 0]
    assert loss.value(y, score).mean() == pytest.approx(model.certificate_.objective, rel=1e-12)
    np.testing.assert_array_equal(model.predict(X), loss.predict(score))
    # The best constant cannot be improved by a constant, and neither can a leaf after a full step.
    full = BoostedTrees(loss=loss, **{**FAST, "n_estimators": 1, "learning_rate": 1.0}).fit(X, y)
    shifted = [loss.value(y, full._scores(X)[:, 0] + s).mean() for s in (-1e-3, 1e-3)]
    if not loss.smooth or type(loss) is Huber:
        assert min(shifted) >= full.certificate_.objective - 1e-12


@pytest.mark.parametrize("loss", [Absolute(), Quantile(0.8), Huber(0.2)], ids=repr)
def test_leaves_have_their_exact_line_search(loss):
    X, y = data(200)
    model = BoostedTrees(loss=loss, n_estimators=1, learning_rate=1.0, max_leaf_nodes=6).fit(X, y)
    leaf, tree = model.apply(X)[:, 0], model.trees_[0]
    assert tree.n_leaves > 3
    for v in np.unique(leaf):
        inside = y[leaf == v] - model.start_[0]
        grid = np.concatenate([inside, np.linspace(-3, 3, 2001)])
        costs = [loss.value(inside, np.full(inside.shape, t)).sum() for t in grid]
        reached = loss.value(inside, np.full(inside.shape, tree.value[v])).sum()
        assert reached <= min(costs) + 1e-9


CASES = {
    "squared": BoostedTrees(**FAST),
    "absolute": BoostedTrees(loss="absolute", **FAST),
    "huber": BoostedTrees(loss=Huber(0.3), **FAST),
    "poisson": BoostedTrees(loss="poisson", **FAST),
    "logistic": GradientBoostingClassifier(**FAST),
    "classes": GradientBoostingClassifier(**FAST),
    "balanced": GradientBoostingClassifier(class_weight="balanced", **FAST),
    "stopping": BoostedTrees(**{**FAST, "early_stopping": True, "n_iter_no_change": 3}),
    "monotone": BoostedTrees(loss="absolute", monotone_constraints=[1, 0, 0, -1], **FAST),
}


@pytest.mark.parametrize("name", CASES)
def test_a_weight_is_a_number_of_copies(name):
    X, y = data(300, seed=3)
    X[::11, 1] = np.nan
    if name in ("logistic", "balanced"):
        y = y > 0.2
    elif name == "classes":
        y = np.digitize(y, [-0.5, 0.5])
    elif name == "poisson":
        y = np.exp(y)
    weight = np.random.default_rng(0).integers(0, 4, 300)
    a = clone(CASES[name]).fit(X, y, sample_weight=weight)
    b = clone(CASES[name]).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    # Balanced weights are not whole numbers, and are quantized anew in each fit.
    exact = name != "balanced"
    np.testing.assert_allclose(a._scores(X), b._scores(X), rtol=1e-9 if exact else 1e-5, atol=1e-12 if exact else 1e-6)
    assert a.n_iter_ == b.n_iter_
    kept = weight > 0
    c = clone(CASES[name]).fit(X[kept], y[kept], sample_weight=weight[kept])
    np.testing.assert_array_equal(a._scores(X), c._scores(X))


@pytest.mark.parametrize("n", [500, 20000])
@pytest.mark.parametrize("kind", ["logistic", "classes", "absolute", "gamma", "subsample"])
def test_threads_do_not_change_the_model(n, kind):
    X, y = data(n)
    X = X.astype(np.float32)
    model = BoostedTrees(loss=kind if kind in LOSSES else "squared", random_state=0, **FAST)
    if kind == "subsample":
        model.set_params(subsample=0.5, colsample=0.5)
    if kind in ("logistic", "classes"):
        model = GradientBoostingClassifier(**FAST)
        y = np.digitize(y, [0] if kind == "logistic" else [-0.5, 0.5])
    elif kind == "gamma":
        y = np.exp(y)
    scores = [clone(model).set_params(n_jobs=k).fit(X, y)._scores(X) for k in (1, 2)]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert scores[0].dtype == np.float32


def test_stages_add_up_to_the_prediction():
    X, y = data()
    model = BoostedTrees(**FAST).fit(X, y)
    stages = list(model.staged_predict(X))
    assert len(stages) == model.n_iter_ == 20
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    losses = [((y - s) ** 2).mean() for s in stages]
    assert (np.diff(losses) < 0).all()
    labels = np.digitize(y, [-0.5, 0.5])
    classifier = GradientBoostingClassifier(**FAST).fit(X, labels)
    *_, last = classifier.staged_predict_proba(X)
    np.testing.assert_array_equal(last, classifier.predict_proba(X))
    *_, last = classifier.staged_predict(X)
    np.testing.assert_array_equal(last, classifier.predict(X))
    np.testing.assert_allclose(softmax(classifier.decision_function(X), axis=1), classifier.predict_proba(X))


def test_early_stopping_keeps_the_best_stage():
    X, y = data(1000)
    y = y + 2 * np.random.default_rng(1).normal(size=1000)
    model = BoostedTrees(n_estimators=500, learning_rate=0.3, early_stopping=True, n_iter_no_change=5).fit(X, y)
    assert model.n_iter_ < 100
    assert model.n_iter_ == np.argmin(model.validation_loss_) + 1
    assert len(model.validation_loss_) == model.n_iter_ + 5
    assert len(model.trees_) == model.n_iter_
    objective = 0.5 * np.mean((y - model.predict(X)) ** 2)
    assert model.certificate_.objective == pytest.approx(objective)
    assert BoostedTrees(n_estimators=3).fit(X, y).validation_loss_ is None
    assert BoostedTrees(n_estimators=3).fit(X, y, sample_weight=np.full(1000, 11)).validation_loss_ is not None
    # Two distinct rows cannot be dealt in ten parts: all are used.
    few = BoostedTrees(early_stopping=True, min_samples_leaf=1).fit([[0.0], [1.0]], [0.0, 1.0])
    assert few.validation_loss_ is None


def test_missing_values_go_to_the_better_side():
    X, y = data(600)
    X[:, 3] = np.nan
    X[y > 0.5, 0] = np.nan
    model = BoostedTrees(**FAST).fit(X, y)
    assert 0.5 * np.mean((y - model.predict(X)) ** 2) < 0.1
    assert model.feature_importances_[3] == 0
    assert model.feature_importances_.sum() == pytest.approx(1)
    high = model.predict(np.full((1, 4), np.nan))[0]
    assert high > 0.5


@pytest.mark.parametrize("loss", ["squared", "absolute", "poisson"])
def test_monotone_models_never_decrease(loss):
    X, y = data(500)
    y = np.exp(y)
    model = BoostedTrees(loss=loss, monotone_constraints={0: 1, 1: -1}, **FAST).fit(X, y)
    grid = np.linspace(-3, 3, 200)
    for row in X[:20]:
        for column, sign in ((0, 1), (1, -1)):
            line = np.repeat(row[None, :], 200, axis=0)
            line[:, column] = grid
            assert (sign * np.diff(model.predict(line)) >= -1e-12).all()
    free = BoostedTrees(loss=loss, **FAST).fit(X, y)
    assert free.certificate_.objective < model.certificate_.objective


def test_interactions_make_the_model_a_sum():
    X, y = data(500)
    model = BoostedTrees(interactions="none", **FAST).fit(X, y)
    assert all(len(set(t.feature[t.feature >= 0])) <= 1 for t in model.trees_)
    pairs = BoostedTrees(interactions=[[0, 1]], **FAST).fit(X, y)
    for tree in pairs.trees_:
        used = set(tree.feature[tree.feature >= 0])
        assert used <= {0, 1} or used <= {2, 3}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_with_text_columns(frame):
    rng = np.random.default_rng(0)
    n = 600
    city = rng.choice(["Rome", "Oslo", "Lima", "Cairo", "Quito"], n)
    effect = {"Rome": 1.0, "Oslo": -1.0, "Lima": 1.0, "Cairo": -1.0, "Quito": 0.0}
    size = rng.normal(size=n)
    y = np.array([effect[c] for c in city]) * 2 + size + 0.1 * rng.normal(size=n)
    labels = city.astype(object)
    labels[:20] = None
    X = frame({"size": size, "city": labels.tolist()})
    model = BoostedTrees(n_estimators=100, category_smoothing=0.0).fit(X, y)
    assert np.mean((y[20:] - model.predict(X)[20:]) ** 2) < 0.05
    assert list(model.feature_names_in_) == ["size", "city"]
    text = "\n".join(model.rules(i) for i in range(20))
    assert "city in {" in text
    assert "Lima, Rome" in text
    unseen = frame({"size": [0.0, 0.0], "city": ["Atlantis", None]})
    prediction = model.predict(unseen)
    assert prediction[0] == prediction[1]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="city"):
        BoostedTrees(categorical_features=None).fit(X, y)


def test_category_numbers_by_list_name_or_mask():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 12, 800).astype(float)
    y = np.isin(codes, [1, 4, 7, 10]) * 3.0 + 0.1 * rng.normal(size=800)
    X = np.stack([codes, rng.normal(size=800)], axis=1)
    options = {**FAST, "max_leaf_nodes": 2, "n_estimators": 60}
    scores = []
    for categorical in ([0], [True, False], [-2]):
        model = BoostedTrees(categorical_features=categorical, **options).fit(X, y)
        scores.append(model.predict(X))
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])
    named = BoostedTrees(categorical_features=["code"], **options).fit(pd.DataFrame(X, columns=["code", "x"]), y)
    np.testing.assert_array_equal(named.predict(pd.DataFrame(X, columns=["code", "x"])), scores[0])
    assert named.certificate_.objective < 0.05  # one cut of the sorted categories is enough
    numeric = BoostedTrees(**options).fit(X, y)
    assert numeric.certificate_.objective > 10 * named.certificate_.objective
    assert set(named.trees_[0].categories[0]) in ({1, 4, 7, 10}, set(range(12)) - {1, 4, 7, 10})


def test_ten_thousand_categories():
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.arange(10000), rng.integers(0, 100, 5000)]).astype(float)
    y = (codes % 2) + 0.1 * rng.normal(size=15000)
    model = BoostedTrees(categorical_features=[0], n_estimators=5, early_stopping=False).fit(codes[:, None], y)
    assert np.isfinite(model.predict(codes[:, None])).all()
    assert np.isfinite(model.predict([[-7.0], [1e9], [np.nan]])).all()


def test_a_registered_loss_is_known_by_its_name_wherever_it_was_written(monkeypatch):
    class Steep(Logistic):
        name = "steep"

    X, y = data()
    monkeypatch.setitem(LOSSES, "steep", Steep)
    by_name = GradientBoostingClassifier(loss="steep", **FAST).fit(X, y > 0)
    np.testing.assert_array_equal(
        by_name.predict(X), GradientBoostingClassifier(loss=Steep(), **FAST).fit(X, y > 0).predict(X)
    )


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
@pytest.mark.parametrize("unit", [1e-170, 1e-300, 1e150])
def test_targets_whose_squares_are_no_numbers(loss, unit):
    X, y = data(100)
    plain = BoostedTrees(loss=loss, l2=1.0, **FAST).fit(X, y)
    model = BoostedTrees(loss=loss, l2=1.0, **FAST).fit(X, unit * y)
    assert np.isfinite(model.predict(X)).all()
    if loss == "squared":  # the price of a leaf is in the same unit
        np.testing.assert_allclose(model.predict(X) / unit, plain.predict(X), rtol=1e-6)


def test_hard_cases():
    X, y = data(100)
    constant = BoostedTrees().fit(X, np.full(100, 3.5))
    np.testing.assert_array_equal(constant.predict(X), 3.5)
    assert constant.n_iter_ == 0
    assert constant.certificate_.gap == 0  # zero loss is the least there is
    one = BoostedTrees().fit(X[:1], y[:1])
    assert one.predict(X)[5] == y[0]
    single = GradientBoostingClassifier().fit(X, np.full(100, "a"))
    assert (single.predict(X) == "a").all()
    np.testing.assert_array_equal(single.predict_proba(X), np.ones((100, 1)))
    same = GradientBoostingClassifier().fit(np.ones((100, 2)), np.arange(100) % 4 == 0)
    np.testing.assert_allclose(same.predict_proba(np.ones((1, 2)))[0], [0.75, 0.25])
    nothing = BoostedTrees().fit(np.full((50, 2), np.nan), y[:50])
    assert nothing.predict(np.zeros((1, 2)))[0] == pytest.approx(y[:50].mean())
    zeros = BoostedTrees(loss="poisson").fit(X, np.zeros(100))
    np.testing.assert_array_equal(zeros.predict(X), 0)


@pytest.mark.parametrize("scale", [1e150, 1e-150])
@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile", "huber", "gamma"])
def test_extreme_targets(loss, scale):
    X, y = data(200)
    y = np.exp(y)
    loss = Huber(delta=scale) if loss == "huber" else loss
    small = BoostedTrees(loss=Huber(delta=1.0) if isinstance(loss, Huber) else loss, **FAST).fit(X, y)
    model = BoostedTrees(loss=loss, **FAST).fit(X, y * scale)
    assert np.isfinite(model.certificate_.relative_gap)
    np.testing.assert_allclose(model.predict(X), small.predict(X) * scale, rtol=1e-6)


def test_multiclass_hinge_takes_the_best_step_in_every_leaf():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.7, 0.7])
    w = rng.uniform(0.5, 2.0, 300)
    costs = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    for loss in (MulticlassHinge(), MulticlassHinge(costs)):
        model = GradientBoostingClassifier(loss=loss, n_estimators=1, learning_rate=1.0, l2=0.5, max_leaf_nodes=4).fit(
            X, y, w
        )
        scores = np.tile(model.start_, (300, 1))
        for k, tree in enumerate(model.trees_):  # one score after the other
            leaf = TreeSum([tree], model._binner, np.zeros(1)).scores(X, 1)[:, 0]
            for value in np.unique(leaf):
                here = leaf == value

                def cost(v, here=here, k=k, scores=scores, loss=loss):
                    moved = scores[here].copy()
                    moved[:, k] += v
                    return w[here] @ loss.value(y[here], moved) + 0.25 * v * v

                grid = np.append(np.linspace(-4, 4, 4001), 0.0)
                assert cost(value) <= min(cost(v) for v in grid) + 1e-9
            scores[:, k] += leaf
        np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-6)


def test_multiclass_hinge_falls_and_predicts():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 3))
    y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.7, 0.7])]
    model = GradientBoostingClassifier(loss="multiclass_hinge", n_estimators=100, random_state=0).fit(X, y)
    codes = np.searchsorted(model.classes_, y)
    losses = [MulticlassHinge().value(codes, scores).mean() for scores in model._staged_scores(X)]
    assert (np.diff(losses) <= 1e-12).all()
    assert losses[-1] == pytest.approx(model.certificate_.objective)
    assert model.score(X, y) > 0.95
    assert not hasattr(model, "predict_proba")
    # Two classes need one score, and then it is the hinge loss.
    two = GradientBoostingClassifier(loss="multiclass_hinge", n_estimators=5).fit(X, y == "low")
    assert np.array_equal(
        two.decision_function(X),
        GradientBoostingClassifier(loss="hinge", n_estimators=5).fit(X, y == "low").decision_function(X),
    )
    with pytest.raises(ValueError, match="three or more"):
        GradientBoostingClassifier(loss=MulticlassHinge([[0, 1], [2, 0]])).fit(X, y == "low")
    with pytest.raises(ValueError, match="is for two classes; y has 3"):
        GradientBoostingClassifier(loss="hinge").fit(X, y)


def test_softmax_is_known_by_name():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2))
    for y in (np.digitize(X[:, 0], [-0.5, 0.5]), X[:, 0] > 0):
        wanted = GradientBoostingClassifier(n_estimators=5).fit(X, y).predict_proba(X)
        for loss in ("softmax", Softmax()):
            assert np.array_equal(
                GradientBoostingClassifier(loss=loss, n_estimators=5).fit(X, y).predict_proba(X), wanted
            )


def test_classes_may_be_strings_and_weights_move_them():
    X, y = data()
    labels = np.where(y > 1, "high", "low")
    plain = GradientBoostingClassifier(**FAST).fit(X, labels)
    assert set(plain.predict(X)) == {"high", "low"}
    balanced = clone(plain).set_params(class_weight="balanced").fit(X, labels)
    dictionary = clone(plain).set_params(class_weight={"high": 10.0, "low": 1.0}).fit(X, labels)
    share = [np.mean(m.predict(X) == "high") for m in (plain, balanced, dictionary)]
    assert share[0] < share[1]
    assert share[0] < share[2]
    score = balanced.decision_function(X)
    assert score.shape == (400,)
    np.testing.assert_allclose(balanced.predict_proba(X)[:, 1], expit(score))
    hinge = GradientBoostingClassifier(loss="hinge", **FAST).fit(X, labels)
    assert np.mean(hinge.predict(X) == labels) > 0.85
    assert not hasattr(hinge, "predict_proba")
    exponential = GradientBoostingClassifier(loss="exponential", **FAST).fit(X, labels)
    assert np.mean(exponential.predict(X) == labels) > 0.85
    assert exponential.predict_proba(X).shape == (400, 2)


def test_random_draws_repeat_and_rows_out_of_the_draw_are_scored():
    X, y = data()
    model = BoostedTrees(subsample=0.5, colsample=0.5, random_state=7, **FAST)
    a, b = clone(model).fit(X, y), clone(model).fit(X, y)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    assert not np.array_equal(a.predict(X), clone(model).set_params(random_state=8).fit(X, y).predict(X))
    assert a.certificate_.objective == pytest.approx(0.5 * np.mean((y - a.predict(X)) ** 2))


@pytest.mark.parametrize(
    ("parameter", "value", "word"),
    [
        ("n_estimators", 0, "n_estimators"),
        ("learning_rate", -1.0, "learning_rate"),
        ("max_leaf_nodes", 1, "max_leaf_nodes"),
        ("max_depth", 0, "max_depth"),
        ("subsample", 1.5, "subsample"),
        ("max_bins", 300, "max_bins"),
        ("l2", "a lot", "l2"),
        ("loss", "cubic", "loss"),
        ("monotone_constraints", [1], "monotone"),
        ("monotone_constraints", [2, 0, 0, 0], "monotone"),
        ("monotone_constraints", {"age": 1}, "age"),
        ("interactions", "some", "interactions"),
        ("interactions", [[9]], "interactions"),
        ("categorical_features", "all", "categorical"),
        ("categorical_features", [4], "categorical"),
        ("early_stopping", "maybe", "early_stopping"),
        ("validation_fraction", 0.0, "validation_fraction"),
        ("n_jobs", 0, "n_jobs"),
    ],
)
def test_bad_parameters_are_named(parameter, value, word):
    X, y = data(50)
    with pytest.raises((ValueError, TypeError), match=word):
        BoostedTrees(**{parameter: value}).fit(X, y)


def test_bad_data_is_named():
    X, y = data(50)
    with pytest.raises(ValueError, match="infinity"):
        BoostedTrees().fit(np.where(X > 2, np.inf, X), y)
    with pytest.raises(ValueError, match="Poisson"):
        BoostedTrees(loss="poisson").fit(X, y)
    with pytest.raises(ValueError, match="two classes"):
        GradientBoostingClassifier(loss="exponential").fit(X, np.digitize(y, [-0.5, 0.5]))
    with pytest.raises(ValueError, match="categorical"):
        BoostedTrees(categorical_features=[0], monotone_constraints=[1, 0, 0, 0]).fit(X, y)
    with pytest.warns(UserWarning, match="min_samples_leaf"):
        BoostedTrees().fit(X, y, sample_weight=np.full(50, 0.02))


def test_model_selection_varies_the_loss():
    X, y = data(200)
    search = GridSearchCV(
        BoostedTrees(loss=Quantile(0.5), **FAST), {"loss__quantile": [0.2, 0.5], "max_leaf_nodes": [4, 8]}, cv=2
    ).fit(X, y)
    assert search.best_params_["loss__quantile"] == 0.5
    assert cross_val_score(GradientBoostingRegressor(**FAST), X, y, cv=3).mean() > 0.6
