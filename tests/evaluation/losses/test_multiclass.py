"""Losses of K scores: derivatives, conjugates, best constants and extremes."""

from __future__ import annotations

import numpy as np
import pytest

from certifit import LinearModel, LogisticRegression, risk
from certifit.losses import MULTICLASS, Loss, MulticlassHinge, MulticlassPerceptron, Softmax

COSTS = np.array([[0.0, 1.0, 2.0, 1.0], [1.0, 0.0, 0.5, 1.0], [3.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]])
CASES: list[Loss] = [*(cls() for cls in MULTICLASS.values()), MulticlassHinge(COSTS), Softmax(n_classes=4)]


def data(seed: int = 0, n: int = 20) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    y[:4] = np.arange(4)
    return y, rng.normal(size=(n, 4)), rng.normal(size=(n, 4))


@pytest.mark.parametrize("loss", CASES, ids=repr)
def test_derivatives(loss: Loss) -> None:
    (y, f, z), t = data(), 1e-6
    assert loss.n_scores(y) == 4
    slope = (loss.value(y, f + t * z) - loss.value(y, f - t * z)) / (2 * t)
    np.testing.assert_allclose((loss.derivative(y, f) * z).sum(axis=1), slope, atol=1e-8)
    assert (loss.value(y, f) >= 0).all()
    np.testing.assert_allclose(loss.value(y, f + 7.0), loss.value(y, f), atol=1e-12)


@pytest.mark.parametrize("loss", [MulticlassHinge(), MulticlassHinge(COSTS), MulticlassPerceptron()], ids=repr)
def test_hinges_along_one_score(loss: MulticlassHinge) -> None:
    y, f, _ = data()
    for k in range(4):
        terms = loss.hinge_along(y, f, k)

        def along(at: np.ndarray, terms=terms) -> np.ndarray:
            above, below = np.maximum(at - terms.upper, 0), np.maximum(terms.lower - at, 0)
            return terms.slope_high * above + terms.slope_low * below

        for step in (-3.0, -0.4, 0.2, 2.5):
            moved = f.copy()
            moved[:, k] += step
            rise = along(moved[:, k]) - along(f[:, k])
            np.testing.assert_allclose(loss.value(y, moved) - loss.value(y, f), rise, atol=1e-12)


@pytest.mark.parametrize("loss", CASES, ids=repr)
def test_conjugate(loss: Loss) -> None:
    y, f, other = data()
    u = loss.derivative(y, f)
    # Fenchel-Young: equality at the gradient, inequality elsewhere, infinity outside the simplex.
    np.testing.assert_allclose(loss.conjugate(y, u), (u * f).sum(axis=1) - loss.value(y, f), atol=1e-13)
    for scale in (1.0, 0.3):
        lower = (scale * u * other).sum(axis=1) - loss.value(y, other)
        assert (loss.conjugate(y, scale * u) >= lower - 1e-13).all()
    assert np.isinf(loss.conjugate(y, u + 0.1)).all()
    assert np.isinf(loss.conjugate(np.array([0]), np.array([[0.5, -0.5, 0.0, 0.0]]))).all()
    low, high = loss.dual_domain(y)
    assert (u >= low).all()
    assert (u <= high).all()


@pytest.mark.parametrize("loss", CASES, ids=repr)
def test_best_constant(loss: Loss) -> None:
    y, _, other = data(1)
    weight = np.random.default_rng(2).integers(1, 5, y.shape[0]).astype(float)
    c = loss.optimal_constant(y, weight)
    assert c.shape == (4,)
    assert c.sum() == pytest.approx(0.0, abs=1e-12)
    best = weight @ loss.value(y, np.tile(c, (y.shape[0], 1)))
    for size in (1.0, 0.1, 0.001):
        for step in other:
            assert weight @ loss.value(y, np.tile(c + size * step, (y.shape[0], 1))) >= best - 1e-9


def test_curvature_of_softmax() -> None:
    (y, f, z), loss, t = data(), Softmax(), 1e-6
    bend = (loss.derivative(y, f + t * z) - loss.derivative(y, f - t * z)) / (2 * t)
    theta, h = loss.slopes(y, f)
    np.testing.assert_array_equal(theta, loss.derivative(y, f))
    np.testing.assert_allclose(h * z, bend, atol=1e-8)
    np.testing.assert_allclose(loss.hessian_product(f, z), bend, atol=1e-8)
    np.testing.assert_allclose((h + 0.5) * z, bend + 0.5 * z, atol=1e-8)
    unit = np.eye(4)[1]
    np.testing.assert_allclose(loss.second_derivative(y, f)[:, 1], (h * unit)[:, 1], atol=1e-14)
    p = np.full(20, 0.05)
    np.testing.assert_allclose(h.mean(p) @ unit, p @ (h * unit), atol=1e-14)


def test_soft_labels_of_softmax() -> None:
    y, f, z = data()
    loss, hard = Softmax(), np.eye(4)[y]
    for name in ("value", "derivative", "second_derivative"):
        np.testing.assert_allclose(getattr(loss, name)(hard, f), getattr(loss, name)(y, f), atol=1e-14)
    soft = loss.predict(z)
    np.testing.assert_allclose(loss.value(soft, z), 0.0, atol=1e-14)  # normalized: no loss at the log probabilities
    np.testing.assert_allclose(loss.derivative(soft, z), 0.0, atol=1e-14)
    assert (loss.value(soft, f) > 0).all()
    u = loss.derivative(soft, f)
    np.testing.assert_allclose(loss.conjugate(soft, u), (u * f).sum(axis=1) - loss.value(soft, f), atol=1e-13)
    c = loss.optimal_constant(soft, np.ones(20))
    np.testing.assert_allclose(loss.predict(c[None])[0], soft.mean(axis=0), atol=1e-12)
    with pytest.raises(ValueError, match="row 1"):
        loss.check_target(np.array([[0.5, 0.5], [0.7, 0.7]]))


@pytest.mark.parametrize("size", [1e150, 1e-150])
@pytest.mark.parametrize("loss", CASES, ids=repr)
def test_extremes(loss: Loss, size: float) -> None:
    f, y = size * np.array([[1.0, 0.0, -1.0, 0.0], [-1.0, 0.5, 1.0, 0.0]]), np.array([2, 2])
    for values in (loss.value(y, f), loss.derivative(y, f)):
        assert np.isfinite(values).all()
    assert (loss.value(y, f) >= 0).all()


def test_the_risk_of_a_classifier() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = np.array(["a", "b", "c"])[(X @ rng.normal(size=(2, 3)) + rng.gumbel(size=(90, 3))).argmax(axis=1)]
    model = LogisticRegression().fit(X, y)
    scores, codes = model.decision_function(X), np.searchsorted(model.classes_, y)
    for loss in ("multiclass_hinge", MulticlassPerceptron()):
        made = MULTICLASS[loss]() if isinstance(loss, str) else loss
        bound = (0.0, 50.0)
        assert risk(model, X, y, loss=loss, bound=bound).value == pytest.approx(made.value(codes, scores).mean())
    two = LogisticRegression().fit(X, y == "a")
    wanted = np.maximum(0.0, 1.0 - np.where(y == "a", 1, -1) * two.decision_function(X)).mean()
    assert risk(two, X, y == "a", loss=MulticlassHinge(), bound=(0.0, 50.0)).value == pytest.approx(wanted)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="one score a row"):
        LinearModel(loss=Softmax()).fit(np.eye(3), np.arange(3.0))
    with pytest.raises(ValueError, match="square table"):
        MulticlassHinge([[0.0, 1.0], [1.0, 1.0]])
