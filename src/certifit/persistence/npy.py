r"""Arrays in the npy format, whose header is read as the short list of facts it is.

    \x93NUMPY, version, length of the header, {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }, the numbers

NumPy hands the header to Python's parser, which can be driven out of its memory by a kilobyte of brackets.
"""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.persistence.limits import MOST_DIMENSIONS

__all__ = ["can_write", "read_npy", "write_npy"]

_TYPE = r"'[<>|][biufcSUMm][0-9]{1,9}(?:\[[0-9]{0,9}[a-zA-Zμ]{1,2}\])?'"
_INTS = r"\((?:[0-9]{1,19}(?:, [0-9]{1,19})*,?)?\)"
_FIELD = rf"\('([^'\\\u0100-\U0010ffff]+)', ({_TYPE})(?:, ({_INTS}))?\)"
_HEADER = re.compile(
    rf"{{'descr': (?P<descr>{_TYPE}|\[{_FIELD}(?:, {_FIELD})*\]), "
    rf"'fortran_order': (?P<fortran>True|False), 'shape': (?P<shape>{_INTS}), }} *\n"
)
_ONE_FIELD = re.compile(_FIELD)
_LENGTHS: dict[tuple[int, ...], int] = {(1, 0): 2, (2, 0): 4}
"""Version → bytes of the length of the header."""
MOST_HEADER = 10**5


def write_npy(array: Array) -> bytes:
    """The array as a member of a file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def can_write(dtype: Any) -> bool:
    """Whether arrays of this type can be read again: numbers, text, times, or fields of them."""
    if dtype.hasobject or dtype.kind not in "biufcSUVMm":
        return False
    header = f"{{'descr': {np.lib.format.dtype_to_descr(dtype)!r}, 'fortran_order': False, 'shape': (), }}\n"
    return _HEADER.fullmatch(header) is not None


def read_npy(data: bytes) -> tuple[memoryview, Any, tuple[int, ...], str]:
    """The numbers, their type, the shape and the order ("C" or "F"); nothing is allocated."""
    magic, version = data[:6], tuple(data[6:8])
    length = _LENGTHS.get(version)
    if magic != b"\x93NUMPY" or length is None:
        raise ValueError("an array is not in the npy format")
    start = 8 + length
    size = int.from_bytes(data[8:start], "little")
    match = _HEADER.fullmatch(data[start : start + size].decode("latin-1")) if size <= MOST_HEADER else None
    if match is None:
        raise ValueError("an array has a header that NumPy does not write")
    shape = _numbers(match["shape"])
    if len(shape) > MOST_DIMENSIONS:
        raise ValueError(f"an array has {len(shape)} dimensions")
    return memoryview(data)[start + size :], _dtype(match["descr"]), shape, "F" if match["fortran"] == "True" else "C"


def _dtype(descr: str) -> Any:
    if descr.startswith("'"):
        return np.dtype(descr.strip("'"))
    fields = [(name, kind.strip("'"), _numbers(shape)) for name, kind, shape in _ONE_FIELD.findall(descr)]
    return np.dtype([field if field[2] else field[:2] for field in fields])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall("[0-9]+", text)))
