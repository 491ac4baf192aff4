"""Kernel logistic regression of two classes and more against an independent solver and the linear model."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contract.objectives import SoftmaxObjective
from tests.models.kernel.test_model import root
from tests.oracles import convex

from certifit import KernelLogisticRegression, LogisticRegression
from certifit.kernels import RBF, Linear


def data(classes: int, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(n, 2))
    return X, np.digitize(X[:, 0] ** 2 + X[:, 1] + 0.3 * rng.normal(size=n), np.linspace(0.0, 1.5, classes - 1))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("alpha", [1e-1, 1e-4])
def test_the_certificate_is_true(classes: int, alpha: float) -> None:
    X, y = data(classes)
    model = KernelLogisticRegression(kernel=RBF(gamma=0.5), alpha=alpha).fit(X, y)
    features = root(RBF(gamma=0.5)(X))
    if classes == 2:
        optimum, _, _ = convex.optimum(features, y.astype(float), None, "logistic", "l2", alpha, None, True)
    else:
        optimum = SoftmaxObjective("l2", alpha).optimum(features, y, None, True)
    assert model.certificate_.certified
    assert model.certificate_.bound <= optimum + 1e-7
    assert model.certificate_.objective >= optimum - 1e-7


@pytest.mark.parametrize("classes", [2, 3])
def test_a_linear_kernel_is_the_linear_model(classes: int) -> None:
    X, y = data(classes)
    ours = KernelLogisticRegression(kernel=Linear(), alpha=0.01, tol=1e-12).fit(X, y, sample_weight=1.0 + y)
    line = LogisticRegression(alpha=0.01, tol=1e-12).fit(X, y, sample_weight=1.0 + y)
    np.testing.assert_allclose(ours.predict_proba(X), line.predict_proba(X), atol=1e-5)


def test_curved_classes_are_told_apart() -> None:
    X, y = data(3, 300)
    names = np.array(["low", "middle", "high"])[y]
    model = KernelLogisticRegression(alpha=1e-4, class_weight="balanced").fit(X, names)
    assert model.score(X, names) > 0.85 > LogisticRegression().fit(X, names).score(X, names)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


def test_more_rows_than_a_factor_in_double_precision() -> None:
    X, y = data(2, 1500)
    model = KernelLogisticRegression(kernel=RBF(gamma=0.5), alpha=1e-5).fit(X, y)
    few = KernelLogisticRegression(
        kernel=RBF(gamma=0.5), alpha=1e-5, approximation="nystrom", n_components=200, random_state=0
    ).fit(X, y)
    assert model.certificate_.certified
    assert model.certificate_.bound <= few.certificate_.objective
    assert few.certificate_.objective == pytest.approx(model.certificate_.objective, rel=1e-3)
