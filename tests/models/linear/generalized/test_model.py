"""GLM: every family with every map against the likelihoods of SciPy, minimized by SciPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit, logsumexp

from certifit import GLM, LogisticRegression, PoissonRegressor
from certifit.losses import FAMILIES, MAPS, Map, MeanLoss

MEANS = {
    "identity": lambda f: f,
    "exp": np.exp,
    "logistic": expit,
    "probit": stats.norm.cdf,
    "cloglog": lambda f: 1.0 - np.exp(-np.exp(f)),
    "softplus": lambda f: np.log1p(np.exp(f)),
}
LOG_DENSITY = {
    "gaussian": lambda y, m: stats.norm.logpdf(y, m, 1.0),
    "laplace": lambda y, m: stats.laplace.logpdf(y, m, 1.0),
    "bernoulli": lambda y, m: stats.bernoulli.logpmf(y, m),
    "poisson": lambda y, m: stats.poisson.logpmf(y, m),
    "gamma": lambda y, m: stats.gamma.logpdf(y, 4.0, scale=m / 4.0) / 4.0,
    "inverse_gaussian": lambda y, m: stats.invgauss.logpdf(y, m),
}
PAIRS = [(family, name) for family in FAMILIES for name in MAPS]


def draw(family: str, name: str, n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets of the pair; means inside every bound."""
    rng = np.random.default_rng(seed)
    X = 0.3 * rng.uniform(-1, 1, size=(n, 2))
    level = {"identity": 0.5, "exp": -1.0, "softplus": -0.8}.get(name, 0.2)
    mean = MEANS[name](X @ [0.5, -0.3] + level)
    y = {
        "gaussian": lambda: mean + 0.05 * rng.normal(size=n),
        "laplace": lambda: mean + 0.05 * rng.laplace(size=n),
        "bernoulli": lambda: (rng.random(n) < mean).astype(float),
        "poisson": lambda: rng.poisson(mean).astype(float),
        "gamma": lambda: rng.gamma(5.0, mean / 5.0),
        "inverse_gaussian": lambda: rng.wald(mean, 5.0),
    }[family]()
    return X, y


