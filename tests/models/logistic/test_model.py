"""Logistic regression against independent optima, other software's tables, and bad input."""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from tests.contract.data import make
from tests.contract.discovery import Case
from tests.oracles import convex
from tests.peak import needs_proc, share_of_x

from certifit import LogisticRegression, LogisticRegressionCV, alpha_from_C
from certifit.evaluation.losses.labels.margin import HardLogistic, Logistic
from certifit.penalties import L1, L2, ElasticNet, Lq, NoPenalty, Penalty

ALPHA = 0.02
PENALTIES: list[Penalty] = [NoPenalty(), L2(), L1(), ElasticNet(0.3), Lq(1.5), L2(weights=[1.0, 0.0, 2.0, 0.5])]


def data(n: int = 60, k: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) + np.array([0.0, 1.0, 0.0, -2.0])
    y = (X @ rng.normal(size=(4, k)) + 1.5 * rng.gumbel(size=(n, k))).argmax(axis=1)
    y[:k] = np.arange(k)
    return X, y, rng.integers(1, 4, size=n).astype(float)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_binary_optimum_and_honest_gaps(penalty: Penalty, intercept: bool) -> None:
    X, y, s = data()
    best, _, _ = convex.optimum(X, y, s, Logistic(), penalty, ALPHA, None, intercept)
    for max_iter in (1, 2, 1000):
        model = LogisticRegression(ALPHA, penalty, fit_intercept=intercept, tol=1e-8, max_iter=max_iter).fit(X, y, s)
        c = model.certificate_
        value = convex.objective(X, y, s, Logistic(), penalty, ALPHA, model.coef_[0], model.intercept_[0])
        assert c.objective == pytest.approx(value, rel=1e-9)
        assert c.bound <= best + 1e-8
        assert c.gap >= c.objective - best - 1e-8
        assert c.certified or max_iter < 1000, str(c)


@pytest.mark.parametrize("penalty", [None, "l2", "l1", "elasticnet"])
def test_softmax_optimum(penalty: str | None) -> None:
    X, y, s = data(k=3)
    model = LogisticRegression(ALPHA, penalty, l1_ratio=0.3, tol=1e-8).fit(X, y, s)
    W, b = cp.Variable((3, 4)), cp.Variable((1, 3))
    f = X @ W.T + np.ones((len(y), 1)) @ b
    loss = (s / s.sum()) @ (cp.log_sum_exp(f, axis=1) - cp.sum(cp.multiply(f, np.eye(3)[y]), axis=1))
    part = {None: None, "l2": L2(), "l1": L1(), "elasticnet": ElasticNet(0.3)}[penalty]
    total = 0 if part is None else ALPHA * sum(cp.sum(convex.penalty_terms(part, W[j])) for j in range(3))
    conditions = [cp.sum(b) == 0, *([cp.sum(W, 0) == 0] if part is None else [])]
    best = convex.solve(cp.Problem(cp.Minimize(loss + total), conditions))
    c = model.certificate_
    assert c.certified, str(c)
    assert c.bound <= best + 1e-8
    assert c.objective == pytest.approx(best, abs=1e-7)
    assert model.coef_.shape == (3, 4)
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(len(y)))
    if penalty in (None, "l2"):
        np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-10)


