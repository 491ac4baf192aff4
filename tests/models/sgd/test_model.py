"""Stochastic gradient descent: optima, certificates, weights, and the two engines against each other."""

from __future__ import annotations

import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from tests.oracles import convex

from certifit import LinearModel, Perceptron, SGDClassifier, SGDRegressor
from certifit.data.equal_rows import content_order
from certifit.losses import LOSSES, Absolute, Hinge, Huber, Logistic, Squared
from certifit.optimization.objective.regularizer import Regularizer
from certifit.optimization.stochastic.descent import Steps, Visits
from certifit.optimization.stochastic.engines import NativeEngine, NumpyEngine, Stream
from certifit.penalties import ElasticNet, Lq


def data(loss="squared", n=150, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X @ np.resize([1.0, -2.0, 0.0, 0.5], d) + 0.5 * rng.normal(size=n) + 0.3
    if LOSSES[loss].task == "binary":
        return X, (score > 0).astype(int)
    return X, np.exp(0.3 * score) if loss in ("poisson", "gamma") else score


def quiet_fit(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*args, **kwargs)


@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet", None])
@pytest.mark.parametrize("loss", [name for name in LOSSES if name not in ("perceptron", "relative")])
def test_it_comes_to_the_optimum_and_its_certificate_is_honest(loss, penalty):
    X, y = data(loss)
    cls = SGDClassifier if LOSSES[loss].task == "binary" else SGDRegressor
    model = quiet_fit(cls(loss=loss, penalty=penalty, alpha=0.02, tol=2e-3, random_state=0), X, y)
    wanted = ElasticNet(0.5) if penalty == "elasticnet" else penalty
    optimum, _, _ = convex.optimum(X, y.astype(float), None, loss, wanted, 0.02, None, True)
    certificate = model.certificate_
    scale = certificate.gap / certificate.relative_gap
    assert certificate.bound <= optimum + 1e-8
    assert optimum - 1e-8 <= certificate.objective <= optimum + 0.01 * scale
    coef = np.ravel(model.coef_)
    value = convex.objective(X, y.astype(float), None, loss, wanted, 0.02, coef, float(np.ravel(model.intercept_)[0]))
    assert certificate.objective == pytest.approx(value, rel=1e-9)
    if LOSSES[loss]().smooth and not (penalty is None and cls is SGDClassifier):
        assert certificate.certified, str(certificate)
    assert certificate.certified == (certificate.relative_gap <= 2e-3)


@pytest.mark.parametrize("schedule", ["optimal", "constant", "1/t", "1/sqrt(t)"])
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("batch_size", [1, 16])
def test_every_schedule_converges(schedule, average, batch_size):
    X, y = data("logistic")
    model = SGDClassifier(
        alpha=0.05, schedule=schedule, average=average, batch_size=batch_size, tol=5e-3, max_iter=3000, random_state=1
    ).fit(X, y)
    assert model.certificate_.certified, str(model.certificate_)


def test_the_textbook_steps_are_taken():
    """schedule="1/t" with step c is c/t: two steps by hand."""
    X, y = np.array([[1.0], [2.0]]), np.array([3.0, 1.0])
    model = quiet_fit(
        SGDRegressor(
            penalty=None, schedule="1/t", step=0.1, shuffle=False, average=False, fit_intercept=False, max_iter=1
        ),
        X,
        y,
    )
    w = 0.1 * 3.0
    w -= 0.05 * (2 * w - 1) * 2
    assert model.coef_[0] == pytest.approx(w, rel=1e-14)
    assert model.t_ == 2


class Mine(Logistic):
    """A loss of the user's own: the same formulas, another class, so that it runs in NumPy."""


class MyHuber(Huber):
    pass


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet", None])
def test_a_loss_of_ones_own_gives_the_same_numbers(penalty, sparse):
    options = {"penalty": penalty, "alpha": 0.02, "batch_size": 8, "random_state": 0, "max_iter": 30, "tol": 0.0}
    X, y = data("logistic")
    X = sp.csr_array(X * (np.abs(X) > 0.5)) if sparse else X
    one, two = (quiet_fit(SGDClassifier(loss=loss, **options), X, y) for loss in (Logistic(), Mine()))
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(one.intercept_, two.intercept_, rtol=1e-8)
    assert one.certificate_.objective == pytest.approx(two.certificate_.objective, rel=1e-9)
    assert one.certificate_.bound == pytest.approx(two.certificate_.bound, rel=1e-5)
    X, y = data("huber")
    one, two = (quiet_fit(SGDRegressor(loss=loss, **options), X, y) for loss in (Huber(0.5), MyHuber(0.5)))
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("loss", [Squared(), Hinge(), Absolute()], ids=repr)
def test_engines_agree_step_by_step(loss, batch):
    X, y = data("hinge" if loss.task == "binary" else "squared")
    problem = Stream(
        X, y.astype(float), np.full(150, 1 / 150), loss, Regularizer.of(ElasticNet(0.5), 0.05, None, 5), True
    )
    steps = Steps(batch=batch)
    one, two = NativeEngine(problem, steps), NumpyEngine(problem, steps)
    visits = Visits(np.ones(150), True, np.random.default_rng(0))
    for _ in range(3):
        order = visits.next().copy()
        losses = [engine.epoch(order, (0.05, 1.0, 0.01, 0.75), 2)[0] for engine in (one, two)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-10)
    np.testing.assert_allclose(one.point()[0], two.point()[0], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(one.evaluate(*one.point()), two.evaluate(*two.point()), rtol=1e-7, atol=1e-12)


def test_a_penalty_that_the_kernel_does_not_know_runs_in_numpy():
    X, y = data()
    model = quiet_fit(SGDRegressor(penalty=Lq(1.5), alpha=0.05, batch_size=10, tol=1e-2, random_state=0), X, y)
    exact = LinearModel(penalty=Lq(1.5), alpha=0.05).fit(X, y)
    assert model.certificate_.objective <= exact.certificate_.objective * 1.05


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_softmax_comes_to_its_optimum(penalty):
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=120)
    X = np.eye(3)[y] + 0.7 * rng.normal(size=(120, 3))
    model = SGDClassifier(
        multi_class="softmax", penalty=penalty, alpha=0.05, batch_size=4, tol=5e-3, random_state=0
    ).fit(X, y)
    W, b = cp.Variable((3, 3)), cp.Variable(3)
    f = X @ W.T + np.ones((120, 1)) @ cp.reshape(b, (1, 3), order="C")
    loss = cp.sum(cp.log_sum_exp(f, axis=1) - cp.sum(cp.multiply(np.eye(3)[y], f), axis=1)) / 120
    extra = 0.5 * cp.sum_squares(W) if penalty == "l2" else cp.norm1(cp.vec(W, order="C"))
    optimum = cp.Problem(cp.Minimize(loss + 0.05 * extra)).solve(solver="CLARABEL")
    assert model.certificate_.certified
    assert model.certificate_.bound <= optimum + 1e-7 <= model.certificate_.objective + 2e-7
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_weights_are_repetitions_and_order_is_nothing():
    rng = np.random.default_rng(0)
    for cls, (X, y) in ((SGDClassifier, data("logistic")), (SGDRegressor, data())):
        weight = rng.integers(0, 4, size=150)
        rows = rng.permutation(np.repeat(np.arange(150), weight))
        one = cls(random_state=0, alpha=0.01).fit(X, y, sample_weight=weight)
        two = cls(random_state=0, alpha=0.01).fit(X[rows], y[rows])
        np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-8)


