"""Errors of our models, in the name of the drop-in that was asked."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["in_own_name", "speaks_for"]


def in_own_name(error: Exception, ours: str, own: str) -> None:
    """Let the message of an error speak of the drop-in, where it speaks of the class of ours behind it."""
    if ours != own and error.args and isinstance(error.args[0], str):
        error.args = (re.sub(rf"(?<![\w.]){ours}\b", own, error.args[0]), *error.args[1:])


def speaks_for(cls: type, ours: str) -> None:
    """Let the errors of all public methods of a drop-in speak of it; `fit` sees to its own, whose warnings count frames."""
    if ours == cls.__name__:
        return
    for name in dir(cls):
        home = next((base for base in cls.__mro__ if name in vars(base)), object)
        method = vars(home).get(name)
        if name[0] != "_" and name != "fit" and home.__module__.startswith("certifit.") and inspect.isfunction(method):
            setattr(cls, name, _renaming(method, ours, cls.__name__))


def _renaming(method: Callable[..., Any], ours: str, own: str) -> Callable[..., Any]:
    if inspect.isgeneratorfunction(method):

        @functools.wraps(method)
        def stages(*arguments: Any, **named: Any) -> Iterator[Any]:
            try:
                yield from method(*arguments, **named)
            except (TypeError, ValueError) as error:
                in_own_name(error, ours, own)
                raise

        return stages

    @functools.wraps(method)
    def once(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except (TypeError, ValueError) as error:
            in_own_name(error, ours, own)
            raise

    return once