@pytest.mark.parametrize("options", [{"penalty": Lq(1.5)}, {"solver": "gradient"}, {"solver": "proximal"}], ids=str)
def test_more_than_two_classes_take_any_penalty_and_solver(options: dict[str, Any]) -> None:
    X, y, s = data(k=3)
    model = LogisticRegression(ALPHA, tol=1e-5, max_iter=5000, **options).fit(X, y, s)
    penalty = options.get("penalty", L2())
    W, b = cp.Variable((3, 4)), cp.Variable((1, 3))
    f = X @ W.T + np.ones((len(y), 1)) @ b
    loss = (s / s.sum()) @ (cp.log_sum_exp(f, axis=1) - cp.sum(cp.multiply(f, np.eye(3)[y]), axis=1))
    total = ALPHA * sum(cp.sum(convex.penalty_terms(penalty, W[j])) for j in range(3))
    best = convex.solve(cp.Problem(cp.Minimize(loss + total), [cp.sum(b) == 0]))
    assert model.certificate_.certified, str(model.certificate_)
    assert model.certificate_.bound <= best + 1e-7
    assert model.certificate_.objective == pytest.approx(best, abs=2e-5)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_penalty_that_selects_nothing(intercept: bool) -> None:
    X, y, _ = data(k=3)
    model = LogisticRegression(100.0, "l1", fit_intercept=intercept).fit(X, y)
    chosen = LogisticRegressionCV([100.0], penalty="l1", fit_intercept=intercept, cv=3).fit(X, y)
    for one in (model, chosen):
        assert one.certificate_.certified
        assert not one.coef_.any()


def test_two_classes_by_softmax_and_logistic_agree() -> None:
    """The softmax of two classes has half the coefficients in each row: alpha·½‖w‖² becomes alpha·¼‖w‖²."""
    from certifit.losses import Softmax
    from certifit.optimization.objective.dispatch import minimize
    from certifit.optimization.objective.problem import Problem
    from certifit.optimization.objective.regularizer import Regularizer
    from certifit.progress import Progress

    X, y, s = data()
    softmax = Problem(X, y, s / s.sum(), Softmax(), Regularizer.of(L2(), 0.1, None, 4), True)
    two, _ = minimize(softmax, "auto", 1e-12, 100, Progress())
    one = LogisticRegression(0.05, tol=1e-12).fit(X, y, s)
    np.testing.assert_allclose(two.coef[1] - two.coef[0], one.coef_[0], atol=1e-6)


def test_scale_of_alpha_is_that_of_other_libraries() -> None:
    from sklearn.linear_model import LogisticRegression as Other

    X, y, _ = data(k=3)
    other = Other(C=2.0, tol=1e-10, max_iter=10_000).fit(X, y)
    ours = LogisticRegression(alpha_from_C(2.0, len(y)), tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), other.predict_proba(X), atol=1e-4)


# The "Spector and Mazzeo" data set (Greene 2003, table F21.1): grade improved, by GPA, TUCE and PSI.
SPECTOR = """2.66 20 0 0 2.89 22 0 0 3.28 24 0 0 2.92 12 0 0 4.00 21 0 1 2.86 17 0 0 2.76 17 0 0 2.87 21 0 0 3.03 25 0 0
3.92 29 0 1 2.63 20 0 0 3.32 23 0 0 3.57 23 0 0 3.26 25 0 1 3.53 26 0 0 2.74 19 0 0 2.75 25 0 0 2.83 19 0 0 3.12 23 1 0
3.16 25 1 1 2.06 22 1 0 3.62 28 1 1 2.89 14 1 0 3.51 26 1 0 3.54 24 1 1 2.83 27 1 1 3.39 17 1 1 2.67 24 1 0 3.65 21 1 1
4.00 23 1 1 3.10 21 1 0 2.39 19 1 1"""


def test_summary_against_statsmodels() -> None:
    table = np.array(SPECTOR.split(), dtype=float).reshape(-1, 4)
    frame = pd.DataFrame(table[:, :3], columns=["GPA", "TUCE", "PSI"])
    model = LogisticRegression(alpha=0.0, tol=1e-12).fit(frame, table[:, 3])
    s = model.summary()
    assert s.names == ("intercept", "GPA", "TUCE", "PSI")
    # statsmodels 0.14, Logit(spector.endog, add_constant(spector.exog)).fit()
    np.testing.assert_allclose(s.coef, [-13.021347, 2.826113, 0.095158, 2.378688], rtol=1e-5)
    np.testing.assert_allclose(s.std_error, [4.931317, 1.262941, 0.141554, 1.064564], rtol=1e-5)
    np.testing.assert_allclose(s.statistic, [-2.640541, 2.237723, 0.672235, 2.234424], rtol=1e-5)
    np.testing.assert_allclose(s.p_value, [0.008278, 0.025240, 0.501434, 0.025455], rtol=1e-3)
    assert s.log_likelihood == pytest.approx(-12.889633, rel=1e-7)
    assert s.null_deviance / -2 == pytest.approx(-20.59173, rel=1e-6)
    assert "GPA" in str(s)


