"""The names under which files know classes.

A file outlives the folder a class lived in, so it stores names and never module paths. Classes that are public have
their public name (``Ridge``, ``losses.Huber``); a class that is not, but occurs in the state of one that is, gets a
name where it is defined::

    @stored("TreeArrays")
    @dataclass
    class TreeArrays: ...

    @record("LedgerRow")
    class LedgerRow: ...

A `record` is a frozen dataclass that files know by name: what a fit or a question about it found.
Whoever moves such a class moves its line along, and nothing else changes. The name itself stays for good: files have it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, dataclass_transform

import certifit

__all__ = ["Plain", "class_of", "name_of", "record", "stored"]

T = TypeVar("T", bound=type)
_CLASSES: dict[str, type] = {}
_NAMES: dict[type, str] = {}
_DECLARATION = re.compile(r'^@(?:record|stored)\("(\w+)"\)$', re.MULTILINE)


def stored(name: str) -> Callable[[T], T]:
    """Give a class that is not public the name under which files know it; above all other decorators.

    Examples
    --------
    >>> from certifit.models.tree.growing import TreeArrays
    >>> from certifit.names import class_of, name_of
    >>> name_of(TreeArrays), class_of("TreeArrays") is TreeArrays
    ('TreeArrays', True)
    """

    def register(cls: T) -> T:
        taken = _CLASSES.get(name)
        if taken is not None and (taken.__module__, taken.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"the name {name!r} is taken by {taken.__module__}.{taken.__qualname__}: choose another.")
        _CLASSES[name], _NAMES[cls] = cls, name
        return cls

    return register


@dataclass_transform(frozen_default=True)
def record(name: str) -> Callable[[T], T]:
    """Make a class a frozen dataclass that files know by this name.

    Examples
    --------
    >>> from certifit.evaluation.risk.ledger import LedgerRow
    >>> from certifit.names import name_of
    >>> name_of(LedgerRow)
    'LedgerRow'
    """

    def declare(cls: T) -> T:
        dataclass(frozen=True)(cls)
        return stored(name)(cls)

    return declare


class Plain:
    """A record whose fields are plain data."""

    def as_dict(self) -> dict[str, Any]:
        """The fields as a plain dictionary, for reports and JSON."""
        return asdict(self)  # type: ignore[call-overload]


def name_of(cls: type) -> str | None:
    """The name of a class in files; None if it has none."""
    if cls in _NAMES:
        return _NAMES[cls]
    for name in (cls.__name__, *(f"{module}.{cls.__name__}" for module in _public_modules())):
        if _public(name) is cls:
            return name
    return None


def class_of(name: str) -> type | None:
    """The class behind a name of a file; None if no class of this package has it. Only modules of ours are imported."""
    found = _CLASSES.get(name) or _public(name)
    if found is None and name in _declared():
        importlib.import_module(_declared()[name])
        found = _CLASSES.get(name)
    return found


def _public_modules() -> Iterator[str]:
    return (name for name in certifit.__all__ if certifit._EXPORTS[name] == f"certifit.{name}")


def _public(name: str) -> type | None:
    """``Ridge`` is ``certifit.Ridge``, and ``losses.Huber`` is a public name of ``certifit.losses``."""
    head, _, tail = name.partition(".")
    found = getattr(certifit, head) if head in certifit.__all__ else None
    if tail:
        offered = isinstance(found, ModuleType) and tail in getattr(found, "__all__", ())
        found = getattr(found, tail) if offered else None
    return found if isinstance(found, type) and not issubclass(found, BaseException) else None


@lru_cache(maxsize=1)
def _declared() -> dict[str, str]:
    """Name → module of every `stored` and `record` in the sources: a class must be found before anybody has imported it."""
    found: dict[str, str] = {}
    for folder in map(Path, certifit.__path__):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            module = ".".join(["certifit", *(parts[:-1] if parts[-1] == "__init__" else parts)])
            found.update(dict.fromkeys(_DECLARATION.findall(path.read_text(encoding="utf-8")), module))
    return found