def test_fractional_weights_are_visits_in_the_mean():
    weight = np.array([0.5, 1.5, 0.25, 2.0, 0.75])
    visits = Visits(weight, True, np.random.default_rng(0))
    counts = np.mean([np.bincount(visits.next(), minlength=5) for _ in range(4000)], axis=0)
    np.testing.assert_allclose(counts, weight * 5 / weight.sum(), atol=0.05)


def test_large_data_are_shuffled_in_groups_of_blocks():
    visits = Visits(np.ones(50_000), True, np.random.default_rng(0), size=1 << 30)
    order = visits.next()
    np.testing.assert_array_equal(np.sort(order), np.arange(50_000))
    assert abs(np.corrcoef(order, np.arange(50_000))[0, 1]) < 0.1


def test_the_order_of_content_is_the_same_for_sparse_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4)) * (rng.uniform(size=(50, 4)) < 0.5)
    y = np.arange(50.0)
    np.testing.assert_array_equal(content_order(X, y), content_order(sp.csr_array(X), y))


@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
@pytest.mark.parametrize("average", [True, False])
def test_sparse_is_dense(penalty, average):
    X, y = data("hinge", d=12)
    X[np.abs(X) < 0.7] = 0
    options = {
        "loss": "hinge",
        "penalty": penalty,
        "alpha": 0.01,
        "average": average,
        "max_iter": 20,
        "random_state": 0,
    }
    dense = quiet_fit(SGDClassifier(**options), X, y)
    for matrix in (sp.csr_array(X), sp.csc_array(X)):
        np.testing.assert_allclose(
            quiet_fit(SGDClassifier(**options), matrix, y).coef_, dense.coef_, rtol=1e-7, atol=1e-9
        )


