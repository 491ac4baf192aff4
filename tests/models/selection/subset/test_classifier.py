"""Best subsets for likelihoods against the enumeration of all of them by another solver, and their bounds against the truth."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import gamma as gamma_law
from sklearn.exceptions import ConvergenceWarning

from certifit import BestSubset, BestSubsetClassifier, GammaRegressor, LogisticRegression, PoissonRegressor
from certifit.evaluation.losses import Gamma, Logistic, Loss, Poisson, Softmax
from certifit.models.selection.subset.branching import SubsetSearch
from certifit.models.selection.subset.minorant import Likelihood, Minorant, least_value

LOSSES: dict[str, Loss] = {"logistic": Logistic(), "poisson": Poisson(), "gamma": Gamma(), "softmax": Softmax(3)}


def mean_loss(name: str, y: Any, f: Any, p: Any) -> tuple[float, Any]:
    """The mean loss of scores and its slopes, written out."""
    if name == "logistic":
        return float(p @ (np.logaddexp(0.0, f) - y * f)), p * (1 / (1 + np.exp(-f)) - y)
    if name == "poisson":
        saturated = y - y * np.log(np.where(y > 0, y, 1.0))
        return float(p @ (np.exp(f) - y * f - saturated)), p * (np.exp(f) - y)
    if name == "gamma":
        return float(p @ (y * np.exp(-f) + f - 1 - np.log(y))), p * (1 - y * np.exp(-f))
    total = np.logaddexp.reduce(f, axis=1)
    own = np.eye(3)[y]
    return float(p @ (total - (own * f).sum(axis=1))), p[:, None] * (np.exp(f - total[:, None]) - own)


def optimum(name: str, X: Any, y: Any, p: Any) -> float:
    """The least mean loss of these columns, by a quasi-Newton method of another house."""
    A = np.hstack([np.ones((X.shape[0], 1)), X])
    K = 3 if name == "softmax" else 1

    def value(w: Any) -> tuple[float, Any]:
        f = A @ w.reshape(-1, K)
        loss, slope = mean_loss(name, y, f if K > 1 else f[:, 0], p)
        return loss, (A.T @ slope.reshape(-1, K)).ravel()

    found = minimize(value, np.zeros(A.shape[1] * K), jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 2000})
    return float(found.fun)


def rows(name: str, n: int = 60, d: int = 5, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 0.7 * rng.normal(size=(n, 1))
    f = 0.8 * X[:, 0] - 0.6 * X[:, 2]
    if name == "logistic":
        y: Any = (f + rng.logistic(size=n) > 0).astype(float)
    elif name == "poisson":
        y = rng.poisson(np.exp(0.7 * f)).astype(float)
    elif name == "gamma":
        y = rng.gamma(2.0, np.exp(f) / 2.0)
    else:
        y = np.argmax(np.column_stack([f, X[:, 1], np.zeros(n)]) + rng.gumbel(size=(n, 3)), axis=1)
    return X, y, rng.integers(1, 4, size=n).astype(float)


def build(name: str, **options: Any) -> Any:
    if name in ("logistic", "softmax"):
        return BestSubsetClassifier(**options)
    return BestSubset(loss=name, **options)


@pytest.mark.parametrize("name", LOSSES)
def test_every_size_is_the_best_of_all(name: str) -> None:
    X, y, weight = rows(name)
    model = build(name, max_size=None, choose="size").fit(X, y, sample_weight=weight)
    p = weight / weight.sum()
    truth = [
        min(optimum(name, X[:, list(chosen)], y, p) for chosen in itertools.combinations(range(5), size))
        for size in range(6)
    ]
    np.testing.assert_allclose(model.path_.objectives, truth, rtol=1e-7)
    assert (model.path_.bounds <= np.array(truth) * (1 + 1e-9)).all()
    assert model.certificate_.certified
    for size, support in enumerate(model.path_.supports):
        assert support.sum() == size


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", LOSSES)
def test_nine_columns_against_all_subsets(name: str, seed: int) -> None:
    X, y, weight = rows(name, n=40 + 40 * (seed % 3), d=9, seed=seed)
    if seed % 4 == 3:
        X[:, 5], X[:, 7] = X[:, 0] - X[:, 1], X[:, 2]
    model = build(name, max_size=4, choose="size").fit(X, y, sample_weight=weight)
    peer: Any = {"poisson": PoissonRegressor, "gamma": GammaRegressor}.get(name, LogisticRegression)(alpha=0.0)
    peer.judged_elsewhere = True
    truth = math.inf
    for size in range(1, 5):  # columns that depend on each other are no better than fewer of them
        chosen = [list(some) for some in itertools.combinations(range(9), size)]
        fits = (peer.fit(X[:, some], y, weight) for some in chosen if np.linalg.matrix_rank(X[:, some]) == size)
        truth = min(truth, *(fit.certificate_.objective for fit in fits))
        assert model.path_.objectives[size] == pytest.approx(truth, rel=3e-6, abs=3e-6)
        assert model.path_.bounds[size] <= truth + 1e-9
    assert model.certificate_.certified


@pytest.mark.parametrize("name", LOSSES)
def test_a_move_costs_at_least_what_the_minorant_says(name: str) -> None:
    X, y, weight = rows(name)
    likelihood = Likelihood.of(np.hstack([np.ones((60, 1)), X]), y, weight / weight.sum(), LOSSES[name])
    rng = np.random.default_rng(1)
    for scale in (0.0, 0.01, 0.3):  # at points that are more and less of an optimum
        w = np.zeros((6, likelihood.n_scores))
        w[:1] = likelihood.constant()
        for _ in range(12):
            here = Minorant.at(likelihood, likelihood.Z, w)
            w = here.newton(likelihood, likelihood.Z) if here.decrement > 1e-10 else w
        here = Minorant.at(likelihood, likelihood.Z, w + scale * rng.normal(size=w.shape))
        for size in 10.0 ** np.arange(-3.0, 1.5, 0.5):
            v = size * rng.normal(size=w.shape)
            q = float(v.ravel() @ here.hessian @ v.ravel())
            assert likelihood.value(likelihood.Z, here.w + v) >= here.bound(q) - 1e-12


def test_the_least_value_is_the_least() -> None:
    for decrement, reach, q in [(0.0, 2.0, 0.3), (0.3, 2.0, 0.0), (0.1, 3.0, 0.5), (0.2, 1e-3, 0.01)]:
        rho = math.sqrt(q) + np.linspace(0.0, 30.0, 300_001)
        t = reach * rho
        curve = 1.0 - decrement * rho + (np.exp(-t) + t - 1.0) / reach**2
        assert least_value(1.0, decrement, reach, q) == pytest.approx(curve.min(), abs=1e-8)


@pytest.mark.parametrize("name", ["logistic", "softmax"])
def test_a_stopped_search_still_bounds_the_best(name: str) -> None:
    X, y, _ = rows(name, n=80, d=14)
    whole = build(name, max_size=5, choose="size").fit(X, y)
    with pytest.warns(ConvergenceWarning, match="stopped after max_nodes=3"):
        nodes = build(name, max_size=5, choose="size", max_nodes=3).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="stopped after time_limit=0"):
        time = build(name, max_size=5, choose="size", time_limit=0.0).fit(X, y)
    assert whole.certificate_.certified
    for model in (nodes, time):
        assert not model.certificate_.certified
        assert (model.path_.bounds <= whole.path_.objectives + 1e-12).all()
        assert (model.path_.objectives >= whole.path_.objectives - 1e-12).all()


def test_no_subset_is_looked_at_after_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many columns the first subsets alone, and the fit of all columns, may take longer than what was asked for."""
    looked = []
    gains = SubsetSearch._gains
    monkeypatch.setattr(SubsetSearch, "_gains", lambda *of: looked.append(1) or gains(*of))
    monkeypatch.setattr(SubsetSearch, "_consider", lambda *_: looked.append(1))
    X, y, _ = rows("logistic", n=80, d=14)
    with pytest.warns(ConvergenceWarning, match="stopped after time_limit=0"):
        model = build("logistic", max_size=5, choose="size", time_limit=0.0).fit(X, y)
    assert not looked
    assert (model.path_.objectives == model.path_.objectives[0]).all()
    assert (model.path_.bounds == 0.0).all()
    assert model.predict(X).shape == y.shape


