"""Bayesian linear regression against direct computation, and its evidence against scikit-learn's and a direct integral."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import BayesianRidge

from certifit import BayesianLinearRegression

RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 4)) * [1.0, 10.0, 0.1, 1.0]
Y = 3.0 + X @ [1.0, 0.2, -5.0, 0.0] + 0.5 * RNG.normal(size=60)


@pytest.mark.parametrize("n", [1, 2, 20])
def test_the_posterior_of_a_line(n: int) -> None:
    """Prior N(0, I/2) on (intercept, slope), noise 0.2², after n points: the textbook's own formulas."""
    x = np.random.default_rng(0).uniform(-1, 1, 20)[:n]
    y = -0.3 + 0.5 * x + 0.2 * np.random.default_rng(1).normal(size=20)[:n]
    A = np.column_stack([np.ones(n), x])
    precision = 2.0 * np.eye(2) + A.T @ A / 0.04
    mean = np.linalg.solve(precision, A.T @ y / 0.04)
    model = BayesianLinearRegression(prior_precision=2.0, noise=0.04, fit_intercept=False).fit(A, y)
    np.testing.assert_allclose(model.coef_, mean, rtol=1e-9)
    np.testing.assert_allclose(model.covariance_, np.linalg.inv(precision), rtol=1e-9)
    at = np.array([[1.0, 0.3]])
    found, deviation = model.predict(at, return_std=True)
    assert found[0] == pytest.approx(at[0] @ mean)
    assert deviation[0] == pytest.approx(np.sqrt(0.04 + at[0] @ np.linalg.inv(precision) @ at[0]))
    marginal = stats.multivariate_normal(np.zeros(n), 0.04 * np.eye(n) + A @ A.T / 2.0)
    assert model.log_evidence_ == pytest.approx(marginal.logpdf(y), rel=1e-8)


def test_an_intercept_has_a_flat_prior() -> None:
    wide = np.column_stack([np.ones(60), X])
    direct = BayesianLinearRegression(
        prior_precision=np.r_[1e-10, np.full(4, 2.0)], noise=0.3, fit_intercept=False
    ).fit(wide, Y)
    model = BayesianLinearRegression(prior_precision=2.0, noise=0.3).fit(X, Y)
    np.testing.assert_allclose(np.r_[model.intercept_, model.coef_], direct.coef_, rtol=1e-6)
    new = np.random.default_rng(4).normal(size=(5, 4))
    np.testing.assert_allclose(
        model.predict(new, return_std=True)[1],
        direct.predict(np.column_stack([np.ones(5), new]), return_std=True)[1],
        rtol=1e-6,
    )


def test_a_prior_mean_and_matrix() -> None:
    S0, m0 = np.diag([1.0, 2.0, 3.0, 4.0]) + 0.3, np.array([0.5, 0.0, -1.0, 2.0])
    Z, t = X - X.mean(0), Y - Y.mean()
    precision = S0 + Z.T @ Z / 0.25
    model = BayesianLinearRegression(prior_mean=m0, prior_precision=S0, noise=0.25).fit(X, Y)
    np.testing.assert_allclose(model.coef_, np.linalg.solve(precision, S0 @ m0 + Z.T @ t / 0.25), rtol=1e-8)


def test_the_evidence_is_at_a_maximum() -> None:
    model = BayesianLinearRegression(tol=1e-10).fit(X, Y)
    assert model.certificate_.claim
    for alpha, noise in ((1.05, 1.0), (0.95, 1.0), (1.0, 1.05), (1.0, 0.95)):
        other = BayesianLinearRegression(prior_precision=float(model.alpha_) * alpha, noise=model.noise_ * noise).fit(
            X, Y
        )
        assert other.log_evidence_ < model.log_evidence_
    same = BayesianLinearRegression(prior_precision=float(model.alpha_), noise=model.noise_).fit(X, Y)
    assert same.log_evidence_ == pytest.approx(model.log_evidence_)
    peer = BayesianRidge(alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-8, max_iter=1000).fit(X, Y)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=0.02)


def test_relevance_switches_idle_columns_off() -> None:
    Z = np.column_stack([X, np.random.default_rng(3).normal(size=(60, 10))])
    model = BayesianLinearRegression(relevance=True).fit(Z, Y)
    assert (np.abs(model.coef_[3:]) < 0.25).all()
    assert np.isinf(model.alpha_[3:]).sum() >= 5
    np.testing.assert_allclose(model.coef_[:2], [1.0, 0.2], rtol=0.2)
    single = BayesianLinearRegression(tol=1e-10).fit(Z, Y)
    assert model.log_evidence_ > single.log_evidence_


