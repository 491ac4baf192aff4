"""Paired comparisons against textbook tests, and their error rates by simulation."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, permutation_test, ttest_rel

from certifit.evaluation.metrics.registry import METRICS
from certifit.evaluation.risk.comparison import Comparison, Pair, compare, compare_metric


def losses(seed: int, n: int, shifts: dict[str, float], own: float = 0.3) -> dict[str, np.ndarray]:
    """Losses that share the difficulty of the rows."""
    rng = np.random.default_rng(seed)
    common = rng.exponential(size=n)
    return {name: common + shift + own * rng.normal(size=n) for name, shift in shifts.items()}


def test_two_models_are_the_paired_t_test() -> None:
    made = losses(0, 100, {"a": 0.0, "b": 0.1})
    pair = compare(made).pair("a", "b")
    theirs = ttest_rel(made["a"], made["b"])
    ends = theirs.confidence_interval(0.95)
    assert pair.difference == pytest.approx(made["a"].mean() - made["b"].mean())
    assert pair.p == pair.p_adjusted == pytest.approx(theirs.pvalue)
    assert (pair.low, pair.high) == pytest.approx((ends.low, ends.high))
    assert pair.distinguishable == (theirs.pvalue < 0.05)


def test_few_rows_must_pass_the_sign_flips_too() -> None:
    made = {"a": np.array([0.1, 0.2, 0.1, 0.15, 0.12, 0.3]), "b": np.array([0.5, 0.9, 0.6, 0.5, 0.55, 0.9])}
    pair = compare(made).pair("a", "b")

    def mean(x: np.ndarray, axis: int) -> np.ndarray:
        return x.mean(axis=axis)

    flips = permutation_test((made["a"] - made["b"],), mean, permutation_type="samples", n_resamples=np.inf)
    student = ttest_rel(made["a"], made["b"]).pvalue
    assert pair.p == pytest.approx(flips.pvalue) == 2 / 2**6
    assert student < pair.p
    assert pair.high < 0  # the interval says what p says
    strict = compare(made, level=0.99).pair("a", "b")
    assert not strict.distinguishable
    assert strict.low < 0 < strict.high


def test_a_pair_is_true_when_the_difference_is_real() -> None:
    found = compare(losses(0, 200, {"a": 0.0, "b": 0.0, "c": 0.5}))
    assert found.pair("a", "c")
    assert found.pair("c", "a")
    assert not found.pair("a", "b")


def test_equal_differences_in_few_rows_prove_little() -> None:
    pair = compare({"a": np.array([0.5, 1.5, 3.5]), "b": np.array([1.0, 2.0, 4.0])}).pair("a", "b")
    assert pair.p == 0.25
    assert pair.low < 0 < pair.high
    many = compare({"a": np.zeros(100) + 0.5, "b": np.ones(100) * 0.75}).pair("a", "b")
    assert many.p == 0.0
    assert many.low == many.high == -0.25


@pytest.mark.parametrize(("worse", "better", "same"), [(0, 3, 20), (2, 15, 60), (30, 31, 100), (1, 0, 50), (5, 25, 4)])
def test_zero_one_losses_are_mcnemar(worse: int, better: int, same: int) -> None:
    a = np.r_[np.ones(worse), np.zeros(better), np.zeros(same), np.ones(same)]
    b = np.r_[np.zeros(worse), np.ones(better), np.zeros(same), np.ones(same)]
    pair = compare({"a": a, "b": b}).pair("a", "b")
    exact = binomtest(worse, worse + better).pvalue
    assert pair.p == pytest.approx(max(exact, ttest_rel(a, b).pvalue))
    assert pair.difference == pytest.approx((worse - better) / a.size)
    assert -1 <= pair.low <= pair.difference <= pair.high <= 1
    assert (pair.low <= 0 <= pair.high) == (not pair.distinguishable)


def test_holm_and_bonferroni_by_hand() -> None:
    made = losses(1, 200, {"a": 0.0, "b": 0.03, "c": 0.07, "d": 0.3})
    found = {how: compare(made, correction=how) for how in ("holm", "bonferroni", "none")}
    p = np.array([pair.p for pair in found["none"].pairs])
    np.testing.assert_allclose([pair.p_adjusted for pair in found["none"].pairs], p)
    np.testing.assert_allclose([pair.p_adjusted for pair in found["bonferroni"].pairs], np.minimum(6 * p, 1))
    running, expected = 0.0, np.empty(6)
    for step, k in enumerate(np.argsort(p)):
        running = max(running, (6 - step) * p[k])
        expected[k] = min(running, 1.0)
    np.testing.assert_allclose([pair.p_adjusted for pair in found["holm"].pairs], expected)
    widths = {how: np.array([pair.high - pair.low for pair in one.pairs]) for how, one in found.items()}
    assert (widths["none"] <= widths["holm"] + 1e-12).all()
    assert (widths["holm"] <= widths["bonferroni"] + 1e-12).all()


@given(
    st.integers(0, 10_000),
    st.integers(2, 60),
    st.sampled_from(["holm", "bonferroni", "none"]),
    st.sampled_from([0.0, 0.1, 0.5]),
    st.booleans(),
)
def test_interval_and_verdict_agree(seed: int, n: int, correction: str, shift: float, binary: bool) -> None:
    made = losses(seed, n, {"a": 0.0, "b": shift, "c": 2 * shift})
    if binary:
        made = {name: (values > 1).astype(float) for name, values in made.items()}
    found = compare(made, correction=correction)
    assert [found.values[name] for name in found.names] == sorted(found.values.values())
    for pair in found.pairs:
        assert 0 <= pair.p <= pair.p_adjusted <= 1
        assert pair.low <= pair.difference <= pair.high
        assert pair.difference <= 0
        assert pair.distinguishable == (pair.p_adjusted < 1 - found.level)
        assert (pair.low <= 0 <= pair.high) == (not pair.distinguishable)


def test_family_wise_error() -> None:
    """Five equal models: the chance that any two are told apart stays at 5 %."""
    false = {"holm": 0, "bonferroni": 0, "none": 0}
    for seed in range(300):
        made = losses(seed, 50, dict.fromkeys("abcde", 0.0))
        for correction in false:
            false[correction] += any(pair.distinguishable for pair in compare(made, correction=correction).pairs)
    # 5 % of 300 is 15, with a standard deviation below 4.
    assert false["bonferroni"] <= false["holm"] <= 24
    assert false["none"] > 40


def test_family_wise_error_of_error_rates() -> None:
    false = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        hard = rng.random(80)
        made = {name: (rng.random(80) < 0.4 * hard).astype(float) for name in "abcd"}
        false += any(pair.distinguishable for pair in compare(made).pairs)
    assert false <= 16


def test_groups_are_the_units() -> None:
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(12), 50)
    effect = np.repeat(rng.normal(size=12), 50)
    made = {"a": rng.normal(size=600) + effect, "b": rng.normal(size=600)}
    rows, clustered = compare(made).pair("a", "b"), compare(made, groups=groups).pair("a", "b")
    assert clustered.high - clustered.low > 3 * (rows.high - rows.low)
    difference = (made["a"] - made["b"]).reshape(12, 50).mean(axis=1)
    student = ttest_rel(difference, np.zeros(12))
    assert clustered.p == pytest.approx(student.pvalue, rel=0.15)
    names = np.array([f"day {g}" for g in groups])
    assert compare(made, groups=names).pair("a", "b").p == pytest.approx(clustered.p)


def test_false_alarms_with_groups() -> None:
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        effect = np.repeat(rng.normal(size=15), 10)
        made = {"a": rng.normal(size=150) + effect, "b": rng.normal(size=150)}
        alarms += compare(made, groups=np.repeat(np.arange(15), 10)).pairs[0].distinguishable
    assert alarms <= 20


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("n", [8, 100])
def test_weight_is_repetition(n: int, binary: bool) -> None:
    made = losses(3, n, {"a": 0.0, "b": 0.2, "c": 0.4})
    if binary:
        made = {name: (values > 1).astype(float) for name, values in made.items()}
    weight = np.random.default_rng(3).integers(0, 4, size=n)
    rows = np.repeat(np.arange(n), weight)
    a = compare(made, sample_weight=weight)
    b = compare({name: values[rows] for name, values in made.items()})
    for one, two in zip(a.pairs, b.pairs, strict=True):
        assert (one.difference, one.low, one.high, one.p) == pytest.approx((two.difference, two.low, two.high, two.p))


def test_identical_models_are_tied() -> None:
    values = np.random.default_rng(4).exponential(size=30)
    found = compare({"a": values, "b": values.copy()})
    assert found.pairs == (Pair("a", "b", 0.0, 0.0, 0.0, 1.0, 1.0, False),)
    y = np.arange(40) % 2
    score = np.random.default_rng(5).normal(size=40)
    for metric in ("roc_auc", "average_precision", "rmse", "log_loss", "f1"):
        prediction = {"rmse": score, "f1": (score > 0).astype(int), "log_loss": np.full(40, 0.3)}.get(metric, score)
        pair = compare_metric(metric, y, {"a": prediction, "b": prediction}).pairs[0]
        assert (pair.p, pair.difference, pair.distinguishable) == (1.0, 0.0, False), metric


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_rounding_is_no_difference(scale: float) -> None:
    losses = scale * np.random.default_rng(0).exponential(size=2000)
    found = compare({"a": losses, "b": losses * (1 + 1e-14), "c": losses * (1 + 1e-6)})
    assert found.pair("a", "b").difference == 0.0
    assert found.pair("a", "b").p == 1.0
    assert not found.pair("a", "b").distinguishable
    assert found.pair("a", "c").distinguishable  # little, but the same in every row


def test_metrics_that_differ_by_rounding_are_equal() -> None:
    y = np.random.default_rng(0).normal(size=500)
    found = compare_metric("rmse", y, {"a": 0.5 * y, "b": 0.5 * y * (1 + 2e-15)})
    assert found.values["a"] != found.values["b"]
    assert not found.pair("a", "b").distinguishable


def test_one_row_says_nothing() -> None:
    pair = compare({"a": [0.2], "b": [0.9]}).pairs[0]
    assert pair.p == 1.0
    assert (pair.low, pair.high) == (-np.inf, np.inf)


def verdicts(order: str, apart: set[tuple[str, str]]) -> Comparison:
    pairs = tuple(Pair(a, b, -0.1, -0.2, 0.1, 0.5, 0.5, (a, b) in apart) for a, b in combinations(order, 2))
    return Comparison(tuple(order), dict.fromkeys(order, 0.1), pairs, 0.95, "holm", True)


def test_the_sentence() -> None:
    assert verdicts("a", set()).text == "a is the only model."
    assert verdicts("ab", {("a", "b")}).text == "a is better than b."
    assert verdicts("abc", {("a", "b"), ("a", "c")}).text == "a is better than all others."
    assert verdicts("ab", set()).text == "The two cannot be told apart."
    assert verdicts("abcde", set()).text == "The five cannot be told apart."
    assert verdicts("abcd", {("a", "d"), ("b", "d")}).text == "The first three cannot be told apart."
    assert verdicts("abc", {("a", "b")}).text == "a cannot be told apart from c."
    assert verdicts("abcd", {("a", "d"), ("b", "c")}).text == "a cannot be told apart from b and c."
    found = verdicts("abc", {("a", "c")})
    assert (found.best, found.tied_with_best, found.tied) == ("a", ("b",), ("a", "b"))
    assert verdicts("ab", {("a", "b")}).describe({"a": "Boosting", "b": "Ridge"}) == "Boosting is better than Ridge."
    assert found.against_best("a") is None
    assert found.against_best("c") == Pair("c", "a", 0.1, -0.1, 0.2, 0.5, 0.5, True)
    assert found.as_dict()["tied"] == ["a", "b"]
    with pytest.raises(KeyError, match="'a', 'b', 'c'"):
        found.pair("a", "z")


def test_gains_are_turned_around() -> None:
    made = losses(6, 80, {"a": 0.0, "b": 1.0})
    assert compare(made).best == "a"
    assert compare(made, lower_is_better=False).best == "b"
    y = np.arange(50) % 2
    assert compare_metric("accuracy", y, {"bad": 1 - y, "good": y}).best == "good"


def test_means_go_through_compare() -> None:
    rng = np.random.default_rng(7)
    y = np.array(["no", "yes"])[rng.integers(2, size=100)]
    p = {"a": rng.uniform(0.3, 0.7, size=100), "b": rng.uniform(0.1, 0.9, size=100)}
    direct = compare({name: METRICS["log_loss"].losses(y, one) for name, one in p.items()})
    assert compare_metric("log_loss", y, p) == direct


def test_areas_against_delong_by_hand() -> None:
    """Covariance of two areas from all pairs of a positive and a negative row."""
    rng = np.random.default_rng(8)
    y = np.arange(60) < 25
    scores = {"a": np.round(rng.normal(size=60) + y, 1), "b": np.round(rng.normal(size=60) + 0.4 * y, 1)}
    kernel = {}
    for name, s in scores.items():
        above = s[y][:, None] - s[~y][None, :]
        kernel[name] = (above > 0) + 0.5 * (above == 0)
    d = kernel["a"] - kernel["b"]
    variance = d.mean(axis=1).var(ddof=1) / 25 + d.mean(axis=0).var(ddof=1) / 35
    pair = compare_metric("roc_auc", y, scores).pair("a", "b")
    assert pair.difference == pytest.approx(d.mean())
    assert (pair.high - pair.low) / 2 == pytest.approx(2.001 * np.sqrt(variance), rel=1e-3)


@pytest.mark.parametrize("metric", ["roc_auc", "rmse", "average_precision"])
def test_metrics_that_are_no_means(metric: str) -> None:
    alarms = power = 0
    repeats = 60 if metric != "average_precision" else 10  # each costs 400 resamples by call
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        y = (rng.random(150) < 0.4).astype(float)
        scores = {"a": y + rng.normal(size=150), "b": y + rng.normal(size=150), "bad": rng.normal(size=150) * 3}
        found = compare_metric(metric, y, scores)
        alarms += found.pair("a", "b").distinguishable
        power += found.pair("a", "bad").distinguishable
    assert alarms <= max(2, 0.12 * repeats)
    assert power >= 0.8 * repeats


@pytest.mark.parametrize("metric", ["roc_auc", "rmse"])
def test_rows_of_weight_zero_have_no_say(metric: str) -> None:
    rng = np.random.default_rng(9)
    y = (np.arange(40) % 2).astype(float)
    scores = {"a": y + rng.normal(size=40), "b": rng.normal(size=40)}
    weight = np.r_[np.ones(30), np.zeros(10)]
    a = compare_metric(metric, y, scores, sample_weight=weight)
    b = compare_metric(metric, y[:30], {name: s[:30] for name, s in scores.items()})
    assert a.pairs[0].p == pytest.approx(b.pairs[0].p)


BAD = {
    "nothing": (lambda: compare({}), "mapping"),
    "array": (lambda: compare(np.ones((2, 3))), "mapping"),
    "lengths": (lambda: compare({"a": [1, 2], "b": [1]}), r"losses\['b'\] has 1 rows, others 2"),
    "nan": (lambda: compare({"a": [1, np.nan]}), r"losses\['a'\] must be finite"),
    "correction": (lambda: compare({"a": [1, 2], "b": [2, 1]}, correction="tukey"), "correction must be one of"),
    "groups": (lambda: compare({"a": [1, 2], "b": [2, 1]}, groups=[1]), "groups"),
    "level": (lambda: compare({"a": [1, 2]}, level=0), "level"),
    "no predictions": (lambda: compare_metric("rmse", [1, 2], {}), "predictions must be a mapping"),
    "rows": (lambda: compare_metric("rmse", [1, 2], {"a": [1]}), r"predictions\['a'\].*2 rows"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        call()
