"""A drop-in and the class it stands in for have the same answer, and the drop-in proves its own."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest
from tests.grids import exhaustive
from tests.sklearn.settings import SAME_OPTIMUM, Draw

SETTINGS, DEFAULT = 50, 2


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


@pytest.mark.parametrize(("draw", "settings", "seed"), cases())
def test_the_optimum_is_that_of_scikit_learn(draw: Draw, settings: dict[str, Any], seed: int) -> None:
    X, y, weight = draw.data(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # their solvers complain about tolerances that ours reach
        theirs, ours = (cls(**settings).fit(X, y, sample_weight=weight) for cls in both(draw.name))
    assert ours.certificate_.kind == "none" or ours.certificate_.relative_gap < 1e-6
    near = {"rtol": draw.accuracy, "atol": draw.accuracy * float(np.abs(theirs.coef_).max() + 1e-3)}
    np.testing.assert_allclose(ours.coef_, theirs.coef_, **near)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, **near)
    assert np.shape(ours.coef_) == np.shape(theirs.coef_)
    assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)
    told = {name for name in vars(theirs) if name.endswith("_") and not name.startswith("_")}
    assert told - set(vars(ours)) <= {"rank_", "singular_"}
    if draw.target in ("real", "positive"):
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=20 * draw.accuracy, atol=20 * near["atol"])
    else:
        assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.98