def test_partial_fit_learns_and_remembers():
    X, y = data("logistic", n=3000)
    whole = SGDClassifier(alpha=0.01, random_state=0).fit(X, y)
    model = SGDClassifier(alpha=0.01, random_state=0)
    for _ in range(5):
        for part in np.array_split(np.arange(3000), 10):
            model.partial_fit(X[part], y[part], classes=[0, 1])
    assert np.mean(model.predict(X) == whole.predict(X)) > 0.98
    assert model.t_ == 15_000
    assert model.certificate_.kind == "none"
    after = SGDClassifier(alpha=0.01, random_state=0).fit(X, y).partial_fit(X[:200], y[:200])
    assert np.mean(after.predict(X) == whole.predict(X)) > 0.95


def test_partial_fit_says_what_is_missing():
    X, y = data("logistic")
    with pytest.raises(ValueError, match="classes must be passed"):
        SGDClassifier().partial_fit(X, y)
    model = SGDClassifier().partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"not in classes: \[7\]"):
        model.partial_fit(X, np.where(np.arange(150) == 3, 7, y))
    with pytest.raises(ValueError, match="not the same"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3], y)
    with pytest.raises(ValueError, match="balanced"):
        SGDClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1])


def test_early_stopping_keeps_the_best_epoch_and_copies_share_a_side():
    X, y = data("logistic", n=400, d=40)
    model = SGDClassifier(alpha=1e-6, early_stopping=True, random_state=0, tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # stopping early is what was asked for
        model.fit(X, y)
    assert model.n_iter_ < 1000
    assert len(model.validation_loss_) == model.n_iter_
    assert np.argmin(model.validation_loss_) >= model.n_iter_ - 1 - model.n_iter_no_change
    twice = SGDClassifier(alpha=1e-6, early_stopping=True, random_state=0, tol=1e-9)
    twice.fit(np.tile(X, (2, 1)), np.tile(y, 2))
    doubled = SGDClassifier(alpha=1e-6, early_stopping=True, random_state=0, tol=1e-9)
    doubled.fit(X, y, sample_weight=np.full(400, 2))
    np.testing.assert_allclose(twice.coef_, doubled.coef_, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="early_stopping"):
        SGDClassifier(early_stopping=True).fit(X[:3], [0, 1, 0])


def test_divergence_is_said():
    X, y = data()
    with pytest.warns(ConvergenceWarning, match="Diverged in epoch"):
        model = SGDRegressor(step=10.0, schedule="constant", random_state=0).fit(X, y)
    assert np.isfinite(model.coef_).all()
    # Without a given step, the step is made smaller until it holds.
    X[0] *= 1e4
    model = quiet_fit(SGDRegressor(random_state=0), X, y)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
@pytest.mark.parametrize("cls", [SGDClassifier, SGDRegressor])
def test_extreme_units(cls, scale):
    X, y = data("logistic" if cls is SGDClassifier else "squared")
    model = quiet_fit(cls(random_state=0, max_iter=50), X * scale, y)
    assert np.isfinite(model.predict(X * scale)).all()
    assert np.isfinite(model.certificate_.objective)


def test_extreme_imbalance():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 3)), np.zeros(2000, dtype=int)
    y[:2] = 1
    X[:2] += 6
    model = SGDClassifier(alpha=1e-3, class_weight="balanced", random_state=0).fit(X, y)
    assert (model.predict(X[:2]) == 1).all()
    assert np.mean(model.predict(X) == y) > 0.95


