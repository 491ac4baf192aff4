"""Intervals against closed forms, and their coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, norm
from scipy.stats import bootstrap as scipy_bootstrap

from certifit import LogisticRegression, PoissonRegressor, Ridge
from certifit.evaluation.metrics.registry import METRICS
from certifit.evaluation.risk.risk import Risk, clopper_pearson, interval, metric_interval, risk
from certifit.losses import Huber, Logistic, Poisson, Softmax, Squared


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (1, 1), (50, 2000)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_clopper_pearson(k: int, n: int, level: float) -> None:
    exact = binomtest(k, n).proportion_ci(level, "exact")
    assert clopper_pearson(k, n, level) == pytest.approx((exact.low, exact.high))
    found = interval(np.arange(n) < k, level=level)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))
    assert found.method == "clopper-pearson"


def test_bernstein_is_the_formula() -> None:
    v = np.random.default_rng(0).uniform(2, 4, size=100)
    found = interval(v, bound=(0, 10), level=0.9)
    log = np.log(4 / 0.1)
    half = np.sqrt(2 * v.var(ddof=1) * log / 100) + 7 * 10 * log / (3 * 99)
    assert (found.low, found.high) == pytest.approx((max(0, v.mean() - half), v.mean() + half))
    assert found.method == "bernstein"


def test_bootstrap_agrees_with_scipy() -> None:
    v = np.random.default_rng(1).exponential(size=400)
    found = interval(v)
    theirs = scipy_bootstrap((v,), np.mean, n_resamples=4000, method="BCa", random_state=0).confidence_interval
    assert found.method == "bootstrap"
    assert found.low == pytest.approx(theirs.low, abs=0.02)
    assert found.high == pytest.approx(theirs.high, abs=0.02)


def coverage(draw, truth: float, repeats: int, **arguments) -> float:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(2)
    hits = [found.low <= truth <= found.high for found in (interval(draw(rng), **arguments) for _ in range(repeats))]
    return float(np.mean(hits))


@pytest.mark.parametrize("n", [10, 60])
def test_coverage_of_exact_intervals(n: int) -> None:
    assert coverage(lambda rng: rng.random(n) < 0.07, 0.07, 1000) >= 0.95
    assert coverage(lambda rng: rng.beta(0.3, 2.0, size=n), 0.3 / 2.3, 500, bound=1) >= 0.95


@pytest.mark.parametrize(("n", "least"), [(15, 0.88), (100, 0.92)])
def test_coverage_of_the_bootstrap_for_skewed_losses(n: int, least: float) -> None:
    # Two standard errors of the simulation are 0.022 at 400 repeats.
    covered = coverage(lambda rng: rng.exponential(size=n), 1.0, 400)
    assert least <= covered <= 0.99


def test_coverage_of_the_normal_interval() -> None:
    assert 0.92 <= coverage(lambda rng: rng.normal(size=20), 0.0, 800, method="normal") <= 0.98


def test_coverage_of_delong() -> None:
    rng, hits, truth = np.random.default_rng(3), [], norm.cdf(1.5 / np.sqrt(2))
    for _ in range(500):
        y = np.arange(80) < 30
        found = metric_interval("roc_auc", y, rng.normal(size=80) + 1.5 * y)
        hits.append(found.low <= truth <= found.high)
    assert 0.92 <= np.mean(hits) <= 0.99


def test_coverage_of_functions_of_means() -> None:
    rng, hits = np.random.default_rng(4), {"rmse": [], "r2": [], "f1": []}
    truth = {"rmse": 1.0, "r2": 0.5, "f1": 2 * 0.5 * 0.8 / (2 * 0.5 * 0.8 + 0.5 * 0.2 + 0.5 * 0.2)}
    for _ in range(150):
        f = rng.normal(size=120)
        y = f + rng.normal(size=120)
        label = rng.random(120) < 0.5
        predicted = np.where(rng.random(120) < 0.8, label, ~label)
        for name, pair in {"rmse": (y, f), "r2": (y, f), "f1": (label, predicted)}.items():
            found = metric_interval(name, *pair)
            hits[name].append(found.low <= truth[name] <= found.high)
    for name, hit in hits.items():
        assert 0.89 <= np.mean(hit) <= 1.0, name


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_every_metric_has_an_interval(metric) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(5)
    n = 150
    if metric.needs == "value":
        y, prediction = rng.gamma(2.0, size=n), rng.gamma(2.0, size=n)
    else:
        y = np.array(["no", "yes"])[rng.integers(2, size=n)]
        prediction = (
            rng.uniform(0.2, 0.8, size=n) if metric.needs != "label" else np.where(rng.random(n) < 0.8, y, "yes")
        )
    weight = rng.integers(0, 3, size=n).astype(float)
    found = metric_interval(metric, y, prediction, sample_weight=weight)
    assert found.value == pytest.approx(metric(y, prediction, sample_weight=weight))
    assert found.low <= found.value <= found.high
    assert found.low < found.high
    assert found.n == weight.sum()
    assert found.loss == metric.label
    narrow = metric_interval(
        metric, np.repeat(y, 9), np.repeat(prediction, 9, axis=0), sample_weight=np.repeat(weight, 9)
    )
    assert narrow.high - narrow.low < 0.6 * (found.high - found.low)
    wide = metric_interval(metric, y, prediction, sample_weight=weight, level=0.999)
    assert wide.high - wide.low > found.high - found.low


def test_an_interval_of_the_log_loss_ends_where_the_log_loss_does() -> None:
    """Most rows sure and right, a few wrong: the bootstrap alone would end beyond any log loss there is."""
    p = np.exp(-np.r_[np.logspace(-6, -2, 40), 2.0])
    y = np.ones(41, dtype=int)
    found = metric_interval("log_loss", y, p, level=0.997, classes=[0, 1])
    largest = -np.log(np.finfo(float).eps)
    assert found.value < found.high == pytest.approx(largest)
    assert interval(METRICS["log_loss"].losses(y, p, [0, 1]), level=0.997).high > 100.0


@pytest.mark.parametrize("small", [0.0, 1e-9])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.997])
def test_one_large_loss_among_equal_ones_leaves_room_above(small: float, level: float) -> None:
    """The mean is 3 times a share of 1 in 50, of which the exact interval ends above four times as much."""
    found = interval(np.r_[np.full(49, small), 3.0], level=level)
    assert found.low < found.value
    assert found.high > 2.5 * found.value


@pytest.mark.parametrize("name", ["zero_one", "log_loss", "brier", "rmse", "r2", "f1", "roc_auc"])
def test_weight_is_repetition_and_the_order_of_rows_is_nothing(name: str) -> None:
    rng = np.random.default_rng(6)
    metric, n = METRICS[name], 60
    y = rng.normal(size=n) if metric.needs == "value" else np.arange(n) % 2
    prediction = rng.normal(size=n) if metric.needs == "value" else np.round(rng.uniform(0.1, 0.9, size=n), 2)
    if metric.needs == "label":
        prediction = (prediction > 0.4).astype(int)
    weight = rng.integers(0, 4, size=n)
    rows = rng.permutation(np.repeat(np.arange(n), weight))
    a = metric_interval(metric, y, prediction, sample_weight=weight)
    b = metric_interval(metric, y[rows], prediction[rows])
    assert (a.value, a.low, a.high, a.n) == pytest.approx((b.value, b.low, b.high, b.n), rel=1e-9)


def test_perfect_and_single() -> None:
    y = np.arange(40) % 2
    perfect = metric_interval("roc_auc", y, y.astype(float))
    assert perfect.value == perfect.high == 1.0
    assert 0.7 < perfect.low < 1.0
    alone = interval([3.0])
    assert (alone.low, alone.high) == (-np.inf, np.inf)
    assert interval([0.3], bound=1).low == 0.0
    assert interval([2.0, 2.0]).low == interval([2.0, 2.0]).high == 2.0


def test_rates_of_two_classes_are_exact() -> None:
    y, predicted = np.repeat([0, 0, 1, 1], [40, 10, 5, 25]), np.repeat([0, 1, 0, 1], [40, 10, 5, 25])
    for name, k, n in (("recall", 25, 30), ("tpr", 25, 30), ("fpr", 10, 50), ("precision", 25, 35)):
        found = metric_interval(name, y, predicted)
        assert (found.low, found.high) == pytest.approx(clopper_pearson(k, n)), name


@pytest.mark.parametrize("name", ["f1", "balanced_accuracy", "average_precision"])
def test_a_perfect_sample_is_not_a_perfect_model(name: str) -> None:
    y = np.repeat([0, 1], [90, 10])
    found = metric_interval(name, y, y)
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(clopper_pearson(10, 10)[0])


def test_many_rows_take_the_normal_interval() -> None:
    v = np.random.default_rng(7).exponential(size=25_000)
    found = interval(v)
    assert found.method == "normal"
    assert found.high - found.value == pytest.approx(1.96 * v.std() / np.sqrt(25_000), rel=1e-3)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(300, 3))
    return X, X[:, 0] + rng.normal(size=300)


def test_risk_of_models(data) -> None:  # type: ignore[no-untyped-def]
    X, t = data
    regression = Ridge(alpha=0.1).fit(X[:150], t[:150])
    residual = t[150:] - regression.predict(X[150:])
    assert risk(regression, X[150:], t[150:]).value == pytest.approx(0.5 * np.mean(residual**2))
    assert risk(regression, X[150:], t[150:], loss=Squared()).loss == "squared loss"
    assert risk(regression, X[150:], t[150:], loss="mse").value == pytest.approx(np.mean(residual**2))
    assert risk(regression, X[150:], t[150:], loss="absolute").value == pytest.approx(np.mean(np.abs(residual)))
    huber = Huber(delta=0.5)
    expected = huber.value(t[150:], regression.predict(X[150:])).mean()
    assert risk(regression, X[150:], t[150:], loss=huber).value == pytest.approx(expected)
    own = risk(regression.predict, X[150:], t[150:], loss=lambda y, f: np.abs(y - f) > 1)
    assert own.method == "clopper-pearson"
    assert own.value == pytest.approx(np.mean(np.abs(residual) > 1))

    y = np.where(t > 0, "up", "down")
    model = LogisticRegression().fit(X[:150], y[:150])
    wrong = model.predict(X[150:]) != y[150:]
    assert risk(model, X[150:], y[150:]).value == pytest.approx(wrong.mean())
    p = model.predict_proba(X[150:])
    mean_log = -np.log(p[np.arange(150), (y[150:] == "up").astype(int)]).mean()
    for loss in ("log_loss", "logistic", Logistic(), Softmax()):
        assert risk(model, X[150:], y[150:], loss=loss).value == pytest.approx(mean_log), loss
    assert risk(model, X[150:], y[150:], loss="roc_auc").method == "DeLong"

    counts = np.random.default_rng(9).poisson(np.exp(0.3 * X[:, 0]))
    poisson = PoissonRegressor().fit(X[:150], counts[:150])
    half = 0.5 * METRICS["mean_poisson_deviance"](counts[150:], poisson.predict(X[150:]))
    assert risk(poisson, X[150:], counts[150:], loss=Poisson()).value == pytest.approx(half)


def test_the_sentence() -> None:
    text = str(Risk(0.125, 0.1, 0.15, 0.9, 400, "clopper-pearson", "error rate"))
    assert text == "The error rate is 0.125, between 0.1 and 0.15 with 90 % confidence (Clopper-Pearson, 400 rows)."
    assert Risk(0.125, 0.1, 0.15, 0.9, 400, "bootstrap", "loss").as_dict()["method"] == "bootstrap"


BAD = {
    "level": (lambda: interval([1.0, 2.0], level=95), "level must be a number in .0, 1."),
    "method": (lambda: interval([1.0, 2.0], method="magic"), "method must be one of"),
    "not 0-1": (lambda: interval([1.0, 2.0], method="clopper-pearson"), "0 or 1"),
    "no bound": (lambda: interval([1.0, 2.0], method="bernstein"), "bound="),
    "wrong bound": (lambda: interval([1.0, 2.0], bound=1.5), r"\[0, 1.5\], but values from 1 to 2"),
    "odd bound": (lambda: interval([1.0, 2.0], bound=(2, 1)), "least < largest"),
    "text bound": (lambda: interval([1.0, 2.0], bound="x"), "bound must be"),
    "nan": (lambda: interval([1.0, np.nan]), "values must be finite"),
    "seed": (lambda: interval([1.0, 2.0], random_state="x"), "random_state"),
    "not a mean": (lambda: metric_interval("roc_auc", [0, 1], [0.1, 0.2], method="bernstein"), "not a mean"),
    "loss": (lambda: risk(lambda X: X, [1.0], [1.0], loss="sqared"), "'squared'.*got 'sqared'"),
    "values": (lambda: risk(lambda X: X, [1.0, 2.0], [1.0, 2.0], loss=lambda y, f: 3.0), "one number for each row"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_model_without_probabilities_says_so(data) -> None:  # type: ignore[no-untyped-def]
    X, t = data
    model = Ridge().fit(X, t)
    with pytest.raises(TypeError, match="has no predict_proba"):
        risk(model, X, t > 0, loss="log_loss")
    with pytest.raises(TypeError, match="fitted estimator or a function"):
        risk(3, X, t)


def test_the_interval_of_an_error_with_a_heavy_tail_covers() -> None:
    """Residuals of Student's t with 3 degrees of freedom: the mean of their squares has no variance. BCa covers in 89 %."""
    rng = np.random.default_rng(5)
    level, tries, truth = 0.995, 300, np.sqrt(3.0)
    covered = 0
    for _ in range(tries):
        y = rng.standard_t(3, 100)
        found = metric_interval("rmse", y, np.zeros(100), level=level)
        covered += found.low <= truth <= found.high
    assert covered >= 0.92 * tries


def test_the_interval_of_a_light_tail_stays_narrow() -> None:
    y = np.random.default_rng(6).normal(size=400)
    found = metric_interval("rmse", y, np.zeros(400))
    half = 1.96 / np.sqrt(2 * 400)  # of the standard deviation of a normal sample, relative
    assert found.high / found.value - 1 < 1.35 * half
    assert 1 - found.low / found.value < 1.35 * half
    assert metric_interval("rmse", 1e150 * y, np.zeros(400)).high == pytest.approx(1e150 * found.high)