def test_rows_one_by_one_are_rows_at_once() -> None:
    whole = BayesianLinearRegression().fit(X, Y)
    parts = BayesianLinearRegression()
    for rows in (slice(0, 1), slice(1, 30), slice(30, 60)):
        parts.partial_fit(X[rows], Y[rows])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-8)
    np.testing.assert_allclose(parts.log_evidence_, whole.log_evidence_, rtol=1e-8)


def test_samples_follow_the_posterior() -> None:
    model = BayesianLinearRegression(prior_precision=1.0, noise=0.25).fit(X, Y)
    coef, intercept = model.sample(20_000, random_state=0)
    np.testing.assert_allclose(np.cov(coef.T), model.covariance_, rtol=0.1, atol=1e-4)
    row = X[:1]
    spread = np.std(coef @ row[0] + intercept)
    low, high = model.predict_interval(row, of="line")
    assert float((high - low)[0]) == pytest.approx(2 * 1.96 * spread, rel=0.03)
    assert model.credible_interval().shape == (4, 2)


def test_units_do_not_matter() -> None:
    model = BayesianLinearRegression(relevance=True).fit(X, Y)
    scaled = BayesianLinearRegression(relevance=True).fit(X * [1e6, 1e-6, 1.0, 3.0], Y * 1e5)
    np.testing.assert_allclose(scaled.coef_ * [1e6, 1e-6, 1.0, 3.0] / 1e5, model.coef_, rtol=1e-5, atol=1e-10)


@pytest.mark.parametrize(
    "arguments",
    [
        {"prior_precision": -1.0},
        {"prior_precision": [1.0, 2.0]},
        {"prior_precision": "a"},
        {"prior_precision": [[1.0, 2.0], [2.0, 1.0]]},
        {"noise": 0.0},
        {"noise": "a"},
        {"prior_mean": [1.0]},
        {"prior_mean": np.nan},
    ],
)
def test_nonsense_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        BayesianLinearRegression(**arguments).fit(X, Y)  # type: ignore[arg-type]


def test_every_relevance_is_where_the_evidence_is_greatest() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 12)) @ (np.eye(12) + 0.4 * rng.normal(size=(12, 12)))
    y = X[:, :3] @ [2.0, -1.0, 0.5] + rng.normal(size=60)
    model = BayesianLinearRegression(relevance=True, fit_intercept=False, tol=1e-9).fit(X, y)

    def evidence(alpha: np.ndarray, noise: float) -> float:
        on = np.isfinite(alpha)
        cover = noise * np.eye(60) + (X[:, on] / alpha[on]) @ X[:, on].T
        return float(stats.multivariate_normal(np.zeros(60), cover).logpdf(y))

    best = evidence(model.alpha_, model.noise_)
    assert model.log_evidence_ == pytest.approx(best)
    assert 3 <= np.isfinite(model.alpha_).sum() < 12
    for j in range(12):
        for other in (0.5, 0.99, 1.01, 2.0) if np.isfinite(model.alpha_[j]) else np.geomspace(1e-3, 1e6, 10):
            changed = model.alpha_.copy()
            changed[j] = other * changed[j] if np.isfinite(changed[j]) else other
            assert evidence(changed, model.noise_) < best
    assert evidence(model.alpha_, 1.01 * model.noise_) < best
    assert evidence(model.alpha_, 0.99 * model.noise_) < best


def test_relevance_about_a_prior_mean_and_with_few_steps() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 4))
    y = X @ [3.0, 3.0, 3.0, 9.0] + 0.1 * rng.normal(size=80)
    model = BayesianLinearRegression(relevance=True, prior_mean=3.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, [3.0, 3.0, 3.0, 9.0], atol=0.1)
    assert not np.isfinite(model.alpha_[:3]).all()
    assert np.isfinite(model.alpha_[3])
    early = BayesianLinearRegression(relevance=True, max_iter=1).fit(X, y)
    assert np.isfinite(early.coef_).all()
    assert np.isfinite(early.covariance_).all()


@pytest.mark.parametrize("noise", [1e-6, 1e-14, 1e-22])
def test_directions_without_rows_keep_their_prior_however_small_the_noise(noise: float) -> None:
    """Fewer rows than columns: the same posterior from the rows' side, where nothing is lost in rounding."""
    few, y, m0 = X[:3] - X[:3].mean(axis=0), Y[:3], np.array([0.5, 0.0, -1.0, 2.0])
    K = few @ few.T / 2.0 + noise * np.eye(3)
    model = BayesianLinearRegression(prior_mean=m0, prior_precision=2.0, noise=noise, fit_intercept=False).fit(few, y)
    gain = np.linalg.solve(K + np.full((3, 3), np.trace(K)), few)  # the rows add up to zero, and so must what they want
    right = (y - y.mean() - few @ m0) @ gain / 2.0
    np.testing.assert_allclose(model.coef_, m0 + right, rtol=1e-6)
    np.testing.assert_allclose(model.covariance_, np.eye(4) / 2.0 - few.T @ gain / 4.0, atol=1e-6)


