"""Docstrings in sections, as numpydoc has them: read, and completed where another one says the same."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["HEADING", "described", "entries", "takes_as"]

F = TypeVar("F", bound=Callable[..., Any])
HEADING = re.compile(r"\n(?=[A-Z][\w ]+\n-{3,}\n)")


def takes_as(model: Callable[..., Any]) -> Callable[[F], F]:
    """Describe the arguments of a function as another one does, which takes the same under the same names.

    An argument that the function describes itself keeps its words.

    Examples
    --------
    >>> from certifit.parameters.docstrings import takes_as
    >>> from certifit.metrics import mse
    >>> @takes_as(mse)
    ... def bias(y, prediction):
    ...     '''Mean of f − y.'''
    >>> "Actual and predicted values." in bias.__doc__
    True
    """
    sections = HEADING.split(inspect.cleandoc(model.__doc__ or ""))
    said = next((part for part in sections if part.startswith("Parameters\n")), "").rstrip()

    def complete(function: F) -> F:
        names = list(inspect.signature(function).parameters)
        head, *rest = HEADING.split(inspect.cleandoc(function.__doc__ or ""))
        own = [entry for part in rest if part.startswith("Parameters\n") for entry in entries(part.rstrip())]
        left = set(names).difference(*map(described, own))
        listed = [*own, *(entry for entry in entries(said) if left.intersection(described(entry)))]
        listed.sort(key=lambda entry: names.index(next(name for name in described(entry) if name in names)))
        parts = [head, "Parameters\n----------\n" + "\n".join(listed)]
        parts += [part for part in rest if not part.startswith("Parameters\n")]
        function.__doc__ = "\n\n".join(part.rstrip() for part in parts) + "\n"
        return function

    return complete


def described(entry: str) -> list[str]:
    """The arguments that an entry of a section is about."""
    return [name.lstrip("*") for name in entry.partition("\n")[0].partition(" :")[0].split(", ")]


def entries(section: str) -> list[str]:
    """The entries of a section: each begins at the margin."""
    body = section.partition("\n")[2].partition("\n")[2]
    return re.split(r"\n(?=\S)", body) if body else []