@pytest.mark.parametrize(("family", "name"), PAIRS)
def test_pair_maximizes_the_likelihood(family: str, name: str) -> None:
    X, y = draw(family, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GLM(family, name, tol=1e-10).fit(X, y)

    def mean_loss(z: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            value = -float(np.mean(LOG_DENSITY[family](y, MEANS[name](z[0] + X @ z[1:]))))
        return value if np.isfinite(value) else 1e6

    ours = np.append(model.intercept_, model.coef_)
    best = optimize.minimize(mean_loss, ours, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
    far = optimize.minimize(mean_loss, ours + 0.05, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
    assert mean_loss(ours) <= min(best.fun, far.fun) + 1e-7
    proven = name in FAMILIES[family].convex_with
    assert bool(model.certificate_) == proven
    if not proven:
        assert model.certificate_.kind == "none"
        assert "stationary point" in model.certificate_.note


@pytest.mark.parametrize(("family", "name"), PAIRS)
def test_derivatives_by_differences(family: str, name: str) -> None:
    loss = MeanLoss(FAMILIES[family](), MAPS[name]())
    low, high = (0.05, 0.95) if name == "identity" else (-4.0, -0.2) if name in ("exp", "softplus") else (-3.0, 1.5)
    f = np.tile(np.linspace(low, high, 12), 3)
    y = np.repeat([0.3, 0.7, 1.0], 12)
    h = 1e-6
    slope = (loss.value(y, f + h) - loss.value(y, f - h)) / (2 * h)
    np.testing.assert_allclose(loss.derivative(y, f), slope, rtol=1e-5, atol=1e-6)
    if family != "laplace":  # a kink has a parabola above it, and no curvature
        bend = (loss.derivative(y, f + h) - loss.derivative(y, f - h)) / (2 * h)
        np.testing.assert_allclose(loss.second_derivative(y, f), bend, rtol=1e-5, atol=1e-5)
    if loss.convex:
        assert (loss.second_derivative(y, f) >= 0).all()


@pytest.mark.parametrize(
    ("family", "name"), [(f, m) for f, m in PAIRS if m in FAMILIES[f].convex_with and (f, m) != ("laplace", "identity")]
)
def test_conjugate_is_the_supremum(family: str, name: str) -> None:
    loss = MeanLoss(FAMILIES[family](), MAPS[name]())
    scores = np.linspace(-30.0, 30.0, 300_001)
    for target in (0.0, 0.4, 1.0):
        if family == "gamma" and target == 0.0:
            continue
        y = np.full(5, target)
        low, high = (float(end[0]) for end in loss.dual_domain(y))
        u = np.linspace(max(low, -2.0) + 0.05, min(high, 2.0) - 0.05, 5)
        values = loss.value(np.full(scores.shape, target), scores)
        supremum = np.array([np.max(v * scores - values) for v in u])
        np.testing.assert_allclose(loss.conjugate(y, u), supremum, atol=2e-3)
        assert (loss.conjugate(y, u) >= supremum - 1e-9).all()


@pytest.mark.parametrize(("family", "name"), [("gamma", "softplus"), ("bernoulli", "cloglog"), ("laplace", "exp")])
def test_weights_are_repetitions(family: str, name: str) -> None:
    X, y = draw(family, name)
    times = np.arange(len(y)) % 3
    weighted = GLM(family, name, tol=1e-10).fit(X, y, sample_weight=times)
    repeated = GLM(family, name, tol=1e-10).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-5)
    np.testing.assert_allclose(weighted.summary().std_error, repeated.summary().std_error, rtol=1e-4)


def test_standard_errors_of_the_probit() -> None:
    """Against the curvature of the log-likelihood in the average over y: Σ φ²/(Φ(1 − Φ)) x̃x̃ᵀ."""
    X, y = draw("bernoulli", "probit")
    model = GLM("bernoulli", "probit", tol=1e-12).fit(X, y)
    A = np.column_stack([np.ones(len(X)), X])
    f = A @ np.append(model.intercept_, model.coef_)
    v = stats.norm.pdf(f) ** 2 / (stats.norm.cdf(f) * stats.norm.sf(f))
    table = model.summary()
    np.testing.assert_allclose(table.std_error, np.sqrt(np.diag(np.linalg.inv(A.T @ (v[:, None] * A)))), rtol=1e-8)
    np.testing.assert_allclose(table.log_likelihood, stats.bernoulli.logpmf(y, stats.norm.cdf(f)).sum())


def test_laplace_has_its_scale() -> None:
    X, y = draw("laplace", "identity")
    for model in (GLM("laplace").fit(X, y), GLM("laplace", "exp", tol=1e-8).fit(X, np.exp(y))):
        target = y if model.map is None else np.exp(y)
        residual = target - model.predict(X)
        scale = np.abs(residual).mean()
        table = model.summary()
        np.testing.assert_allclose(table.sigma, scale, rtol=1e-6)
        np.testing.assert_allclose(table.log_likelihood, stats.laplace.logpdf(residual, 0.0, scale).sum(), rtol=1e-6)


def test_offset_of_counts_is_exposure() -> None:
    """e^(f + ln t): the fit of rates y/t with weights t."""
    rng = np.random.default_rng(1)
    X, time = rng.normal(size=(150, 2)), rng.uniform(0.5, 4.0, 150)
    y = rng.poisson(time * np.exp(X @ [0.4, -0.2])).astype(float)
    model = GLM("poisson", tol=1e-12).fit(X, y, offset=np.log(time))
    rates = PoissonRegressor(alpha=0.0, tol=1e-12).fit(X, y / time, sample_weight=time)
    np.testing.assert_allclose(model.coef_, rates.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X, offset=np.log(time)), time * rates.predict(X), rtol=1e-6)
    assert model.certificate_
    dropped = rng.random(150) < 0.5
    weighted = GLM("poisson", tol=1e-12).fit(X, y, sample_weight=(~dropped).astype(float), offset=np.log(time))
    kept = GLM("poisson", tol=1e-12).fit(X[~dropped], y[~dropped], offset=np.log(time[~dropped]))
    np.testing.assert_allclose(weighted.coef_, kept.coef_, rtol=1e-8)
    np.testing.assert_allclose(model.summary().std_error, _poisson_errors(X, model.predict(X, offset=np.log(time))))


def _poisson_errors(X: np.ndarray, mean: np.ndarray) -> np.ndarray:
    A = np.column_stack([np.ones(len(X)), X])
    return np.sqrt(np.diag(np.linalg.inv(A.T @ (mean[:, None] * A))))


def test_offset_of_the_squared_loss_is_subtracted() -> None:
    X, y = draw("gaussian", "identity")
    offset = np.sin(np.arange(len(y)))
    model, plain = GLM(tol=1e-12).fit(X, y, offset=offset), GLM().fit(X, y - offset)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-8)
    np.testing.assert_allclose(model.summary().std_error, plain.summary().std_error, rtol=1e-7)


def test_categorical_is_softmax_with_errors() -> None:
    """Errors of differences between classes are those of the model with one class as the reference."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2))
    y = np.array(["a", "b", "c"])[np.argmax(X @ rng.normal(size=(2, 3)) + rng.gumbel(size=(300, 3)), axis=1)]
    model = GLM("categorical", tol=1e-12).fit(X, y)
    twin = LogisticRegression(alpha=0.0, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.predict(X), twin.predict_proba(X), atol=1e-6)
    A, P = np.column_stack([np.ones(300), X]), model.predict(X)
    information = np.zeros((6, 6))
    for row, p in zip(A, P[:, 1:], strict=True):  # class "a" is the reference
        information += np.kron(np.diag(p) - np.outer(p, p), np.outer(row, row))
    reference = np.linalg.inv(information)
    C = model._inference.covariance.reshape(3, 3, 3, 3)
    for k in (1, 2):
        difference = C[k, :, k] + C[0, :, 0] - C[k, :, 0] - C[0, :, k]
        block = reference[3 * (k - 1) : 3 * k, 3 * (k - 1) : 3 * k]
        np.testing.assert_allclose(difference, block, rtol=1e-5, atol=1e-9)
    assert model.summary().names[:4] == ("a: intercept", "a: x0", "a: x1", "b: intercept")


class Floor(Map):
    """2 + e^f: no class is ever quite impossible."""

    def value(self, f: np.ndarray) -> np.ndarray:
        return 2.0 + np.exp(f)

    def slope(self, f: np.ndarray) -> np.ndarray:
        return np.exp(f)

    bend = slope


@pytest.mark.parametrize("chosen", ["exp", "softplus", Floor()], ids=str)
def test_classes_with_any_map(chosen: object) -> None:
    """μ_k = g(f_k)/Σ g(f_j), against a likelihood written from means alone, and the information from their derivatives."""
    mean = MEANS[chosen] if isinstance(chosen, str) else chosen.value  # type: ignore[attr-defined]
    rng = np.random.default_rng(4)
    X = rng.uniform(size=(400, 2))
    W = np.array([[2.0, 0.5, 0.3], [1.5, -0.4, 0.8], [2.5, 0.9, -0.6]])
    A = np.column_stack([np.ones(400), X])

    def shares(z: np.ndarray) -> np.ndarray:
        values = mean(A @ z.reshape(3, 3).T)
        return values / values.sum(axis=1, keepdims=True)

    y = np.array([rng.choice(3, p=row) for row in shares(W)])
    model = GLM("categorical", chosen, tol=1e-12).fit(X, y)
    found = np.column_stack([model.intercept_, model.coef_]).ravel()
    np.testing.assert_allclose(model.predict(X), shares(found), rtol=1e-9)

    def loss(z: np.ndarray) -> float:
        return -float(np.log(shares(z)[np.arange(400), y]).sum())

    steps = 1e-5 * np.eye(9)
    slope = np.array([loss(found + h) - loss(found - h) for h in steps]) / 2e-5
    assert np.abs(slope).max() < 2e-3
    assert loss(found) <= loss(W.ravel())
    assert model.certificate_.certified == (chosen == "exp")
    assert chosen == "exp" or "convex in the scores" in model.certificate_.note
    derivative = np.array([(shares(found + h) - shares(found - h)) / 2e-5 for h in steps])
    information = np.einsum("ink,jnk,nk->ij", derivative, derivative, 1.0 / shares(found))
    # Errors of what the classes' shares are: the same for every inverse, where shifts or scales of the scores change nothing.
    expected = np.linalg.pinv(information, rcond=1e-7, hermitian=True)
    table, mapped = model.summary(), derivative[:, :20].reshape(9, -1)
    ours = mapped.T @ model._inference.covariance @ mapped
    np.testing.assert_allclose(ours, mapped.T @ expected @ mapped, rtol=1e-3, atol=1e-9)
    assert table.log_likelihood == pytest.approx(-loss(found))
    with pytest.raises(ValueError, match="one mean a row"):
        model.prediction_interval(X)


@pytest.mark.parametrize("chosen", ["identity", "logistic", "probit", "cloglog"])
@pytest.mark.filterwarnings("ignore")
def test_classes_with_maps_whose_best_scores_may_be_at_an_edge(chosen: str) -> None:
    """No search from there finds a better likelihood worth the name, and the scores that drew the data are not better either."""
    rng = np.random.default_rng(6)
    X = rng.uniform(size=(150, 1))
    W = np.array([[1.0, 0.5], [0.5, 1.0], [1.5, -1.0]])

    def loss(z: np.ndarray) -> float:
        scores = X * z.reshape(3, 2)[:, 1] + z.reshape(3, 2)[:, 0]
        logs = {
            "identity": lambda f: np.log(np.maximum(f, 1e-18)),
            "logistic": lambda f: -np.logaddexp(0.0, -f),
            "probit": stats.norm.logcdf,
            "cloglog": lambda f: np.where(f < -30, f, np.log(-np.expm1(-np.exp(np.maximum(f, -30))))),
        }[chosen](scores)
        return float((logsumexp(logs, axis=1) - logs[np.arange(150), y]).mean())

    share = MEANS[chosen](X * W[:, 1] + W[:, 0])
    y = np.array([rng.choice(3, p=row / row.sum()) for row in share])
    model = GLM("categorical", chosen, tol=1e-10).fit(X, y)
    found = np.column_stack([model.intercept_, model.coef_]).ravel()
    near = optimize.minimize(loss, found, method="Nelder-Mead", options={"maxiter": 2000, "maxfev": 2000}).fun
    assert loss(found) <= min(near, loss(W.ravel())) + 1e-3
    assert "no bound is known" in model.certificate_.note
    table = model.summary()
    assert np.isfinite(table.std_error).all() or "no standard errors" in table.note


@pytest.mark.parametrize("chosen", ["softmax", "softplus"])
def test_offsets_of_classes(chosen: str) -> None:
    mean = np.exp if chosen == "softmax" else MEANS[chosen]
    rng = np.random.default_rng(5)
    X, offset, weight = (
        rng.uniform(size=(200, 2)),
        rng.normal(size=(200, 3)),
        rng.integers(0, 3, size=200).astype(float),
    )
    y = rng.integers(3, size=200)
    model = GLM("categorical", chosen, tol=1e-12).fit(X, y, weight, offset=offset)

    def loss(z: np.ndarray) -> float:
        values = mean(X @ z[3:].reshape(3, 2).T + z[:3] + offset)
        own = values[np.arange(200), y] / values.sum(axis=1)
        return -float(weight @ np.log(own)) / weight.sum()

    found = np.concatenate([model.intercept_, model.coef_.ravel()])
    assert loss(found) == pytest.approx(optimize.minimize(loss, found + 0.1, tol=1e-9).fun, abs=1e-7)
    values = mean(X @ model.coef_.T + model.intercept_ + offset)
    np.testing.assert_allclose(model.predict(X, offset=offset), values / values.sum(axis=1, keepdims=True), rtol=1e-8)
    assert model.certificate_.certified == (chosen == "softmax")
    with pytest.raises(ValueError, match="200 rows of 3 finite numbers"):
        GLM("categorical", chosen).fit(X, y, offset=offset[:, 0])
    copies = np.repeat(np.arange(200), weight.astype(int))
    repeated = GLM("categorical", chosen, tol=1e-12).fit(X[copies], y[copies], offset=offset[copies])
    np.testing.assert_allclose(repeated.predict(X), model.predict(X), atol=1e-5)


def test_offsets_of_laplace_noise() -> None:
    X, y = draw("laplace", "identity")
    offset = np.sin(np.arange(len(y)))
    model, plain = GLM("laplace", tol=1e-9).fit(X, y, offset=offset), GLM("laplace", tol=1e-9).fit(X, y - offset)
    assert model.certificate_.certified
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-7)
    np.testing.assert_allclose(model.summary().std_error, plain.summary().std_error, rtol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("chosen", MAPS)
@pytest.mark.filterwarnings("ignore")
def test_an_offset_of_zero_is_none(family: str, chosen: str) -> None:
    X, y = draw(family, chosen)
    plain, shifted = GLM(family, chosen).fit(X, y), GLM(family, chosen).fit(X, y, offset=np.zeros(len(y)))
    np.testing.assert_allclose(shifted.predict(X), plain.predict(X), rtol=1e-3, atol=1e-3)


def test_map_of_ones_own_claims_nothing() -> None:
    class Sinh(Map):
        def value(self, f: np.ndarray) -> np.ndarray:
            return np.sinh(f)

        def slope(self, f: np.ndarray) -> np.ndarray:
            return np.cosh(f)

        def bend(self, f: np.ndarray) -> np.ndarray:
            return np.sinh(f)

    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 2))
    y = np.sinh(X @ [0.7, -0.4] + 0.2) + 0.01 * rng.normal(size=80)
    model = GLM("gaussian", Sinh()).fit(X, y)
    np.testing.assert_allclose(model.coef_, [0.7, -0.4], atol=0.02)
    assert model.certificate_.kind == "none"
    assert "not proven convex" in model.certificate_.note


def test_separated_classes_have_no_finite_optimum() -> None:
    X, y = np.arange(6.0)[:, None], np.array([0.0, 0, 0, 1, 1, 1])
    with pytest.warns(UserWarning, match="No finite optimum"):
        model = GLM("bernoulli", "probit").fit(X, y)
    assert not model.certificate_


@pytest.mark.parametrize(
    ("arguments", "y", "message"),
    [
        ({"family": "poisson"}, [-1.0, 2.0], "Poisson"),
        ({"family": "inverse_gaussian"}, [0.0, 2.0], "y must be > 0"),
        ({"family": "bernoulli", "map": "probit"}, [0.0, 2.0], "y must be 0, 1"),
        ({"family": "poisson", "map": "softmax"}, [0.0, 1.0], "categorical"),
    ],
)
def test_what_a_pair_refuses(arguments: dict, y: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GLM(**arguments).fit(np.array([[0.0], [1.0]]), np.array(y))


def test_offset_refused() -> None:
    X, y = draw("poisson", "exp")
    with pytest.raises(ValueError, match="offset must be 200 finite numbers"):
        GLM("poisson").fit(X, y, offset=np.zeros(3))
    with pytest.raises(ValueError, match="no coefficients whose means are all possible"):
        GLM("poisson", "identity", fit_intercept=False).fit(X, y)
