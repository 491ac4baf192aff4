"""Calibration curves against scikit-learn's, and intervals against statistics' own formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve as reference

from certifit.evaluation.decisions.calibration import calibration_curve, wilson


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.beta(1, 2, size=1000)
    return rng.random(1000) < p**1.5, p


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_bins_are_those_of_the_reference(data, strategy: str) -> None:  # type: ignore[no-untyped-def]
    y, p = data
    rate, mean = reference(y, p, n_bins=8, strategy=strategy)
    curve = calibration_curve(y, p, bins=8, strategy=strategy)
    np.testing.assert_allclose([one.mean for one in curve.bins], mean, atol=1e-12)
    np.testing.assert_allclose([one.rate for one in curve.bins], rate, atol=1e-12)
    count = np.array([one.count for one in curve.bins])
    assert count.sum() == 1000
    assert curve.error == pytest.approx(np.sum(count * np.abs(rate - mean)) / 1000)


@pytest.mark.parametrize(("k", "n"), [(0, 5), (5, 5), (3, 17), (400, 1000)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_wilson(k: int, n: int, level: float) -> None:
    expected = binomtest(k, n).proportion_ci(level, "wilson")
    assert wilson(k, n, level) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("method", ["wilson", "clopper-pearson"])
def test_intervals_cover_what_is_calibrated(method: str) -> None:
    rng = np.random.default_rng(1)
    hits = total = 0
    for _ in range(60):
        p = rng.uniform(size=400)
        curve = calibration_curve(rng.random(400) < p, p, method=method)
        hits += sum(one.low <= one.mean <= one.high for one in curve.bins)
        total += len(curve.bins)
    assert hits / total > 0.93


def test_miscalibration_is_seen(data) -> None:  # type: ignore[no-untyped-def]
    y, p = data
    assert calibration_curve(y, p).error > 2 * calibration_curve(y, p**1.5).error


def test_equal_probabilities_share_a_bin() -> None:
    curve = calibration_curve([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5])
    assert len(curve.bins) == 1
    assert curve.error == 0.0
    assert curve.as_dict()["bins"][0]["count"] == 4


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_weight_is_repetition(data, strategy: str) -> None:  # type: ignore[no-untyped-def]
    y, p = data[0][:60], data[1][:60]
    weight = np.random.default_rng(2).integers(0, 4, size=60)
    a = calibration_curve(y, p, strategy=strategy, sample_weight=weight)
    b = calibration_curve(np.repeat(y, weight), np.repeat(p, weight), strategy=strategy)
    assert a.error == pytest.approx(b.error)
    for one, two in zip(a.bins, b.bins, strict=True):
        assert (one.mean, one.rate, one.low, one.high, one.count) == pytest.approx(
            (two.mean, two.rate, two.low, two.high, two.count)
        )


def test_labels_of_any_type(data) -> None:  # type: ignore[no-untyped-def]
    y, p = data
    names = np.where(y, "yes", "no")
    assert calibration_curve(names, p) == calibration_curve(y, p)
    flipped = calibration_curve(names, 1 - p, classes=["yes", "no"])
    assert flipped.error == pytest.approx(calibration_curve(y, p).error, abs=0.02)


BAD = {
    "range": (lambda: calibration_curve([0, 1], [0.5, 1.2]), "from 0.5 to 1.2"),
    "bins": (lambda: calibration_curve([0, 1], [0.5, 0.2], bins=0), "bins"),
    "strategy": (lambda: calibration_curve([0, 1], [0.5, 0.2], strategy="k"), "strategy"),
    "method": (lambda: calibration_curve([0, 1], [0.5, 0.2], method="k"), "method"),
    "classes": (lambda: calibration_curve(["a", "b", "c"], [0.5, 0.2, 0.1]), "two classes"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_the_signature_of_scikit_learn(strategy: str) -> None:
    rng = np.random.default_rng(3)
    p = rng.uniform(size=200)
    y = np.where(rng.uniform(size=200) < p, "a", "b")  # "a", the first, is the one predicted
    shares, means = calibration_curve(y, p, pos_label="a", n_bins=8, strategy=strategy)
    theirs = reference(y, p, pos_label="a", n_bins=8, strategy=strategy)
    np.testing.assert_allclose(shares, theirs[0], atol=1e-12)
    np.testing.assert_allclose(means, theirs[1], atol=1e-12)
    by_name = calibration_curve(y_true=y, y_prob=p, pos_label="a", n_bins=8, strategy=strategy)
    assert all(np.array_equal(one, other) for one, other in zip(by_name, (shares, means), strict=True))
    with pytest.raises(TypeError, match="needs the labels"):
        calibration_curve(y)
    with pytest.raises(ValueError, match="pos_label='c' is not a valid label"):
        calibration_curve(y, p, pos_label="c")
    with pytest.raises(ValueError, match="n_bins must be"):
        calibration_curve(y, p, n_bins=0)
