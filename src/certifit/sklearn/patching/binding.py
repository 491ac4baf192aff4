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
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from certifit.sklearn.patching.modules import MODULES

__all__ = ["patch", "patched", "replacements", "unpatch"]


@dataclass(frozen=True, eq=False)
class _Binding:
    """A name of a module that holds a drop-in, and what it held before."""

    module: ModuleType
    name: str
    theirs: Any
    ours: Any

    def undo(self) -> None:
        """Scikit-learn's again, unless somebody has bound the name to something else since."""
        if vars(self.module).get(self.name) is self.ours:
            setattr(self.module, self.name, self.theirs)


_bound: list[_Binding] = []
"""What is in place: how to undo what was done."""


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
    before = [one.theirs for one in _bound if one.module is module and one.name == name]
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
    return _bind(names)[0]


def _bind(names: tuple[str, ...]) -> tuple[list[str], list[_Binding]]:
    """The full names that are replaced, and what was not in place before."""
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f'Names to replace are strings such as "linear_model.Ridge"; got {name!r}.')
    everything = replacements()
    wanted = [full for full in everything if not names or any(_covers(name, full) for name in names)]
    unknown = [name for name in names if not any(_covers(name, full) for full in everything)]
    if unknown:
        raise ValueError(f"certifit.sklearn replaces nothing called {unknown[0]!r}; replacements() lists the names.")
    by_identity = {id(everything[full][0]): everything[full] for full in wanted}
    made = []
    for module, name, value in _held(""):
        pair = by_identity.get(id(value))
        if pair is not None and pair[0] is value and not _defines(module, value):
            made.append(_Binding(module, name, *pair))
            setattr(module, name, pair[1])
    _bound.extend(made)
    return wanted, made


def _held(package: str) -> Iterator[tuple[ModuleType, str, Any]]:
    """What the loaded modules hold, of one package or of all but ours."""
    for module in list(sys.modules.values()):
        if not isinstance(module, ModuleType):
            continue
        top = module.__name__.partition(".")[0]
        if top == package or (not package and top != "certifit"):
            for name, value in list(vars(module).items()):
                yield module, name, value


def _release(bindings: list[_Binding]) -> None:
    """Undo what is still in place of these, last first, and what modules of scikit-learn have imported meanwhile."""
    mine = {id(one) for one in bindings}
    released = [one for one in _bound if id(one) in mine]
    _bound[:] = [one for one in _bound if id(one) not in mine]
    for one in reversed(released):
        one.undo()
    in_place = {id(one.ours) for one in _bound}
    gone = {id(one.ours): one for one in released if id(one.ours) not in in_place}
    for module, name, value in _held("sklearn"):
        if (last := gone.get(id(value))) is not None:
            setattr(module, name, last.theirs)


def _defines(module: ModuleType, value: Any) -> bool:
    """Whether this is the private module in which a class is written; a public one must show the drop-in."""
    return module.__name__ == value.__module__ and "._" in module.__name__


def _covers(name: str, full: str) -> bool:
    name = name.removeprefix("sklearn.")
    return full.startswith(f"sklearn.{name}.") or full == f"sklearn.{name}"


def unpatch() -> None:
    """Take the drop-ins out again, wherever `patch` has put them.

    What a module outside scikit-learn has imported since then stays as it was imported.
    """
    _release(_bound)


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
    replaced, made = _bind(names)
    try:
        yield replaced
    finally:
        _release(made)
