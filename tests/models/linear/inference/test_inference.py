"""Standard errors, tests and intervals, against reference values.

The constants were computed once with statsmodels 0.15 (OLS, GLM with Poisson and Gamma families, QuantReg),
with rows repeated by their weights: statsmodels is not needed to run the tests.
"""

from __future__ import annotations

import copy
import gc
import json
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from certifit import GammaRegressor, LinearRegression, LogisticRegression, PoissonRegressor
from certifit.evaluation.losses import resolve_loss
from certifit.evaluation.losses.base import Loss
from certifit.models.linear.inference.inference import InferenceMixin, make_inference
from certifit.optimization.closed_form.least_squares import solve_least_squares

X = np.array(
    [
        [0.5, 1.2],
        [1.5, -0.3],
        [2.5, 0.8],
        [3.5, -1.1],
        [4.5, 0.4],
        [5.5, 1.9],
        [6.5, -0.7],
        [7.5, 0.1],
        [8.5, -1.6],
        [9.5, 0.9],
    ]
)
Y = np.array([1.9, 2.1, 4.2, 3.3, 6.1, 9.2, 6.0, 8.8, 7.1, 11.9])
COUNTS = np.array([1.0, 0, 2, 1, 3, 6, 2, 4, 3, 8])
S = np.array([1.0, 2, 1, 3, 1, 1, 2, 1, 1, 2])
MEAN_INTERVALS = [[2.027386011330429, 2.756194938539436], [9.946264724413318, 11.29322517564638]]
OBSERVATION_INTERVALS = [[1.5315363930472714, 3.252044556822594], [9.589782772760223, 11.649707127299475]]
OLS = np.array([0.7122982344916218, 1.0390884798319668, 1.2808075212226875])


class Linear(InferenceMixin, BaseEstimator):
    """The smallest estimator with the mixin."""

    fit_intercept = True

    def fit(self, X, y, sample_weight=None, l2=0.0):
        s = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        d = X.shape[1]
        found = solve_least_squares(
            np.asarray(X), y, s / s.sum(), l2=np.full(d, l2), fit_intercept=True, keep_inverse=True
        )
        self.coef_, self.intercept_, self.n_features_in_ = found.coef, found.intercept, d
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        loss = resolve_loss("squared")
        self._inference = None
        if l2 == 0.0:
            arrays = np.asarray(X), y, s
            self._inference = make_inference(*arrays, loss, found.coef, found.intercept, True, solution=found)
        self._l2 = l2
        return self

    def _rows(self, X):
        return np.asarray(X)

    def _quadratic_penalty(self, d):
        return np.full(d, self._l2)


def test_nothing_is_computed_before_it_is_asked_for_and_no_data_is_kept() -> None:
    rows, target = X.copy(), Y.copy()
    held = weakref.ref(rows), weakref.ref(target)
    model = LinearRegression().fit(rows, target)
    del rows, target
    gc.collect()
    assert [one() for one in held] == [None, None]
    assert "covariance" not in vars(model._inference)
    copies = pickle.loads(pickle.dumps(model)), copy.deepcopy(model)
    direct = make_inference(X, Y, np.ones(10), resolve_loss("squared"), model.coef_, model.intercept_, True)
    for one in (model, *copies):
        assert_allclose(one.summary().std_error, direct.std_error, rtol=1e-12)
        assert sorted(vars(one._inference)) == sorted(vars(direct))
    with pytest.raises(AttributeError, match="nonsense"):
        getattr(LinearRegression().fit(X, Y)._inference, "nonsense")  # noqa: B009 - mypy knows that it is none


def test_ordinary_least_squares():
    table = Linear().fit(X, Y, S).summary()
    np.testing.assert_allclose(table.coef, OLS, rtol=1e-12)
    np.testing.assert_allclose(
        table.std_error, [0.2271191037175076, 0.03963939970592147, 0.11369466791276227], rtol=1e-11
    )
    np.testing.assert_allclose(
        table.statistic, [3.1362321479464077, 26.213527135647922, 11.265326199865846], rtol=1e-11
    )
    np.testing.assert_allclose(
        table.p_value, [8.591828483763952e-03, 5.810321211508197e-12, 9.744755411462817e-08], rtol=1e-8
    )
    np.testing.assert_allclose(table.lower, [0.2174482174493943, 0.9527216471923978, 1.033088120109606])
    np.testing.assert_allclose(table.upper, [1.2071482515338492, 1.1254553124715359, 1.528526922335769])
    facts = table.r2, table.adjusted_r2, table.sigma, table.f_statistic, table.f_p_value, table.aic
    expected = (0.9857283581635561, 0.9833497511908155, 0.43722473731846695)
    expected += (414.41413796403356, 8.44974549455888e-12, 20.401764435237943)
    np.testing.assert_allclose(facts, expected, rtol=1e-9)
    assert (table.n, table.dof, table.kind) == (15.0, 12.0, "t")


