"""Values that make no sense, from the declarations of the parameters: no estimator may take them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from tests.contract.discovery import Case

from certifit.parameters import parameters_of

# Values that are wrong only beside another parameter; all other nonsense comes from the declarations.
BESIDE_OTHERS: dict[str, dict[str, list[Any]]] = {"MinMaxScaler": {"low": [2.0], "high": [-1.0]}}


def leaves(value: Any) -> Iterator[Any]:
    """The entries of nested containers; of a dictionary its keys too."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            yield from leaves(entry)
    else:
        yield value


def is_told(value: Any, message: str) -> bool:
    """Whether a message says what was found: the value, and for containers the wrong entry or the wrong shape."""
    if repr(value) in message:
        return True
    if not isinstance(value, (list, dict)):
        return False
    shape = isinstance(value, list) and str(np.shape(value)) in message
    return shape or any(repr(entry).lower() in message.lower() for entry in leaves(value))


def attempts(case: Case) -> Iterator[tuple[str, Any]]:
    """What a class is tried with: the nonsense of each declared parameter, except its own default."""
    beside = BESIDE_OTHERS.get(case.cls.__name__, {})
    for name, declared in parameters_of(case.cls).items():
        for value in [*declared.domain.nonsense(), *beside.get(name, [])]:
            if value is not declared.default:
                yield name, value
