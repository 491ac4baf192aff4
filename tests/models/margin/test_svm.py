"""Linear support vector machines: optima, certificates, the view of the KKT conditions, hard margins."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from tests.oracles import convex

from certifit import LinearSVC, LinearSVR, NotSeparableError, alpha_from_C
from certifit.evaluation.losses.numbers.squared_epsilon import SquaredEpsilonInsensitive
from certifit.losses import EpsilonInsensitive, Hinge, SquaredHinge
from certifit.models.margin.hard import witness
from certifit.penalties import L2


def binary(n=150, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.array([1, 2, 0.5, 3, 1])[:d] + 1.0
    y = (X[:, 0] - X[:, 1] + rng.normal(size=n) > 0.3).astype(int)
    return X, y, rng.integers(0, 4, size=n).astype(float)


def regression(n=150, d=5, seed=0):
    X, _, weight = binary(n, d, seed)
    return X, 2.0 * X[:, 0] - X[:, 1] + np.random.default_rng(seed + 1).standard_t(3, size=n), weight


@pytest.mark.parametrize("solver", ["auto", "interior_point", "dual", "newton"])
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_optimum_of_the_hinge(solver, alpha, fit_intercept):
    X, y, weight = binary()
    optimum, coef, _ = convex.optimum(X, y, weight, Hinge(), L2(), alpha, fit_intercept=fit_intercept)
    model = LinearSVC(alpha=alpha, fit_intercept=fit_intercept, solver=solver, tol=1e-6, max_iter=1_000_000)
    model.fit(X, y, weight)
    c = model.certificate_
    assert c.certified
    assert c.bound <= optimum + 1e-9 <= c.objective + 2e-9
    value = convex.objective(X, y, weight, Hinge(), L2(), alpha, model.coef_[0], model.intercept_[0])
    assert value == pytest.approx(c.objective, rel=1e-9)
    if solver != "dual":
        assert model.coef_[0] == pytest.approx(coef, abs=2e-4)


def test_the_dual_point_is_feasible_and_gives_the_coefficients():
    X, y, weight = binary()
    alpha = 0.02
    model = LinearSVC(alpha=alpha, tol=1e-10).fit(X, y, weight)
    p = weight / weight.sum()
    theta, sign = model.dual_coef_, 2 * y - 1
    assert ((-sign * theta >= 0) & (-sign * theta <= 1)).all()
    assert abs(p @ theta) <= 1e-12
    assert -X.T @ (p * theta) / alpha == pytest.approx(model.coef_[0], abs=1e-4)
    bound = -sign @ (p * theta) - 0.5 * np.sum((X.T @ (p * theta)) ** 2) / alpha
    assert bound == pytest.approx(model.certificate_.bound, rel=1e-9)
    assert model.margin_ == pytest.approx(1 / np.linalg.norm(model.coef_))


@pytest.mark.parametrize("solver", ["auto", "dual"])
def test_classes_of_rows_follow_complementary_slackness(solver):
    X, y, _ = binary()
    model = LinearSVC(alpha=0.02, solver=solver, tol=1e-9, max_iter=200_000).fit(X, y)
    margin = (2 * y - 1) * model.decision_function(X)
    size = np.abs(model.dual_coef_)
    free, on, bound = (model.kkt_ == name for name in ("none", "free", "bound"))
    assert (free | on | bound).all()
    assert (margin[free] >= 1 - 1e-4).all()
    assert (size[free] <= 1e-4).all()
    assert margin[on] == pytest.approx(1.0, abs=1e-4)
    assert (margin[bound] <= 1 + 1e-4).all()
    assert (size[bound] >= 1 - 1e-4).all()
    assert 1 <= on.sum() <= X.shape[1] + 1
    np.testing.assert_array_equal(model.support_, np.flatnonzero(~free))
    slack = model.slack(X, y)
    assert slack == pytest.approx(np.maximum(0, 1 - margin))
    assert (slack[free] <= 1e-4).all()


def test_rows_keep_their_numbers_when_some_have_no_weight():
    X, y, weight = binary()
    model = LinearSVC(alpha=0.02).fit(X, y, weight)
    assert model.dual_coef_.shape == model.kkt_.shape == y.shape
    assert (model.kkt_[weight == 0] == "none").all()
    assert (weight[model.support_] > 0).all()


@pytest.mark.parametrize("alpha", [1.0, 1e-3])
def test_squared_hinge(alpha):
    X, y, weight = binary()
    optimum, coef, _ = convex.optimum(X, y, weight, SquaredHinge(), L2(), alpha)
    model = LinearSVC(alpha=alpha, loss="squared_hinge", tol=1e-10).fit(X, y, weight)
    assert model.certificate_.objective == pytest.approx(optimum, rel=1e-7)
    assert model.coef_[0] == pytest.approx(coef, abs=1e-4)


@pytest.mark.parametrize("solver", ["auto", "interior_point", "dual", "newton"])
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_the_optimum_of_the_regression(solver, epsilon):
    X, y, weight = regression()
    optimum, coef, _ = convex.optimum(X, y, weight, EpsilonInsensitive(epsilon), L2(), 0.01)
    model = LinearSVR(epsilon=epsilon, alpha=0.01, solver=solver, tol=1e-6, max_iter=200_000).fit(X, y, weight)
    c = model.certificate_
    assert c.certified
    assert c.bound <= optimum + 1e-9 <= c.objective + 2e-9
    if solver != "dual":
        assert model.coef_ == pytest.approx(coef, abs=1e-4)
        residual = np.abs(y - model.predict(X))
        assert (residual[(model.kkt_ == "none") & (weight > 0)] <= epsilon + 1e-5).all()
        assert residual[model.kkt_ == "free"] == pytest.approx(epsilon, abs=1e-5)
        assert (residual[model.kkt_ == "bound"] >= epsilon - 1e-5).all()


def test_squared_regression_loss():
    import cvxpy as cp

    X, y, weight = regression()
    p, w, b = weight / weight.sum(), cp.Variable(5), cp.Variable()
    loss = 0.5 * cp.square(cp.pos(cp.abs(X @ w + b - y) - 0.5))
    optimum = convex.solve(cp.Problem(cp.Minimize(p @ loss + 0.05 * cp.sum_squares(w))))
    model = LinearSVR(epsilon=0.5, alpha=0.1, loss="squared_epsilon_insensitive", tol=1e-9).fit(X, y, weight)
    assert model.certificate_.objective == pytest.approx(optimum, rel=1e-7)
    assert model.certificate_.bound <= optimum * (1 + 1e-8)
    f, u = np.linspace(-3, 3, 7), np.linspace(-2, 2, 7)
    loss_object = SquaredEpsilonInsensitive(0.5)
    grid = np.linspace(-10, 10, 20_001)
    for target, slope in zip(f, u, strict=True):
        supremum = (slope * grid - loss_object.value(np.full_like(grid, target), grid)).max()
        assert loss_object.conjugate(np.array([target]), np.array([slope]))[0] == pytest.approx(supremum, abs=1e-4)


@pytest.mark.parametrize("max_iter", [1, 2, 5])
@pytest.mark.parametrize("solver", ["interior_point", "dual", "pegasos"])
def test_an_early_stop_is_honest(solver, max_iter):
    X, y, weight = binary()
    optimum, _, _ = convex.optimum(X, y, weight, Hinge(), L2(), 1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(alpha=1e-3, solver=solver, max_iter=max_iter, tol=1e-12).fit(X, y, weight)
    c = model.certificate_
    assert c.bound <= optimum + 1e-9 <= c.objective + 2e-9
    assert c.gap == pytest.approx(c.objective - c.bound)


def test_pegasos_warns_when_it_stops_short():
    X, y, _ = binary()
    with pytest.warns(ConvergenceWarning, match="Not certified"):
        LinearSVC(solver="pegasos", tol=1e-8, max_iter=3).fit(X, y)
    model = LinearSVC(alpha=0.1, solver="pegasos", average=True, tol=0.02, max_iter=4096).fit(X, y)
    assert model.certificate_.certified


def test_weights_count_repetitions():
    X, y, weight = binary()
    again = np.repeat(np.arange(len(y)), weight.astype(int))
    one, two = LinearSVC(alpha=0.01).fit(X, y, weight), LinearSVC(alpha=0.01).fit(X[again], y[again])
    assert one.coef_ == pytest.approx(two.coef_, rel=1e-7)
    assert one.intercept_ == pytest.approx(two.intercept_, rel=1e-7)
    X, y, weight = regression()
    one, two = LinearSVR(alpha=0.01).fit(X, y, weight), LinearSVR(alpha=0.01).fit(X[again], y[again])
    assert one.coef_ == pytest.approx(two.coef_, rel=1e-7)


@pytest.mark.parametrize("solver", ["auto", "dual"])
def test_sparse_is_dense(solver):
    X, y, _ = binary()
    X[np.abs(X) < 0.7] = 0.0
    options = {"alpha": 0.02, "solver": solver, "tol": 1e-9, "max_iter": 200_000}
    dense = LinearSVC(**options).fit(X, y)
    for form in (sp.csr_array, sp.csc_array):
        assert LinearSVC(**options).fit(form(X), y).coef_ == pytest.approx(dense.coef_, abs=2e-3)


def test_single_precision_stays_single():
    X, y, _ = binary()
    model = LinearSVC(alpha=0.02).fit(X.astype(np.float32), y)
    assert model.coef_.dtype == model.decision_function(X.astype(np.float32)).dtype == np.float32
    assert model.coef_ == pytest.approx(LinearSVC(alpha=0.02).fit(X, y).coef_, abs=1e-4)
    assert model.certificate_.certified
    large = np.tile(X, (60, 1)).astype(np.float32)
    assert LinearSVC(alpha=0.02).fit(large, np.tile(y, 60)).certificate_.certified


def test_one_against_the_rest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = np.array(["low", "mid", "high"])[np.digitize(X[:, 0] + 0.3 * rng.normal(size=120), [-0.5, 0.5])]
    model = LinearSVC(alpha=0.01, tol=1e-7).fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.kkt_.shape == model.dual_coef_.shape == (3, 120)
    assert model.slack(X, y).shape == (120, 3)
    assert model.certificate_.certified
    assert model.certificate_.relative_gap == max(c.relative_gap for c in model.certificates_)
    for k, name in enumerate(model.classes_):
        one = LinearSVC(alpha=0.01, tol=1e-7).fit(X, (y == name).astype(int))
        assert model.coef_[k] == pytest.approx(one.coef_[0], abs=1e-9)


@pytest.mark.parametrize("solver", ["auto", "dual", "pegasos"])
def test_the_result_does_not_depend_on_threads(solver):
    X, y, _ = binary(300)
    options = {"alpha": 0.02, "solver": solver, "random_state": 4, "max_iter": 50}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one, two = (LinearSVC(n_jobs=k, **options).fit(X, y) for k in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_scale_of_liblinear():
    X, y, _ = binary()
    svc = pytest.importorskip("sklearn.svm").SVC(kernel="linear", C=3.0, tol=1e-8).fit(X, y)
    model = LinearSVC(alpha=alpha_from_C(3.0, len(y)), tol=1e-9).fit(X, y)
    assert model.coef_ == pytest.approx(svc.coef_, abs=1e-4)
    assert model.intercept_ == pytest.approx(svc.intercept_, abs=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150])
def test_hard_margin(fit_intercept, scale):
    import cvxpy as cp

    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y = (X @ [1.0, -2.0, 0.5] > 0).astype(int)
    X += 0.3 * np.where(y[:, None] == 1, 1, -1) * np.array([1.0, -2.0, 0.5])
    sign, w, b = 2 * y - 1, cp.Variable(3), cp.Variable()
    rules = [cp.multiply(sign, X @ w + b) >= 1, *([] if fit_intercept else [b == 0])]
    optimum = convex.solve(cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w)), rules))
    model = LinearSVC(alpha=0, fit_intercept=fit_intercept, tol=1e-6).fit(X * scale, y)
    assert (sign * model.decision_function(X * scale) >= 1 - 1e-9).all()
    assert 0.5 * np.sum((model.coef_ * scale) ** 2) == pytest.approx(optimum, rel=1e-5)
    assert model.certificate_.certified
    assert model.margin_ == pytest.approx(scale / np.sqrt(2 * optimum), rel=1e-5)
    if scale == 1.0:
        assert model.certificate_.bound <= optimum * (1 + 1e-8)
        margin = sign * model.decision_function(X)
        assert margin[model.kkt_ == "free"] == pytest.approx(1.0, abs=1e-3)
        assert -X.T @ model.dual_coef_ == pytest.approx(model.coef_[0], abs=1e-2)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("sparse", [False, True])
def test_no_hard_margin_comes_with_a_witness(fit_intercept, sparse):
    X, y, _ = binary(80)
    rows = sp.csr_array(X) if sparse else X
    with pytest.raises(NotSeparableError, match="no hyperplane separates") as caught:
        LinearSVC(alpha=0, fit_intercept=fit_intercept).fit(rows, y)
    proof, sign = caught.value.witness, 2 * y - 1
    assert (proof >= 0).all()
    assert proof.sum() == pytest.approx(1.0)
    assert np.abs(X.T @ (proof * sign)).max() <= 1e-8
    if fit_intercept:
        assert abs(proof @ sign) <= 1e-8


def test_classes_that_touch_are_not_separable():
    X = np.array([[0.0], [1.0], [1.0], [2.0]])
    proof = witness(X, np.array([-1.0, -1.0, 1.0, 1.0]))
    assert proof == pytest.approx([0, 0.5, 0.5, 0], abs=1e-7)
    assert witness(X, np.array([-1.0, 1.0, 1.0, 1.0])) is None


def test_extreme_imbalance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = np.zeros(2000, dtype=int)
    y[0] = 1
    for class_weight in (None, "balanced"):
        model = LinearSVC(class_weight=class_weight).fit(X, y)
        assert model.certificate_.certified
        assert np.isfinite(model.coef_).all()
    assert model.predict(X[:1])[0] == 1


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_extreme_scales_are_certified_or_refused(scale):
    X, y, _ = binary()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC().fit(X * scale, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.certificate_.objective)


@pytest.mark.parametrize(("d", "solver"), [(10, "interior_point"), (30, "newton")])
def test_tall_data(d, solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, d))
    y = (X[:, 0] + rng.normal(size=8000) > 0.5).astype(int)
    fast, exact = LinearSVC(alpha=1e-4).fit(X, y), LinearSVC(alpha=1e-4, solver="interior_point", tol=1e-10).fit(X, y)
    assert fast.solver_ == solver
    assert fast.certificate_.certified
    assert fast.certificate_.bound <= exact.certificate_.objective + 1e-12
    assert fast.certificate_.objective >= exact.certificate_.bound - 1e-12
    weight = rng.integers(1, 3, size=8000).astype(float)
    target = X[:, 0] + rng.normal(size=8000)
    tube = LinearSVR(alpha=1e-4).fit(X, target, weight)
    assert (tube.solver_, tube.certificate_.certified) == ("interior_point", True)  # two kinks a row
    precise = LinearSVC(alpha=1e-4, tol=1e-8).fit(X, y)
    assert precise.certificate_.certified


@pytest.mark.parametrize(
    ("n", "center", "classify"), [(7000, 0, False), (7000, 1e6, False), (7000, 0, True), (300, 0, True)]
)
def test_weights_of_a_range_that_leaves_the_interior_point_no_digits(n, center, classify):
    """Other methods do not mind; of tall data Newton's comes first."""
    rng = np.random.default_rng(12)
    X = rng.normal(size=(n, 12)) + center * rng.normal(size=12)
    y = (X - X.mean(axis=0)) @ rng.normal(size=12) + rng.normal(size=n)
    weight = 10.0 ** rng.uniform(-8, 8, size=n)
    kind, y = (LinearSVC, y > 0) if classify else (LinearSVR, y)
    model = kind(alpha=0.0025).fit(X, y, weight)
    assert model.certificate_.certified
    exact = kind(alpha=0.0025, solver="dual", tol=1e-6, max_iter=100_000).fit(X, y, weight).certificate_
    assert exact.certified
    assert model.certificate_.bound <= exact.objective <= model.certificate_.objective * (1 + 1e-5)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"solver": "dual", "alpha": 0.0}, "alpha"),
        ({"solver": "dual", "loss": "squared_hinge"}, "solver"),
        ({"solver": "no such"}, "solver"),
        ({"loss": "no such"}, "loss"),
        ({"alpha": -1.0}, "alpha"),
        ({"random_state": "a"}, "random_state"),
    ],
)
def test_bad_parameters(options, match):
    X, y, _ = binary()
    with pytest.raises(ValueError, match=match):
        LinearSVC(**options).fit(X, y)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="one class"):
        LinearSVC().fit(np.ones((4, 2)), np.ones(4))


