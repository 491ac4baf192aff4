"""A plugin of pytest: scikit-learn's tests with the drop-ins in place, and which of them each test has fitted."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import certifit.sklearn
import certifit.sklearn.manifold
from certifit.sklearn import translation


def pytest_configure() -> None:
    """Only where this is a plugin: whoever merely imports the module keeps scikit-learn's classes."""
    certifit.sklearn.patch()
    # The tests of MDS take the class from the private module that defines it, which `patch` leaves as it is.
    vars(importlib.import_module("sklearn.manifold._mds"))["MDS"] = certifit.sklearn.manifold.MDS


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    translation.fitted.clear()
    try:
        return (yield)
    finally:
        names = sorted({translation.known_as(cls) for cls in translation.fitted})
        item.user_properties.append(("fitted", names))
