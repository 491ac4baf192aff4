"""Objects that are their constructor arguments: losses and penalties print, compare, persist and are cloned by value."""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np

__all__ = ["ByValue"]


class ByValue:
    """Equality, printing and scikit-learn's parameters from the constructor arguments, which are kept under their names."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor arguments."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments, so that a grid search can vary ``loss__delta`` or ``penalty__l1_ratio``."""
        self.__init__(**{**self.get_params(), **params})  # type: ignore[misc]
        return self

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items() if value is not None)
        return f"{type(self).__name__}({arguments})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByValue) or type(self) is not type(other):
            return False
        theirs = other.get_params()
        return all(np.array_equal(value, theirs[name]) for name, value in self.get_params().items())

    def __hash__(self) -> int:
        return hash((type(self), tuple(name for name, value in self.get_params().items() if value is not None)))