@pytest.mark.parametrize("alpha", [1e-150, 1e150])
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_strengths_at_the_edge_of_the_range(alpha, epsilon):
    X, y, weight = regression()
    model = LinearSVR(alpha=alpha, epsilon=epsilon).fit(X, y, weight)
    assert model.certificate_.certified
    if alpha > 1:
        assert np.abs(model.coef_).max() <= 1e-140
    else:
        assert model.coef_ == pytest.approx(
            LinearSVR(alpha=1e-12, epsilon=epsilon, tol=1e-9).fit(X, y, weight).coef_, abs=1e-3
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pegasos_on_huge_columns_is_no_worse_than_a_constant(dtype):
    X, y, _ = binary()
    X = (X * 1e30).astype(dtype)
    with pytest.warns(ConvergenceWarning, match="Not certified"):
        model = LinearSVC(solver="pegasos", max_iter=20).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.certificate_.relative_gap <= 1 + 1e-9


def test_three_classes_without_a_hard_margin_are_told_which() -> None:
    X = np.array([[0.0], [0.1], [1.0], [1.1], [2.0], [2.1]])
    with pytest.raises(ValueError, match="no hyperplane separates class 'b' from the others"):
        LinearSVC(alpha=0).fit(X, list("aabbcc"))


@pytest.mark.parametrize("seed", [5, 17, 20])
def test_rows_in_turn_that_get_nowhere_leave_it_to_matrices(seed):
    """Columns that share nearly all: dual descent took its thousand epochs and stopped up to 2e-2 from the optimum."""
    rng = np.random.default_rng(seed)
    X = 18.0 * (0.1 * rng.standard_normal((336, 497)) + np.sqrt(0.99) * rng.standard_normal((336, 1)))
    w = np.zeros(497)
    w[rng.choice(497, 20, replace=False)] = rng.standard_normal(20)
    f = X @ w
    y = (rng.random(336) < 1 / (1 + np.exp(-2 * f / f.std()))).astype(int)
    alpha = 0.4 * float(np.abs(X.T @ (y - y.mean())).max()) / 336
    model = LinearSVC(alpha=alpha, tol=1e-3).fit(X, y)
    assert model.certificate_.certified
