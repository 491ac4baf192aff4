"""Every estimator survives a round trip through a file, to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from tests.contract.data import fit, make, reference, unbothered
from tests.contract.discovery import Case, parametrize

from certifit.persistence import inspect_file, load, save

METHODS = ("predict", "predict_proba", "decision_function", "transform", "apply")


def outputs(estimator: Any, X: Any) -> dict[str, Any]:
    """Everything the fitted model says about rows."""
    found = {}
    for name in METHODS:
        if hasattr(estimator, name):
            result = getattr(estimator, name)(X)
            found[name] = result.toarray() if sp.issparse(result) else np.asarray(result)
    return found


def assert_bit_equal(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert value.dtype == second[name].dtype, name
        assert value.shape == second[name].shape, name
        np.testing.assert_array_equal(value, second[name], err_msg=name)


def round_trip(model: Any, X: Any, folder: Path) -> tuple[Any, dict[str, Any]]:
    """A fitted model that came back from a file, and what it said before."""
    before = outputs(model, X)  # also fills whatever the model computes on demand
    path = save(model, folder / "model.cfit")
    twin = load(path)
    assert type(twin) is type(model)
    assert_bit_equal(outputs(twin, X), before)
    assert repr(twin.get_params()) == repr(model.get_params())
    if hasattr(model, "certificate_"):
        assert twin.certificate_ == model.certificate_
    assert save(twin, folder / "again.cfit").read_bytes() == path.read_bytes()
    return twin, before


@parametrize()
def test_fitted(case: Case, tmp_path: Path) -> None:
    one = reference(case)
    twin, before = round_trip(one.model, one.X, tmp_path)
    with unbothered():
        assert_bit_equal(outputs(fit(clone(twin), one.X, one.y), one.X), before)


@parametrize(one_each=True)
def test_fitted_on_single_precision(case: Case, tmp_path: Path) -> None:
    X, y = make(case)
    X = X.astype(np.float32)
    with unbothered():
        model = fit(case.build(random_state=0), X, y)
        twin, before = round_trip(model, X, tmp_path)
        assert_bit_equal(outputs(fit(twin, X, y), X), before)


@parametrize()
def test_not_fitted(case: Case, tmp_path: Path) -> None:
    model = case.build(random_state=0)
    path = save(model, tmp_path / "model.cfit")
    twin = load(path)
    assert repr(twin) == repr(model)
    assert vars(twin).keys() == vars(model).keys()
    assert repr(twin.get_params()) == repr(model.get_params())
    found = inspect_file(path)
    assert found.model.rpartition(".")[2] == case.cls.__name__
    assert found.parameters.keys() == model.get_params(deep=False).keys()
    assert not found.fitted