def test_the_closed_form_saves_a_factorization_and_nothing_else():
    loss = resolve_loss("squared")
    direct = make_inference(X, Y, S, loss, OLS[1:], OLS[0], True)
    np.testing.assert_allclose(direct.covariance, Linear().fit(X, Y, S)._inference.covariance, rtol=1e-11)


def test_without_intercept():
    w = np.array([1.1435382900968518, 1.3961873781157312])
    found = make_inference(X, Y, np.ones(10), resolve_loss("squared"), w, 0.0, False)
    np.testing.assert_allclose(found.std_error, [0.028416988572061652, 0.15609287515678041], rtol=1e-11)
    facts = found.r2, found.adjusted_r2, found.f_test[0], found.aic
    expected = [0.9953729078898831, 0.9942161348623538, 860.4738217452298, 16.990480938128098]
    np.testing.assert_allclose(facts, expected, rtol=1e-11)


def test_poisson():
    theta = np.array([-0.5036764007639709, 0.24031013118065211, 0.4316171353961427])
    loss = resolve_loss("poisson")
    found = make_inference(X, COUNTS, S, loss, theta[1:], theta[0], True)
    np.testing.assert_allclose(
        found.std_error, [0.4359404062655859, 0.05845282667028653, 0.16347019541086175], rtol=1e-9
    )
    table = found.summary()
    np.testing.assert_allclose(
        table.p_value, [2.479352481854321e-01, 3.936410172474936e-05, 8.282253185815717e-03], rtol=1e-7
    )
    facts = found.deviance, found.null_deviance, found.aic
    np.testing.assert_allclose(facts, [4.019510063123606, 34.146680440969895, 46.643741234905406], rtol=1e-10)
    assert (table.kind, table.dispersion) == ("z", 1.0)
    spread = make_inference(X, COUNTS, S, loss, theta[1:], theta[0], True, dispersion="pearson")
    np.testing.assert_allclose(spread.dispersion, 0.21423140637510385, rtol=1e-9)
    np.testing.assert_allclose(
        spread.std_error, [0.2017756216699594, 0.027054971895262438, 0.07566240667036588], rtol=1e-9
    )
    rates = make_inference(X, COUNTS + 0.5, S, loss, theta[1:], theta[0], True)
    assert np.isnan(rates.aic)


def test_gamma():
    theta = np.array([0.6465171124130465, 0.1935482791613068, 0.17169637675752802])
    found = make_inference(X, Y, S, resolve_loss("gamma"), theta[1:], theta[0], True)
    np.testing.assert_allclose(
        found.std_error, [0.0826680304257824, 0.014428161468199129, 0.04138319547946041], rtol=1e-8
    )
    facts = found.deviance, found.null_deviance, found.dispersion, found.log_likelihood, found.aic
    expected = [
        0.3108020283764913,
        5.121593882792629,
        0.02532662388948509,
        -16.22388291518169,
        38.44776583036338,
    ]
    np.testing.assert_allclose(facts, expected, rtol=1e-8)


@pytest.mark.parametrize("loss", ["absolute", "quantile"])
def test_median(loss):
    found = make_inference(X, Y, S, resolve_loss(loss), np.array([1.03, 1.3]), 0.945, True)
    # QuantReg with the vertex solution; it stops within 1e-6 of the vertex
    np.testing.assert_allclose(
        found.std_error, [0.3971089306438711, 0.06930795063440548, 0.19879071049392624], rtol=1e-5
    )


class Mine(Loss):
    """A user's loss that happens to be half the squared one."""

    def value(self, y, f):
        return 0.25 * (y - f) ** 2

    def derivative(self, y, f):
        return 0.5 * (f - y)

    def second_derivative(self, y, f):
        return np.full_like(f, 0.5)