def test_a_column_that_fits_some_rows_ever_better_leaves_the_proof() -> None:
    X, y, _ = rows("logistic", n=100)
    X[:, 1] = np.arange(100) % 7 == 0
    y[X[:, 1] == 1] = 1.0
    model = BestSubsetClassifier(max_size=3, choose="size").fit(X, y)
    assert model.certificate_.certified
    assert "separates the classes" in model.certificate_.note
    three = np.argmax(np.column_stack([X[:, 0], -X[:, 0], np.zeros(100)]), axis=1)
    three[::5] = 1
    three[X[:, 1] == 1] = np.arange(int(X[:, 1].sum())) % 2  # nobody of the third class here
    assert BestSubsetClassifier(max_size=3, choose="size").fit(X, three).certificate_.certified


def test_coefficients_are_those_of_the_plain_model() -> None:
    X, y, weight = rows("softmax")
    X = X * [1.0, 10.0, 0.1, 3.0, 1.0] + [0.0, 5.0, 0.0, -7.0, 1.0]
    model = BestSubsetClassifier(max_size=2, choose="size").fit(X, y, sample_weight=weight)
    plain = LogisticRegression(alpha=0.0, tol=1e-12).fit(X[:, model.support_], y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_[:, model.support_], plain.coef_, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, rtol=1e-5, atol=1e-7)
    counts = rows("poisson")[1] * 250.0
    counted = BestSubset(max_size=2, choose="size", loss="poisson").fit(X, counts)
    plainer = PoissonRegressor(alpha=0.0, tol=1e-12).fit(X[:, counted.support_], counts)
    np.testing.assert_allclose(counted.predict(X), plainer.predict(X[:, counted.support_]), rtol=1e-6)
    assert counted.certificate_.objective == pytest.approx(plainer.certificate_.objective, rel=1e-9)


