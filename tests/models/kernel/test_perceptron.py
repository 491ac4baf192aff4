"""The perceptron of a kernel: Novikoff's bound, the linear case, and rows that nothing separates."""

from __future__ import annotations

import numpy as np
import pytest

from certifit import KernelPerceptron
from certifit.kernels import RBF, Linear, Polynomial


def rings(n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    radius = np.repeat([1.0, 2.0], n // 2)
    angle = rng.uniform(0.0, 2 * np.pi, size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), (radius > 1.5).astype(int)


@pytest.mark.parametrize("kernel", [RBF(gamma=1.0), Polynomial(degree=2, gamma=1.0)], ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_mistakes_stay_below_their_bound(kernel: object, fit_intercept: bool) -> None:
    X, y = rings()
    model = KernelPerceptron(kernel=kernel, fit_intercept=fit_intercept, random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.certificate_.kind == "witness"
    assert model.certificate_.certified
    assert 0 < model.n_mistakes_ <= model.mistake_bound_ < np.inf
    assert np.abs(model.dual_coef_).sum() == model.n_mistakes_


def test_more_classes_are_learned_against_the_rest() -> None:
    X, y = rings()
    names = np.array(["in", "left", "right"])[y * (1 + (X[:, 0] > 0))]
    model = KernelPerceptron(kernel=RBF(gamma=2.0), random_state=0).fit(X, names)
    assert model.score(X, names) == 1.0
    assert (model.n_mistakes_ <= model.mistake_bound_).all()


def test_what_no_plane_separates_has_no_certificate() -> None:
    X, y = rings()
    model = KernelPerceptron(kernel=Linear(), max_iter=20, random_state=0).fit(X, y)
    assert model.certificate_.kind == "none"
    assert model.mistake_bound_ == np.inf


def test_columns_are_computed_where_memory_does_not_hold_them(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rings()
    wanted = KernelPerceptron(random_state=0).fit(X, y)
    monkeypatch.setattr("certifit.models.kernel.perceptron.MOST_ROWS", 10)
    found = KernelPerceptron(random_state=0).fit(X, y)
    np.testing.assert_allclose(found.decision_function(X), wanted.decision_function(X), rtol=1e-9)
