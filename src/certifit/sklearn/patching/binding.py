"""Scikit-learn's names bound to the drop-ins, and back again.

A class is replaced wherever a loaded module holds it under its name, except in the private module that defines it: the
class itself, its private helpers and what inherits from it stay as they are. What is imported later finds the replaced name
in scikit-learn's public modules.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from certifit.sklearn.patching.modules import MODULES

__all__ = ["patch", "patched", "replacements", "unpatch"]

_bound: list[tuple[ModuleType, str, Any]] = []
"""Module, name and what it held before: how to undo what was done."""


def replacements() -> dict[str, tuple[Any, Any]]:
    """Every name that `patch` replaces: the full name → (scikit-learn's, ours).

    Examples
    --------
    >>> from certifit.sklearn import replacements
    >>> theirs, ours = replacements()["sklearn.linear_model.Ridge"]
    >>> issubclass(ours, theirs), ours.__module__.split(".")[0]
    (True, 'certifit')
    """
    found: dict[str, tuple[Any, Any]] = {}
    for name in MODULES:
        ours = importlib.import_module(f"certifit.sklearn.{name}")
        theirs = importlib.import_module(f"sklearn.{name}")
        for public in ours.__all__:
            if hasattr(theirs, public):  # an older release may lack it
                found[f"sklearn.{name}.{public}"] = (_original(theirs, public), getattr(ours, public))
    return found


def _original(module: ModuleType, name: str) -> Any:
    """What a module of scikit-learn held before any patch."""
    before = [value for where, bound, value in _bound if where is module and bound == name]
    return before[0] if before else getattr(module, name)


def patch(*names: str) -> list[str]:
    """Put Certifit's estimators in the place of scikit-learn's, for code that cannot be edited.

    Parameters
    ----------
    *names : str
        Modules or classes to replace, such as ``"linear_model"`` or ``"linear_model.Ridge"``; all by default.

    Returns
    -------
    list of str
        The full names that are replaced.

    Examples
    --------
    >>> import certifit.sklearn
    >>> certifit.sklearn.patch("linear_model.Ridge")
    ['sklearn.linear_model.Ridge']
    >>> from sklearn.linear_model import Ridge
    >>> bool(Ridge().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.5]).certificate_)
    True
    >>> certifit.sklearn.unpatch()
    """
    everything = replacements()
    wanted = [full for full in everything if not names or any(_covers(name, full) for name in names)]
    unknown = [name for name in names if not any(_covers(name, full) for full in everything)]
    if unknown:
        raise ValueError(f"certifit.sklearn replaces nothing called {unknown[0]!r}; replacements() lists the names.")
    by_identity = {id(everything[full][0]): everything[full] for full in wanted}
    for module in list(sys.modules.values()):
        if not isinstance(module, ModuleType) or module.__name__.partition(".")[0] == "certifit":
            continue
        for name, value in list(vars(module).items()):
            pair = by_identity.get(id(value))
            if pair is not None and pair[0] is value and not _defines(module, value):
                _bound.append((module, name, value))
                setattr(module, name, pair[1])
    return wanted


def _defines(module: ModuleType, value: Any) -> bool:
    """Whether this is the private module in which a class is written; a public one must show the drop-in."""
    return module.__name__ == value.__module__ and "._" in module.__name__


def _covers(name: str, full: str) -> bool:
    name = name.removeprefix("sklearn.")
    return full.startswith(f"sklearn.{name}.") or full == f"sklearn.{name}"


def unpatch() -> None:
    """Take the drop-ins out again, wherever `patch` has put them."""
    while _bound:
        module, name, value = _bound.pop()
        setattr(module, name, value)


@contextmanager
def patched(*names: str) -> Iterator[list[str]]:
    """The patch for the length of a ``with`` block; yields the names that are replaced.

    Parameters
    ----------
    *names : str
        As for `patch`.

    Examples
    --------
    >>> import sklearn.linear_model
    >>> from certifit.sklearn import patched
    >>> with patched("linear_model"):
    ...     model = sklearn.linear_model.Lasso(alpha=0.1).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.5])
    >>> model.certificate_.certified, hasattr(sklearn.linear_model.Lasso(), "_table")
    (True, False)
    """
    start = len(_bound)
    try:
        yield patch(*names)
    finally:
        while len(_bound) > start:
            module, name, value = _bound.pop()
            setattr(module, name, value)
