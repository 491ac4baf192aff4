"""Which classes a model file may name.

Certifit's own classes, found among the modules of this package, and a few of scikit-learn's that hold data and no
functions. Everything else must be handed over by the caller: a file never decides what is imported.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import types
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import certifit
from certifit.persistence.moved import MOVED

__all__ = ["attribute_problem", "known_class", "known_name", "qualified_name", "state_of"]

PLUMBING = frozenset(
    f"sklearn.{name}"
    for name in (
        "compose.ColumnTransformer",
        "impute.MissingIndicator",
        "impute.SimpleImputer",
        "model_selection.GroupKFold",
        "model_selection.GroupShuffleSplit",
        "model_selection.KFold",
        "model_selection.LeaveOneOut",
        "model_selection.PredefinedSplit",
        "model_selection.ShuffleSplit",
        "model_selection.StratifiedKFold",
        "model_selection.StratifiedShuffleSplit",
        "model_selection.TimeSeriesSplit",
        "pipeline.FeatureUnion",
        "pipeline.Pipeline",
        "preprocessing.FunctionTransformer",  # as ColumnTransformer passes columns through: without a function
        "preprocessing.OneHotEncoder",
        "preprocessing.OrdinalEncoder",
        "preprocessing.StandardScaler",
    )
)
"""Public names of scikit-learn's classes that may occur in a file: plumbing, no learners."""
_OURS = re.compile(r"certifit((?:\.[a-z_][a-z0-9_]*)+)\.([A-Za-z_][A-Za-z0-9_]*)")
_CLOSED = {"_native", "cli"}


def qualified_name(thing: Any) -> str:
    """Module and name of a class or function."""
    return f"{getattr(thing, '__module__', None)}.{getattr(thing, '__qualname__', getattr(thing, '__name__', None))}"


def known_name(cls: type) -> str | None:
    """The name under which files know a class; None if they do not."""
    if cls.__module__.partition(".")[0] == "certifit":
        name = qualified_name(cls)
        return name if known_class(name) is cls else None
    for name in PLUMBING:
        module, _, last = name.rpartition(".")
        if last == cls.__name__ and getattr(sys.modules.get(module), last, None) is cls:
            return name
    return None


@lru_cache(maxsize=1024)
def known_class(name: str) -> type | None:
    """The class behind a name of a file; None unless it is one of those that files may name."""
    if name in PLUMBING:
        module, _, last = name.rpartition(".")
        found = getattr(importlib.import_module(module), last, None)
        return found if isinstance(found, type) else None
    module, _, last = name.rpartition(".")
    name = f"{MOVED.get(module, module)}.{last}"
    match = _OURS.fullmatch(name)
    if match is None:
        return None
    parts = match[1].split(".")[1:]
    if _CLOSED & set(parts) or any(part.startswith("__") for part in parts) or not _is_module(parts):
        return None
    module = ".".join(["certifit", *parts])
    found = vars(importlib.import_module(module)).get(match[2])
    usable = isinstance(found, type) and found.__module__ == module and not issubclass(found, BaseException)
    return found if usable else None


def _is_module(parts: list[str]) -> bool:
    """Whether the package has such a module; nothing is imported to find out."""
    for folder in certifit.__path__:
        place = Path(folder).joinpath(*parts)
        if place.with_suffix(".py").is_file() or (place / "__init__.py").is_file():
            return True
    return False


def state_of(thing: Any) -> dict[str, Any]:
    """The attributes of an instance that are its state; what can be computed again is left out."""
    cls = type(thing)
    own = next((base for base in cls.__mro__ if "__getstate__" in vars(base)), object)
    if own.__module__.partition(".")[0] == "certifit":  # the class says itself what its state is
        state = dict(thing.__getstate__())
    else:
        state = dict(getattr(thing, "__dict__", {}))
        for base in cls.__mro__:
            slots = vars(base).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in ("__dict__", "__weakref__") and hasattr(thing, name):
                    state[name] = getattr(thing, name)
    return {
        name: value
        for name, value in state.items()
        if not isinstance(inspect.getattr_static(cls, name, None), cached_property)
    }


def attribute_problem(cls: type, name: Any) -> str | None:
    """Why an instance may not have an attribute of this name; None if it may.

    An attribute that hides a method or a property of its class would change what the class does.
    """
    if not isinstance(name, str) or not name.isidentifier() or (name.startswith("__") and name.endswith("__")):
        return f"{name!r} is not a plain attribute name"
    declared = inspect.getattr_static(cls, name, None)
    if hasattr(type(declared), "__get__") and not isinstance(declared, types.MemberDescriptorType):
        return f"{name!r} would hide what the class {cls.__name__} defines"
    return None