def test_any_smooth_loss_gets_a_sandwich():
    found = make_inference(X, Y, S, Mine(), OLS[1:], OLS[0], True)
    # OLS with cov_type="HC1"
    np.testing.assert_allclose(
        found.std_error, [0.2791164893943856, 0.043652406334222335, 0.12764197881674294], rtol=1e-10
    )
    assert found.covariance_kind == "sandwich"
    assert make_inference(X, Y, S, resolve_loss("huber"), OLS[1:], OLS[0], True).std_error.min() > 0


def test_a_loss_without_errors_names_the_cure():
    with pytest.raises(ValueError, match="bootstrap"):
        make_inference(X, Y, S, resolve_loss("epsilon_insensitive"), OLS[1:], OLS[0], True)


@pytest.mark.parametrize("loss", ["squared", "poisson", "gamma", "huber", "absolute"])
def test_weight_is_repetition(loss):
    theta, target = np.array([0.5, 0.2, 0.3]), COUNTS + 1
    weighted = make_inference(X, target, S, resolve_loss(loss), theta[1:], theta[0], True)
    k = S.astype(int)
    repeated = make_inference(
        np.repeat(X, k, axis=0),
        np.repeat(target, k),
        np.ones(15),
        resolve_loss(loss),
        theta[1:],
        theta[0],
        True,
    )
    np.testing.assert_allclose(weighted.covariance, repeated.covariance, rtol=1e-9)
    np.testing.assert_allclose(weighted.deviance, repeated.deviance, rtol=1e-12)


def test_prediction_intervals():
    model = Linear().fit(X, Y, S)
    new = np.array([[1.0, 0.5], [12.0, -2.0]])
    mean = model.prediction_interval(new, level=0.9, kind="mean")
    observed = model.prediction_interval(new, level=0.9)
    np.testing.assert_allclose(mean, MEAN_INTERVALS, rtol=1e-9)
    np.testing.assert_allclose(observed, OBSERVATION_INTERVALS, rtol=1e-9)
    with pytest.raises(ValueError, match="kind"):
        model.prediction_interval(new, kind="median")


def test_interval_of_a_mean_respects_the_link():
    model = Linear().fit(X, Y, S)
    theta = np.array([0.6465171124130465, 0.1935482791613068, 0.17169637675752802])
    model._inference = make_inference(X, Y, S, resolve_loss("gamma"), theta[1:], theta[0], True)
    ends = model.prediction_interval(X, kind="mean")
    centre = np.exp(theta[0] + X @ theta[1:])
    assert ((ends[:, 0] < centre) & (centre < ends[:, 1])).all()
    np.testing.assert_allclose(np.sqrt(ends[:, 0] * ends[:, 1]), centre)
    with pytest.raises(ValueError, match="conformal"):
        model.prediction_interval(X)
    with pytest.raises(ValueError, match="linear in y"):
        model.leverage(X)


def test_coverage():
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(300):
        A = rng.normal(size=(12, 2))
        model = Linear().fit(A, A @ [1.0, -2.0] + rng.normal(size=12))
        low, high = model.prediction_interval(np.ones((1, 2)), level=0.8)[0]
        inside.append(low <= -1.0 + rng.normal() <= high)
    assert 0.72 < np.mean(inside) < 0.88


def test_influence():
    model = Linear().fit(X, Y, S)
    np.testing.assert_allclose(model.leverage(X, S)[:3], [0.3420981687238836, 0.1687846150883643, 0.16753221360296128])
    internal = model.studentized_residuals(X, Y, S, kind="internal")
    np.testing.assert_allclose(internal[:3], [-2.4498544762463346, 0.5351214439424683, -0.33757303330507726])
    external = model.studentized_residuals(X, Y, S)
    np.testing.assert_allclose(external[:3], [-3.317612713914645, 0.5185643630018271, -0.32474719889129633])
    cook = model.cooks_distance(X, Y, S)
    np.testing.assert_allclose(cook[:3], [1.0402769474588762, 0.01938218522750571, 0.007644430342079193])
    hat = model.hat_matrix(X, S)
    np.testing.assert_allclose(hat @ Y, OLS[0] + X @ OLS[1:])


