"""Which classes a model file may name.

Certifit's own classes that have a name (`certifit.names`), and a few of scikit-learn's that hold data and no
functions. Everything else must be handed over by the caller: a file never decides what is imported.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from functools import cached_property
from typing import Any

from certifit.names import class_of, name_of
from certifit.persistence.container import FORMAT
from certifit.persistence.format1 import FORMAT1

__all__ = ["attribute_problem", "known_class", "known_name", "qualified_name", "shown_name", "state_of"]

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


def qualified_name(thing: Any) -> str:
    """Module and name of a class or function."""
    return f"{getattr(thing, '__module__', None)}.{getattr(thing, '__qualname__', getattr(thing, '__name__', None))}"


def known_name(cls: type) -> str | None:
    """The name under which files know a class; None if they do not."""
    if cls.__module__.partition(".")[0] == "certifit":
        return name_of(cls)
    for name in PLUMBING:
        module, _, last = name.rpartition(".")
        if last == cls.__name__ and getattr(sys.modules.get(module), last, None) is cls:
            return name
    return None


def known_class(name: str, version: int = FORMAT) -> type | None:
    """The class behind a name in a file of some format; None unless it is one of those that files may name."""
    if name in PLUMBING:
        module, _, last = name.rpartition(".")
        found = getattr(importlib.import_module(module), last, None)
        return found if isinstance(found, type) else None
    return class_of(FORMAT1.get(name, "") if version == 1 else name)


def shown_name(name: str, version: int) -> str:
    """A name in a file of some format, as people know it."""
    return FORMAT1.get(name, name) if version == 1 else name


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