@pytest.mark.parametrize("k", [2, 3])
def test_summary_only_where_it_means_something(k: int) -> None:
    X, y, _ = data(k=k)
    with pytest.raises(ValueError, match="alpha=0"):
        LogisticRegression().fit(X, y).summary()


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("penalty", [None, "l2", "l1"])
def test_weights_are_repetitions(penalty: str | None, k: int) -> None:
    X, y, s = data(k=k)
    s[5:9] = 0.0
    r = np.repeat(np.arange(len(y)), s.astype(int))
    a = LogisticRegression(ALPHA, penalty, tol=1e-12).fit(X, y, s)
    b = LogisticRegression(ALPHA, penalty, tol=1e-12).fit(X[r], y[r])
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-5)
    np.testing.assert_allclose(a.intercept_, b.intercept_, atol=1e-5)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_weights_are_repetitions_under_cross_validation(penalty: str) -> None:
    X, y, s = data()
    s[5:9] = 0.0
    r = np.repeat(np.arange(len(y)), s.astype(int))
    a = LogisticRegressionCV(n_alphas=6, penalty=penalty, tol=1e-10).fit(X, y, s)
    b = LogisticRegressionCV(n_alphas=6, penalty=penalty, tol=1e-10).fit(X[r], y[r])
    assert a.alpha_ == pytest.approx(b.alpha_)
    np.testing.assert_allclose(a.log_loss_path_, b.log_loss_path_, rtol=1e-6)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-5)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_sparse_float32_frames_and_threads(penalty: str, k: int) -> None:
    X, y, s = data(k=k)
    dense = LogisticRegression(ALPHA, penalty, tol=1e-9).fit(X, y, s)
    for rows in (sp.csr_array(X), sp.csc_matrix(X), pd.DataFrame(X), np.asfortranarray(X)):
        other = LogisticRegression(ALPHA, penalty, tol=1e-9, n_jobs=2).fit(rows, y, s)
        np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-4)
    single = LogisticRegression(ALPHA, penalty).fit(X.astype(np.float32), y, s)
    assert single.coef_.dtype == np.float32
    assert single.predict_proba(X.astype(np.float32)).dtype == np.float32
    assert single.certificate_.certified
    np.testing.assert_allclose(single.coef_, dense.coef_, atol=5e-3)


def test_soft_labels() -> None:
    X, y, s = data()
    q = np.clip(0.8 * y + 0.1, 0.0, 1.0)
    soft = LogisticRegression(ALPHA, soft_labels=True, tol=1e-10).fit(X, q, s)
    both = np.concatenate([np.ones(len(y)), np.zeros(len(y))])
    hard = LogisticRegression(ALPHA, tol=1e-12).fit(np.vstack([X, X]), both, np.concatenate([s * q, s * (1 - q)]))
    np.testing.assert_allclose(soft.coef_, hard.coef_, atol=1e-5)
    assert soft.certificate_.certified
    unpenalized = LogisticRegression(alpha=0.0, soft_labels=True).fit(X, q, s)
    assert unpenalized.certificate_.certified
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        LogisticRegression(soft_labels=True).fit(X, 2.0 * q)
    with pytest.raises(ValueError, match="one class only"):
        LogisticRegression(soft_labels=True).fit(X, np.ones(len(y)))


