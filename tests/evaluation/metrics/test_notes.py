"""Costs of each row's own, areas of several classes, deviances and maxima, against other computations."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from certifit import LinearModel
from certifit.losses import LOSSES, ZeroOne
from certifit.metrics import expected_cost, max_loss, mean_bernoulli_deviance, roc_auc


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_area_of_several_classes(multi_class: str) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 200)
    p = rng.dirichlet(np.ones(4), 200).round(2) + 0.5 * np.eye(4)[y]
    p /= p.sum(axis=1, keepdims=True)
    theirs = roc_auc_score(y, p, multi_class=multi_class, average="macro")
    np.testing.assert_allclose(roc_auc(y, p, multi_class=multi_class), theirs)
    times = rng.integers(0, 3, 200)
    repeated = roc_auc(np.repeat(y, times), np.repeat(p, times, axis=0), multi_class=multi_class)
    np.testing.assert_allclose(roc_auc(y, p, sample_weight=times, multi_class=multi_class), repeated)


def test_area_refuses_an_absent_class() -> None:
    with pytest.raises(ValueError, match="every class"):
        roc_auc([0, 1, 1], np.eye(3), classes=[0, 1, 2])
    with pytest.raises(ValueError, match="multi_class"):
        roc_auc([0, 1, 2], np.eye(3), multi_class="both")


def test_costs_of_each_row() -> None:
    rng = np.random.default_rng(1)
    y, said, costs = rng.integers(0, 3, 50), rng.integers(0, 3, 50), rng.random((50, 3, 3))
    weight = rng.integers(0, 3, 50)
    by_hand = sum(w * costs[i, y[i], said[i]] for i, w in enumerate(weight)) / weight.sum()
    np.testing.assert_allclose(expected_cost(y, said, costs, sample_weight=weight), by_hand)
    with pytest.raises(ValueError, match="of each row's own"):
        expected_cost(y, said, costs[:10])


def test_bernoulli_deviance_is_twice_the_log_loss() -> None:
    rng = np.random.default_rng(2)
    y, p = rng.integers(0, 2, 40), rng.random(40)
    np.testing.assert_allclose(mean_bernoulli_deviance(y, p), 2 * log_loss(y, p))
    assert mean_bernoulli_deviance([0.3], [0.3]) == 0.0
    with pytest.raises(ValueError, match="in \\[0, 1\\]"):
        mean_bernoulli_deviance([2.0], [0.5])


def test_maximum_of_any_loss() -> None:
    y, f = np.array([0.0, 1.0, 1.0]), np.array([0.5, -2.0, 3.0])
    for name in ("squared", "absolute", "logistic", "hinge", "poisson"):
        assert max_loss(y, f, loss=name) == LOSSES[name]().value(y, f).max()
    assert max_loss(y, f, loss="absolute", sample_weight=[1, 0, 1]) == 2.0


def test_zero_one_evaluates_and_lies_below_its_surrogates() -> None:
    f = np.linspace(-3, 3, 61)
    for label in (0.0, 1.0):
        y = np.full(61, label)
        loss = ZeroOne().value(y, f)
        assert (loss <= LOSSES["hinge"]().value(y, f)).all()
        assert (loss <= LOSSES["exponential"]().value(y, f)).all()
        assert (loss <= LOSSES["logistic"]().value(y, f) / np.log(2) + 1e-12).all()
    with pytest.raises(TypeError, match="no slope"):
        ZeroOne().derivative(y, f)
    with pytest.raises(ValueError, match="No solver minimizes"):
        LinearModel(ZeroOne()).fit(np.eye(3), [0, 1, 1])
