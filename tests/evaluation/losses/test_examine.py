"""What `certifit.losses.check` tells an author, and what a fit says to a loss it cannot use."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.evaluation.user_losses import USER_LOSSES, LogCosh

from certifit import BoostedTrees, LinearModel, SGDRegressor
from certifit.losses import LOSSES, MULTICLASS, Huber, Loss, Squared, check

X = np.random.default_rng(0).normal(size=(30, 2))
Y = X @ [1.0, -1.0] + np.random.default_rng(1).normal(size=30)


class Plain(Loss):
    """½r², as a user may write it; the faulty ones below change one thing each."""

    convex = True

    def value(self, y: Any, f: Any) -> Any:
        return 0.5 * (f - y) ** 2

    def derivative(self, y: Any, f: Any) -> Any:
        return f - y

    def second_derivative(self, y: Any, f: Any) -> Any:
        return np.ones_like(f)


def faulty(**methods: Any) -> Loss:
    return type("Faulty", (Plain,), {"convex": True, **methods})()


@pytest.mark.parametrize("loss", [*(cls() for cls in (*LOSSES.values(), *MULTICLASS.values())), *USER_LOSSES], ids=repr)
def test_nothing_is_wrong_with_losses_that_are_right(loss: Loss) -> None:
    report = check(loss)
    assert report, str(report)
    assert "nothing wrong" in str(report)


@pytest.mark.parametrize(
    ("methods", "finding"),
    [
        ({"value": lambda self, y, f: float(np.mean((f - y) ** 2))}, "value returns a single number"),
        ({"derivative": lambda self, y, f: (f - y)[:, None]}, r"derivative returns an array of shape \(175, 1\)"),
        ({"derivative": lambda self, y, f: (f - y).astype(int)}, "derivative returns int64 instead"),
        ({"second_derivative": lambda self, y, f: [1.0] * len(f)}, "second_derivative returns list instead"),
        ({"value": lambda self, y, f: np.log(f - y)}, "value is nan"),
        ({"value": lambda self, y, f: undefined(y)}, "value raises NameError"),
        ({"value": lambda self, y, f: in_place(y, f)}, "value changes its arguments"),
        ({"derivative": lambda self, y, f: 2.0 * (f - y)}, "derivative is not the slope of value"),
        ({"second_derivative": lambda self, y, f: 3.0 + 0.0 * f}, "second_derivative is not the slope of derivative"),
        ({"convex": False}, "Convexity is not declared"),
        ({"value": lambda self, y, f: 0.5 * (f - y) ** 2 + 1.0}, "least value over f is 1"),
        ({"value": lambda self, y, f: 0.5 * (f - y) ** 2 - 1.0}, "value is negative"),
        ({"conjugate": lambda self, y, u, start=None: u * y}, "conjugate is too small"),
        ({"rescaled": lambda self, unit: (self, unit)}, "rescaled"),
        ({"check_target": lambda self, y: refuse()}, "refuses all targets"),
    ],
)
def test_every_fault_has_its_sentence(methods: dict[str, Any], finding: str) -> None:
    report = check(faulty(**methods))
    assert not report
    assert re.search(finding, str(report)), str(report)


def undefined(y: Any) -> Any:
    raise NameError("name 'residual' is not defined")


def in_place(y: Any, f: Any) -> Any:
    f -= y
    return 0.5 * f**2


def refuse() -> None:
    raise ValueError("no")


def test_a_loss_that_bends_down_is_told_apart() -> None:
    def value(self: Any, y: Any, f: Any) -> Any:
        return np.log1p((f - y) ** 2)

    def derivative(self: Any, y: Any, f: Any) -> Any:
        return 2 * (f - y) / (1 + (f - y) ** 2)

    def second_derivative(self: Any, y: Any, f: Any) -> Any:
        return 2 * (1 - (f - y) ** 2) / (1 + (f - y) ** 2) ** 2

    methods = {"value": value, "derivative": derivative, "second_derivative": second_derivative}
    assert "declares that it is convex, but its second derivative is negative" in str(check(faulty(**methods)))
    assert "It is not convex, and fits will have no certificate" in str(check(faulty(**methods, convex=False)))


def test_targets_may_be_given() -> None:
    class Rates(Huber):
        convex = True

        def check_target(self, y: Any) -> None:
            if (y < 1000).any():
                raise ValueError("y must be at least 1000")

    assert "refuses all targets" in str(check(Rates()))
    assert check(Rates(), y=[1000.0, 2000.0])
    with pytest.raises(ValueError, match="at least 1000"):
        check(Rates(), y=[1.0])
    with pytest.raises(TypeError, match="instance"):
        check(Squared)  # type: ignore[arg-type]


def test_lost_arguments_are_a_finding() -> None:
    class Forgets(Plain):
        def __init__(self, delta: float = 1.0) -> None:
            self.d = delta

    assert "keep constructor arguments" in str(check(Forgets()))


@pytest.mark.parametrize(
    "model", [LinearModel, lambda loss: SGDRegressor(loss=loss), lambda loss: BoostedTrees(loss=loss)]
)
def test_a_fit_names_the_method_that_is_wrong(model: Any) -> None:
    scalar = faulty(value=lambda self, y, f: float(np.mean((f - y) ** 2)))
    with pytest.raises(ValueError, match="Faulty cannot be fitted: value returns a single number"):
        model(scalar).fit(X, Y)
    flat = faulty(derivative=lambda self, y, f: np.zeros(5))
    with pytest.raises(ValueError, match=r"derivative returns an array of shape \(5,\)"):
        model(flat).fit(X, Y)


def test_the_word_of_a_convex_loss_is_not_inherited_by_another_formula() -> None:
    class Renamed(LogCosh):
        """Nothing but another name."""

    class Changed(LogCosh):
        def value(self, y: Any, f: Any) -> Any:
            return np.sqrt(np.abs(f - y))

    assert LinearModel(Renamed(), alpha=0.1).fit(X, Y).certificate_
    certificate = LinearModel(Changed(), alpha=0.1).fit(X, Y).certificate_
    assert certificate.kind == "none"
    assert "does not declare its convexity" in certificate.note
    assert not certificate