def test_criteria_are_those_of_the_likelihoods() -> None:
    X, y, _ = rows("gamma", n=200)
    model = BestSubset(max_size=None, loss="gamma").fit(X, y)
    criteria = []
    for support in model.path_.supports:
        fit = GammaRegressor(alpha=0.0).fit(X[:, support], y) if support.any() else None
        mean = np.full(200, y.mean()) if fit is None else fit.predict(X[:, support])
        best = minimize(
            lambda log_k, mean=mean: -gamma_law.logpdf(y, np.exp(log_k[0]), scale=mean / np.exp(log_k[0])).sum(), [0.0]
        )
        criteria.append(2 * best.fun + np.log(200) * support.sum())
    assert model.support_.sum() == np.argmin(criteria)
    X, y, _ = rows("softmax", n=200)
    aic = BestSubsetClassifier(max_size=None, choose="aic").fit(X, y)
    assert aic.support_.sum() == np.argmin(400 * aic.path_.objectives + 2 * 2 * np.arange(6))
    priced = BestSubsetClassifier(max_size=None, choose=0.02).fit(X, y)
    assert priced.certificate_.objective == pytest.approx((priced.path_.objectives + 0.02 * np.arange(6)).min())


def test_targets_that_make_no_sense_are_refused() -> None:
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match="y must be >= 0"):
        BestSubset(loss="poisson").fit(X, [1.0, -1.0, 2.0])
    with pytest.raises(ValueError, match="y must be > 0"):
        BestSubset(loss="gamma").fit(X, [1.0, 0.0, 2.0])
    with pytest.raises(ValueError, match="y is zero in every row"):
        BestSubset(loss="poisson").fit(X, [0.0, 0.0, 0.0])


def test_the_path_is_drawn() -> None:
    X, y, _ = rows("logistic")
    axes = BestSubsetClassifier(max_size=3).fit(X, y).plot()
    assert axes.get_ylabel() == "mean log loss"
    assert len(axes.lines) == 2


@pytest.mark.parametrize("name", ["logistic", "poisson"])
@pytest.mark.parametrize("alike", [1e-8, 1e-6])
def test_columns_that_hardly_differ_are_bounded_by_what_they_may_explain(name: str, alike: float) -> None:
    rng = np.random.default_rng(3)
    n = 60
    base, other = rng.normal(size=(2, n))
    X = np.c_[base, base + alike * other, rng.normal(size=n)]
    y = (other + rng.logistic(size=n) > 0) * 1.0 if name == "logistic" else rng.poisson(np.exp(0.5 * other)) * 1.0
    truth = optimum(name, np.c_[base, other], y, np.full(n, 1 / n))
    model = (
        BestSubsetClassifier(max_size=2, choose="size")
        if name == "logistic"
        else BestSubset(max_size=2, choose="size", loss="poisson")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert model.certificate_.bound <= truth + 1e-9
    assert not model.certificate_.certified