def test_labels_frames_precision_threads():
    X, y = data("logistic")
    names = np.where(y == 1, "yes", "no").astype(object)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = SGDClassifier(random_state=0, alpha=0.01).fit(frame, names)
    assert list(model.feature_names_in_) == list("abcde")
    assert set(model.predict(frame)) == {"yes", "no"}
    single = SGDClassifier(random_state=0, alpha=0.01).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float32
    double = SGDClassifier(random_state=0, alpha=0.01).fit(X.astype(np.float32).astype(np.float64), y)
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-4, atol=1e-5)
    rng = np.random.default_rng(0)
    three = rng.integers(3, size=150)
    one, two = (SGDClassifier(random_state=0, alpha=0.1, n_jobs=jobs).fit(X, three) for jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_allclose(one.predict_proba(X).sum(axis=1), 1.0)
    assert not hasattr(SGDClassifier(loss="hinge"), "predict_proba")


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
@pytest.mark.parametrize("kind", [SGDClassifier, Perceptron])
def test_classes_are_fitted_by_threads_whatever_backend_is_asked_for(kind, backend):
    X, _ = data()
    three = np.random.default_rng(0).integers(3, size=150)
    alone = quiet_fit(kind(random_state=0, max_iter=5), X, three)
    with joblib.parallel_backend(backend):
        beside = quiet_fit(kind(random_state=0, max_iter=5, n_jobs=2), X, three)
    np.testing.assert_array_equal(beside.coef_, alone.coef_)


def test_a_loss_of_regression_classifies_signs():
    X, y = data("logistic")
    model = SGDClassifier(loss="squared", alpha=0.01, random_state=0).fit(X, y)
    exact = LinearModel(loss="squared", alpha=0.01).fit(X, 2.0 * y - 1)
    np.testing.assert_allclose(model.coef_[0], exact.coef_, atol=0.05)
    assert model.score(X, y) > 0.85


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("loss", "no such"),
        ("penalty", "no such"),
        ("alpha", -1.0),
        ("l1_ratio", 2.0),
        ("batch_size", 0),
        ("schedule", "1/t²"),
        ("step", 0.0),
        ("plateau_cut", 0.0),
        ("average", "yes"),
        ("shuffle", None),
        ("early_stopping", "auto"),
        ("validation_fraction", 1.0),
        ("n_iter_no_change", 0),
        ("tol", -1.0),
        ("max_iter", 0),
        ("n_jobs", 0),
        ("multi_class", "ovo"),
        ("class_weight", "even"),
        ("fit_intercept", 2),
        ("verbose", -1),
    ],
)
def test_bad_parameters_are_named(name, value):
    X, y = data("logistic")
    with pytest.raises((ValueError, TypeError), match=name):
        SGDClassifier(**{name: value}).fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        SGDClassifier().fit(X, np.ones(150))


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("batch_size", [2000, 500])
def test_large_batches_are_not_stalled_by_the_cut(loss: str, batch_size: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 10))
    y = X @ rng.normal(size=10) + rng.logistic(size=2000) > 0

    def objective(cut: float) -> float:
        model = SGDClassifier(
            loss,
            alpha=0.01,
            batch_size=batch_size,
            schedule="constant",
            tol=1e-5,
            max_iter=300,
            plateau_cut=cut,
            random_state=0,
        )
        return model.fit(X, y).certificate_.objective

    assert objective(0.5) <= objective(1.0) * (1 + 5e-3)  # it was 1.1 times


def test_the_perceptron_loss_runs_the_perceptron() -> None:
    """Zero minimizes the loss: a fit of it would keep w = 0 and be called certified."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = np.where(X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * rng.normal(size=300) > 0, "yes", "no")
    model = SGDClassifier(loss="perceptron", max_iter=50, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.93
    assert model.coef_.any()
    assert not LinearModel(loss="perceptron", alpha=0.1).fit(X, y == "yes").certificate_.certified


def test_passes_end_where_the_running_loss_stalls() -> None:
    X, y = load_iris(return_X_y=True)  # not scaled: the way to the optimum is long
    endless = SGDClassifier("hinge", random_state=0, max_iter=60)
    with pytest.warns(ConvergenceWarning):
        assert endless.fit(X, y > 1).n_iter_ == 60
    stalling = SGDClassifier("hinge", random_state=0, stall=1e-3)
    with pytest.warns(ConvergenceWarning, match="no longer fell"):
        stalling.fit(X, y > 1)
    assert 5 < stalling.n_iter_ < 60
    last = stalling.loss_curve_[-5:]
    assert min(last) >= min(stalling.loss_curve_[:-5]) - 1e-3


def test_the_modified_huber_loss_tells_probabilities() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2000, 1))
    y = rng.uniform(size=2000) < 0.5 * (1 + X[:, 0])  # the probability is linear: what this loss estimates
    model = SGDClassifier("modified_huber", alpha=0.0, random_state=0).fit(X, y)
    told = model.predict_proba([[-0.8], [0.0], [0.8]])[:, 1]
    assert np.allclose(told, [0.1, 0.5, 0.9], atol=0.05)