def test_external_residual_is_the_fit_without_the_row():
    model = Linear().fit(X, Y)
    keep = np.arange(10) != 4
    without = Linear().fit(X[keep], Y[keep])
    error = Y[4] - without.intercept_ - X[4] @ without.coef_
    spread = np.sqrt(without._inference.dispersion / (1 - model.leverage(X)[4]))
    np.testing.assert_allclose(model.studentized_residuals(X, Y)[4], error / spread, rtol=1e-10)


def test_penalized_models_explain_themselves():
    model = Linear().fit(X, Y, l2=0.1)
    for call in (model.summary, lambda: model.prediction_interval(X)):
        with pytest.raises(ValueError, match="biases the estimates"):
            call()
    assert model.leverage(X).sum() < 3.0  # the hat matrix of a ridge regression exists
    with pytest.raises(NotFittedError):
        Linear().summary()


def test_table_and_dictionary():
    table = Linear().fit(X, Y, S).summary(level=0.9)
    lines = str(table).splitlines()
    assert len({len(line) for line in lines[1:7]}) == 1
    assert "intercept" in lines[4]
    assert "90% low" in lines[2]
    assert "R² = 0.985728" in str(table)
    assert json.loads(json.dumps(table.to_dict()))["names"] == ["intercept", "x0", "x1"]
    with pytest.raises(ValueError, match="level"):
        Linear().fit(X, Y).summary(level=1.0)


def test_too_few_rows_and_redundant_columns():
    few = Linear().fit(X[:3], Y[:3]).summary()
    assert np.isnan(few.std_error).all()
    assert "degrees of freedom" in few.note
    doubled = Linear().fit(np.column_stack([X, X[:, 0]]), Y).summary()
    assert "identified" in doubled.note
    assert doubled.dof == 7.0


def test_weights_that_only_compare_rows_are_told_what_they_count_as():
    table = LinearRegression().fit(X, Y, sample_weight=np.full(len(Y), 1.0 / len(Y))).summary()
    assert f"{len(Y)} rows count as 1: multiply weights that only compare rows by {len(Y)}." in str(table)
    counted = LinearRegression().fit(X, Y, sample_weight=np.arange(len(Y)) % 3).summary()
    assert "count as" not in counted.note


def test_feature_names():
    pd = pytest.importorskip("pandas")
    table = Linear().fit(pd.DataFrame(X, columns=["age", "dose"]), Y).summary()
    assert table.names == ("intercept", "age", "dose")


@pytest.mark.parametrize(
    "model", [PoissonRegressor(alpha=0.0), GammaRegressor(alpha=0.0), LogisticRegression(alpha=0.0)]
)
def test_the_printed_digits_stand_at_the_default_tolerance(model: Any) -> None:
    """Coefficients are off by the root of the gap: without polishing, p-values move in their fourth decimal."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 4)) * [1.0, 0.2, 5.0, 2.0] + [3.0, 0.0, -4.0, 1.0]
    f = (X - X.mean(axis=0)) @ [0.3, -0.5, 0.02, 0.1]
    y = {
        "PoissonRegressor": rng.poisson(np.exp(f)).astype(float),
        "GammaRegressor": rng.gamma(2.0, np.exp(f) / 2.0),
        "LogisticRegression": (rng.random(150) < 1.0 / (1.0 + np.exp(-f))).astype(float),
    }[type(model).__name__]
    Z, z = np.column_stack([np.ones(150), X]), np.zeros(5)
    for _ in range(60):  # plain Newton, to the end
        score = Z @ z
        if isinstance(model, LogisticRegression):
            mean = 1.0 / (1.0 + np.exp(-score))
            slope, bend = mean - y, mean * (1.0 - mean)
        else:
            mean = np.exp(score)
            gamma = isinstance(model, GammaRegressor)
            slope, bend = (1.0 - y / mean, y / mean) if gamma else (mean - y, mean)
        step = np.linalg.solve(Z.T @ (bend[:, None] * Z), Z.T @ slope)
        z = z - step / max(1.0, np.abs(step).max())
    assert_allclose(np.append(model.fit(X, y).intercept_, model.coef_), z, rtol=1e-9, atol=1e-11)
    assert_allclose(model.summary().coef, z, rtol=1e-9, atol=1e-11)