def test_precisions_that_do_not_settle_are_not_said_to_maximize_the_evidence() -> None:
    short = BayesianLinearRegression(relevance=True, max_iter=2).fit(X, Y)
    assert "do not maximize the evidence" in str(short.certificate_)
    assert "2 iterations" in short.certificate_.note
    assert "these maximize the evidence" in str(BayesianLinearRegression(relevance=True).fit(X, Y).certificate_)


def test_a_covariance_of_the_prior_is_the_inverse_of_its_precision() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 2))
    y = X @ [2.0, -1.0] + 0.3 * rng.normal(size=20)
    cov, center = np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([0.5, -0.5])
    model = BayesianLinearRegression(prior_mean=center, prior_cov=cov, noise=0.09, fit_intercept=False).fit(X, y)
    posterior = np.linalg.inv(np.linalg.inv(cov) + X.T @ X / 0.09)
    np.testing.assert_allclose(model.coef_, posterior @ (np.linalg.solve(cov, center) + X.T @ y / 0.09))
    np.testing.assert_allclose(model.covariance_, posterior)
    joint = stats.multivariate_normal(X @ center, 0.09 * np.eye(20) + X @ cov @ X.T)
    assert model.log_evidence_ == pytest.approx(joint.logpdf(y))
    for short, precision in ((4.0, 0.25), ([4.0, 0.5], [0.25, 2.0])):
        a = BayesianLinearRegression(prior_cov=short, noise=0.09).fit(X, y)
        b = BayesianLinearRegression(prior_precision=precision, noise=0.09).fit(X, y)
        np.testing.assert_allclose(a.coef_, b.coef_)
    with pytest.raises(ValueError, match="prior_precision and prior_cov say the same thing"):
        BayesianLinearRegression(prior_cov=1.0, prior_precision=1.0).fit(X, y)
    with pytest.raises(ValueError, match="prior_cov must be > 0"):
        BayesianLinearRegression(prior_cov=[[1.0, 2.0], [2.0, 1.0]]).fit(X, y)


@pytest.mark.parametrize("unit", [1.0, 10.0, 1e3])
def test_the_evidence_is_at_a_maximum_about_a_prior_mean_in_any_units(unit: float) -> None:
    mean = np.array([2.0, 0.1, -3.0, 1.0])
    model = BayesianLinearRegression(prior_mean=mean, tol=1e-10).fit(X, Y)
    given: dict[str, Any] = {"prior_mean": mean, "prior_precision": float(model.alpha_), "noise": model.noise_}
    same = BayesianLinearRegression(**given).fit(X, Y)
    np.testing.assert_allclose(same.coef_, model.coef_, rtol=1e-8)
    assert same.log_evidence_ == pytest.approx(model.log_evidence_)
    scaled = BayesianLinearRegression(prior_mean=mean / unit, tol=1e-10).fit(X * unit, Y)
    np.testing.assert_allclose(scaled.coef_ * unit, model.coef_, rtol=1e-8)


@pytest.mark.parametrize("options", [{}, {"relevance": True}, {"noise": 1e-3}])
@pytest.mark.parametrize("value", [3.1, 1e9 / 7])
def test_a_constant_column_says_nothing(value: float, options: dict[str, Any]) -> None:
    """Its mean is off by rounding, and so was its scatter, which became a unit."""
    rows = np.column_stack([np.full(12, value), X[:12]])
    for weight in (None, np.arange(1.0, 13.0)):
        model = BayesianLinearRegression(**options).fit(rows, Y[:12], weight)
        assert model.coef_[0] == 0.0
        without = BayesianLinearRegression(**options).fit(X[:12], Y[:12], weight)
        np.testing.assert_allclose(model.predict(rows), without.predict(X[:12]), rtol=0.05 if not options else 1e-6)


@pytest.mark.parametrize(
    ("of_x", "of_y", "options"),
    [
        (1e100, 1e-150, {"prior_precision": 1e-6}),
        (1e-150, 1e100, {"prior_precision": np.eye(4) + 0.5}),
        (1.0, 1e-150, {"prior_mean": 1.0, "relevance": True}),
        (1.0, 1e150, {"noise": 1e-12}),
    ],
)
def test_what_is_beyond_double_precision_is_refused(of_x: float, of_y: float, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="beyond double precision"):
        BayesianLinearRegression(**options).fit(of_x * X, of_y * Y)
