"""A drop-in and the class it stands in for have the same answer, and the drop-in proves its own."""

from __future__ import annotations

import importlib
import warnings
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.optimize
from sklearn.utils.class_weight import compute_class_weight
from tests.grids import exhaustive
from tests.sklearn.every.settings import SAME_OPTIMUM, Draw

SETTINGS, DEFAULT = 50, 2
ACCURACY = 1e-5


def cases() -> list[Any]:
    return [
        pytest.param(
            draw, settings, seed, id=f"{draw.name}-{draw.target}-{seed}", marks=() if seed < DEFAULT else exhaustive
        )
        for draw in SAME_OPTIMUM
        for seed, settings in enumerate(draw.settings(SETTINGS))
    ]


def both(name: str) -> tuple[Any, Any]:
    module, _, cls = name.rpartition(".")
    theirs, ours = (
        getattr(importlib.import_module(f"{home}.{module}"), cls) for home in ("sklearn", "certifit.sklearn")
    )
    return theirs, ours


def tight(*arguments: Any, minimize: Any = scipy.optimize.minimize, **named: Any) -> Any:
    """SciPy's minimizer, which ends where steps lower the objective by less than one part in 10¹⁴ instead of 10⁹."""
    return minimize(*arguments, **{**named, "options": {"ftol": 1e-14, **named.get("options", {})}})


def fitted(cls: Any, settings: dict[str, Any], X: Any, y: Any, weight: Any) -> Any:
    """A model of scikit-learn at its optimum, where its solver needs help to get there."""
    model = cls(**settings)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    if settings.get("solver") != "saga" or "C" not in settings:
        with mock.patch.object(scipy.optimize, "minimize", tight):
            return model.fit(X, y, sample_weight=weight)
    # SAGA's step knows the size of the rows, not their weights, and is too long for large ones: the same problem with a
    # larger C and weights of at most one.
    weight = np.ones(len(y)) if weight is None else weight
    classes, codes = np.unique(y, return_inverse=True)
    by_class = compute_class_weight(settings["class_weight"], classes=classes, y=y, sample_weight=weight)
    largest = float((weight * by_class[codes]).max())
    model.set_params(C=settings["C"] * largest).fit(X, y, sample_weight=weight / largest)
    if not model.coef_.any():  # SAGA ends when no coefficient moves, wherever the intercepts are
        constant = cls(C=1e-12, class_weight=settings["class_weight"], tol=1e-10).fit(X, y, sample_weight=weight)
        model.intercept_ = constant.intercept_
    return model


def lead(scores: Any) -> Any:
    """How far the class that is predicted is ahead of the next one."""
    if scores.ndim == 1:
        return np.abs(scores)
    ordered = np.sort(scores, axis=1)
    return ordered[:, -1] - ordered[:, -2]


@pytest.mark.parametrize(("draw", "settings", "seed"), cases())
def test_the_optimum_is_that_of_scikit_learn(draw: Draw, settings: dict[str, Any], seed: int) -> None:
    X, y, weight = draw.data(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # their solvers complain about tolerances that ours reach
        their_class, our_class = both(draw.name)
        theirs = fitted(their_class, settings, X, y, weight)
        ours = our_class(**settings).fit(X, y, sample_weight=weight)
    assert ours.certificate_.kind == "none" or ours.certificate_.relative_gap < 1e-6
    near: dict[str, Any] = {"rtol": ACCURACY, "atol": ACCURACY * float(np.abs(theirs.coef_).max() + 1e-3)}
    np.testing.assert_allclose(ours.coef_, theirs.coef_, **near)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, **near)
    assert np.shape(ours.coef_) == np.shape(theirs.coef_)
    assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)
    told = {name for name in vars(theirs) if name.endswith("_") and not name.startswith("_")}
    assert {name for name in told if not hasattr(ours, name)} == set()
    near = {name: 20 * value for name, value in near.items()}
    if draw.target in ("real", "pair", "positive"):
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), **near)
        return
    scores = theirs.decision_function(X)
    np.testing.assert_allclose(ours.decision_function(X), scores, **near)
    # Optima of Crammer and Singer's loss have rows on its edges, where two classes have one score: rounding decides there.
    clear = lead(scores) > 2 * (near["atol"] + near["rtol"] * np.abs(scores).max())
    # Classes without coefficients, of one weight, have one score everywhere.
    constant = np.count_nonzero(~np.atleast_2d(theirs.coef_).any(axis=1))
    assert clear.mean() > 0.9 or constant > 1 or constant == len(theirs.coef_)
    np.testing.assert_array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])