def shares(n: int = 60, k: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows whose targets are probabilities, some of them certain."""
    X, y, s = data(n, k)
    P = np.random.default_rng(1).dirichlet(np.ones(k), size=n)
    P[::4] = np.eye(k)[y[::4]]
    return X, P, s


@pytest.mark.parametrize(("alpha", "penalty"), [(0.0, "l2"), (ALPHA, "l2"), (ALPHA, "elasticnet")])
def test_rows_of_probabilities_are_rows_of_every_class(alpha: float, penalty: str) -> None:
    X, P, s = shares()
    soft = LogisticRegression(alpha, penalty, soft_labels=True, tol=1e-11).fit(X, P, s)
    rows, codes = np.nonzero(P)
    hard = LogisticRegression(alpha, penalty, tol=1e-11).fit(X[rows], codes, s[rows] * P[rows, codes])
    np.testing.assert_allclose(soft.coef_, hard.coef_, atol=1e-6)
    np.testing.assert_allclose(soft.intercept_, hard.intercept_, atol=1e-6)
    assert soft.certificate_.certified
    assert soft.classes_.tolist() == [0, 1, 2]
    if not alpha:
        np.testing.assert_allclose(soft.summary().std_error, hard.summary().std_error, rtol=1e-6)
        assert np.isnan(soft.summary().log_likelihood)
        assert np.isfinite(hard.summary().log_likelihood)


def test_two_columns_of_probabilities_are_the_second() -> None:
    X, P, s = shares(k=2)
    two = LogisticRegression(ALPHA, soft_labels=True).fit(X, P, s)
    one = LogisticRegression(ALPHA, soft_labels=True).fit(X, P[:, 1], s)
    np.testing.assert_array_equal(two.coef_, one.coef_)


@pytest.mark.parametrize("k", [2, 3])
def test_soft_labels_choose_alpha_by_folds(k: int) -> None:
    X, P, s = shares(k=k)
    chosen = LogisticRegressionCV(soft_labels=True, n_alphas=6, tol=1e-9).fit(X, P, s)
    copies = np.repeat(np.arange(len(s)), s.astype(int))
    repeated = LogisticRegressionCV(soft_labels=True, n_alphas=6, tol=1e-9).fit(X[copies], P[copies])
    assert chosen.alpha_ == pytest.approx(repeated.alpha_)
    np.testing.assert_allclose(chosen.log_loss_path_, repeated.log_loss_path_, rtol=1e-6)
    direct = LogisticRegression(chosen.alpha_, soft_labels=True, tol=1e-9).fit(X, P, s)
    np.testing.assert_allclose(chosen.coef_, direct.coef_, atol=1e-6)
    # Cross-entropy less entropy on one fold given by hand, computed from probabilities alone.
    train, test = np.arange(40), np.arange(40, 60)
    fold = LogisticRegressionCV([0.1], soft_labels=True, cv=[(train, test)], tol=1e-9).fit(X, P)
    q = LogisticRegression(0.1, soft_labels=True, tol=1e-9).fit(X[train], P[train]).predict_proba(X[test])
    sure = np.where(P[test] > 0, P[test], 1.0)
    assert fold.log_loss_path_[0, 0] == pytest.approx(np.mean((P[test] * (np.log(sure) - np.log(q))).sum(axis=1)))
    path = LogisticRegression.path(X, P, soft_labels=True, alphas=[0.1], sample_weight=s)
    assert path.coefs.shape == ((1, 4) if k == 2 else (1, 3, 4))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda P: 1.1 * P, "sum to 1"),
        (lambda P: np.tile([1.0, 0.0, 0.0], (len(P), 1)), "one class only"),
        (lambda P: np.column_stack([P[:, 0], 1.0 - P[:, 0], 0.0 * P[:, 2]]), "none of class 2"),
        (lambda P: P[:-1], "same number of rows"),
        (lambda P: P * np.nan, "NaN"),
    ],
)
def test_tables_that_are_no_probabilities(change: Any, match: str) -> None:
    X, P, _ = shares()
    for model in (LogisticRegression(soft_labels=True), LogisticRegressionCV(soft_labels=True)):
        with pytest.raises(ValueError, match=match):
            model.fit(X, change(P))
    with pytest.raises(ValueError, match="class_weight"):
        LogisticRegression(soft_labels=True, class_weight="balanced").fit(X, P)


def test_standard_errors_of_several_classes() -> None:
    """Against finite differences of the likelihood in the contrasts with the first class."""
    X, y, s = data(n=120, k=3)
    model = LogisticRegression(0.0, tol=1e-12).fit(X, y, s)
    A = np.column_stack([np.ones(len(y)), X])
    B = np.column_stack([model.intercept_, model.coef_])

    def loss(contrasts: np.ndarray) -> float:
        f = A @ np.vstack([np.zeros(5), contrasts.reshape(2, 5)]).T
        return float(s @ (np.log(np.exp(f).sum(axis=1)) - f[np.arange(len(y)), y]))

    at, h, k = (B[1:] - B[:1]).ravel(), 1e-4, 10
    H = np.empty((k, k))
    for i, u in enumerate(h * np.eye(k)):
        for j, v in enumerate(h * np.eye(k)):
            H[i, j] = (loss(at + u + v) - loss(at + u - v) - loss(at - u + v) + loss(at - u - v)) / (4 * h * h)
    C = np.linalg.inv(H)
    T = np.kron(np.array([[-1.0, -1.0], [2.0, -1.0], [-1.0, 2.0]]) / 3.0, np.eye(5))  # scores that sum to zero
    table = model.summary()
    np.testing.assert_allclose(table.coef, B.ravel(), atol=1e-8)
    np.testing.assert_allclose(table.std_error, np.sqrt(np.diag(T @ C @ T.T)), rtol=1e-4)
    assert table.log_likelihood == pytest.approx(-loss(at))
    assert table.names[:2] == ("0: intercept", "0: x0")


@pytest.mark.parametrize("k", [2, 3])
def test_separated_classes_have_no_finite_optimum(k: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X @ rng.normal(size=(3, k))).argmax(axis=1)
    with pytest.warns(ConvergenceWarning, match="No finite optimum exists.*LinearSVC"):
        model = LogisticRegression(alpha=0.0).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    assert not model.certificate_.certified
    assert model.separability_ is not None
    assert model.separability_.kind == "strict"
    assert model.separability_.check()
    assert np.isfinite(model.coef_).all()
    assert model.score(pd.DataFrame(X, columns=["a", "b", "c"]), y) == 1.0
    with pytest.raises(ValueError, match="overlap"):
        model.summary()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert LogisticRegression(alpha=1e-4).fit(X, y).certificate_.certified


def test_quasi_separated_classes() -> None:
    X = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 1.0], [0.0, 2.0], [1.0, 1.0], [1.0, 3.0]])
    y = np.array([0, 0, 1, 1, 1, 1])
    with pytest.warns(ConvergenceWarning, match="lie on"):
        model = LogisticRegression(alpha=0.0).fit(X, y)
    assert model.separability_ is not None
    assert model.separability_.kind == "quasi"


@pytest.mark.parametrize("k", [2, 3])
def test_overlapping_classes_need_no_linear_program(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import certifit.models.logistic.fit as module

    def refuse(*_: Any) -> None:
        raise AssertionError("the fit already proves that the classes overlap")

    monkeypatch.setattr(module, "separability", refuse)
    X, y, _ = data(n=300, k=k)
    assert LogisticRegression(alpha=0.0).fit(X, y).certificate_.certified


@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
@pytest.mark.parametrize("k", [2, 3])
def test_path(penalty: str, k: int) -> None:
    X, y, s = data(k=k)
    alphas, coefs, intercepts, gaps = LogisticRegression.path(X, y, penalty=penalty, n_alphas=6, sample_weight=s)
    assert coefs.shape == ((6, 4) if k == 2 else (6, 3, 4))
    assert (gaps <= 1e-6).all()
    assert (np.diff(alphas) < 0).all()
    if penalty == "l1":
        np.testing.assert_allclose(coefs[0], 0.0, atol=1e-6)
        assert coefs[1].any()
    one = LogisticRegression(alphas[3], penalty, tol=1e-10).fit(X, y, s)
    np.testing.assert_allclose(coefs[3], one.coef_[0] if k == 2 else one.coef_, atol=2e-2)
    assert intercepts.shape == ((6,) if k == 2 else (6, 3))


def test_cross_validation_chooses_by_log_loss() -> None:
    X, y, _ = data(n=200)
    model = LogisticRegressionCV(alphas=[10.0, 1e-2], cv=4).fit(X, y)
    assert model.alpha_ == 1e-2
    assert model.log_loss_path_.shape == (2, 4)
    explicit = [(np.arange(0, 100), np.arange(100, 200)), (np.arange(100, 200), np.arange(0, 100))]
    model = LogisticRegressionCV(alphas=[1.0, 1e-2], cv=explicit).fit(X, y)
    train = LogisticRegression(1.0, tol=1e-9).fit(X[:100], y[:100])
    wanted = -train.predict_log_proba(X[100:])[np.arange(100), y[100:]].mean()
    assert model.log_loss_path_[0, 0] == pytest.approx(wanted, rel=1e-4)


def test_folds_without_a_class() -> None:
    X, y, _ = data(n=40)
    y = np.where(np.arange(40) == 3, 2, y)
    # A class with one distinct row is in every training part.
    assert LogisticRegressionCV(n_alphas=3).fit(X, y).predict_proba(X).shape == (40, 3)
    order = np.arange(40)
    with pytest.raises(ValueError, match="no row of class"):
        LogisticRegressionCV(n_alphas=3, cv=[(order[5:], order[:5])]).fit(X, y)


def test_labels() -> None:
    X, y, _ = data(k=3)
    for names in (np.array(["z", "a", "m"]), np.array([7, -1, 3]), np.array([True, False, True])[:2]):
        labels = names[y % len(names)]
        model = LogisticRegression().fit(X, labels)
        assert (model.classes_ == np.unique(labels)).all()
        assert set(model.predict(X)) <= set(labels)
        best = model.predict_proba(X).argmax(axis=1)
        assert (model.classes_[best] == model.predict(X)).all()


def test_class_weight() -> None:
    X, y, s = data()
    a = LogisticRegression(ALPHA, class_weight={0: 2.0, 1: 1.0}, tol=1e-10).fit(X, y, s)
    b = LogisticRegression(ALPHA, tol=1e-10).fit(X, y, np.where(y == 0, 2.0, 1.0) * s)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)
    assert LogisticRegression(class_weight="balanced").fit(X, y).certificate_.certified


@pytest.mark.parametrize(
    ("options", "y", "weight", "message"),
    [
        ({}, [0, 0, 0, 0], None, "one class only"),
        ({}, [0, 0, 1, 1], [1, 1, 0, 0], "one class only"),
        ({}, [0.5, 1.5, 2.5, 3.5], None, "Unknown label type"),
        ({"alpha": -1.0}, [0, 0, 1, 1], None, "alpha"),
        ({"penalty": "l3"}, [0, 0, 1, 1], None, "penalty"),
        ({"penalty": "l1", "solver": "newton"}, [0, 0, 1, 1], None, "Solvers that can"),
        ({"penalty": "l1", "solver": "newton"}, [0, 1, 2, 1], None, "Solvers that can"),
        ({"solver": "closed_form"}, [0, 1, 2, 1], None, "Solvers that can"),
        ({"class_weight": {5: 1.0}}, [0, 0, 1, 1], None, "class_weight"),
        ({"max_iter": 0}, [0, 0, 1, 1], None, "max_iter"),
    ],
)
def test_bad_input(options: dict[str, Any], y: Any, weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LogisticRegression(**options).fit(np.arange(8.0).reshape(4, 2), y, weight)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_extreme_units(scale: float, k: int) -> None:
    X, y, _ = data(n=200, k=k)
    reference = LogisticRegression(alpha=0.0, tol=1e-10).fit(X, y)
    model = LogisticRegression(alpha=0.0, tol=1e-10).fit(scale * X, y)
    assert model.certificate_.certified
    np.testing.assert_allclose(model.predict_proba(scale * X), reference.predict_proba(X), atol=1e-4)


def test_rare_class_in_many_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 3))
    y = np.zeros(100_000, dtype=int)
    y[:8] = 1
    X[:8, 0] += 1.0
    model = LogisticRegression(alpha=1e-6).fit(X, y)
    assert model.certificate_.certified, str(model.certificate_)
    assert model.predict_proba(X)[:, 1].sum() == pytest.approx(8.0, rel=1e-2)


@pytest.mark.parametrize("alpha", [1e-5, 0.0])
def test_tall_data(alpha: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 6)) @ rng.normal(size=(6, 6))
    y = (X[:, 0] + 2 * rng.logistic(size=30_000) > 0.5).astype(int)
    model = LogisticRegression(alpha, tol=1e-8).fit(X, y)
    assert model.certificate_.certified
    slope = X.T @ (model.predict_proba(X)[:, 1] - y) / len(y) + alpha * model.coef_[0]
    np.testing.assert_allclose(slope, 0.0, atol=1e-4)
    np.testing.assert_array_equal(model.coef_, LogisticRegression(alpha, tol=1e-8, n_jobs=1).fit(X, y).coef_)


def test_hard_logistic_is_the_logistic_loss() -> None:
    rng = np.random.default_rng(0)
    y, f = rng.integers(0, 2, 100).astype(float), 5.0 * rng.normal(size=100)
    u = rng.uniform(size=100) * (1.0 - 2.0 * y)
    for name in ("value", "derivative", "second_derivative"):
        ours, wanted = getattr(HardLogistic(), name)(y, f), getattr(Logistic(), name)(y, f)
        np.testing.assert_allclose(ours, wanted, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(HardLogistic().conjugate(y, u), Logistic().conjugate(y, u), rtol=1e-12, atol=1e-15)
    assert np.isinf(HardLogistic().conjugate(np.array([1.0, 0.0]), np.array([0.1, 1.1]))).all()
    far = np.array([-800.0, 800.0, 1e300])
    assert np.isfinite(HardLogistic().value(np.array([1.0, 1.0, 0.0]), far)).all()


def test_huge_columns_do_not_run_away() -> None:
    """Where the curvature has lost its digits, steps upon steps of the inner problem must not leave the optimum behind."""
    X, y = make(Case(LogisticRegression, {"penalty": "elasticnet"}, classes=3))
    model = LogisticRegression(penalty="elasticnet").fit(X * 1e30, y)
    assert model.certificate_.objective < np.log(3)
    assert np.abs(model.coef_).max() < 1e-20


@pytest.mark.parametrize("seed", range(4))
def test_several_classes_and_columns_that_add_up(seed: int) -> None:
    """Directions without curvature take no step: the fit is that of the columns without the sum."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 3, 40)
    full = LogisticRegression(alpha=0.0, tol=1e-8).fit(np.c_[X, X[:, 0] - X[:, 1]], y)
    alone = LogisticRegression(alpha=0.0, tol=1e-8).fit(X, y)
    assert full.certificate_.certified
    np.testing.assert_allclose(full.certificate_.objective, alone.certificate_.objective, rtol=1e-8)
    assert np.abs(full.coef_).max() < 10.0


@needs_proc
def test_no_copy_of_x_where_an_l1_penalty_leaves_nearly_all_columns():
    assert share_of_x("LogisticRegression(penalty='l1', alpha=5e-4)", 30_000, 190) < 0.5
