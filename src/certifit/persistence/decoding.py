"""Data as objects again, without running any of their code.

Instances are made by ``object.__new__`` and given their attributes directly: no constructor, no ``__setstate__``,
no property of any class is called. Whatever in the table is not as `encoding` writes it is refused.
"""

from __future__ import annotations

import base64
import datetime
import enum
import math
import struct
import types
from collections.abc import Callable, Iterable
from inspect import getattr_static
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from certifit._types import Array
from certifit.persistence.classes import attribute_problem, known_class, qualified_name
from certifit.persistence.encoding import BITS, MOST_LISTS, PLAIN_TYPES, is_plain
from certifit.persistence.errors import ModelFileError
from certifit.persistence.limits import (
    MOST_BITS,
    MOST_DIMENSIONS,
    MOST_KEY,
    MOST_KEY_INT,
    check_seed,
    circular,
    weights,
)
from certifit.persistence.npy import read_npy

__all__ = ["Decoder"]

MOST_POOL = 1024
"""Words of the pool of a seed."""
_TIMES: dict[str, Any] = {"datetime": datetime.datetime, "date": datetime.date, "time": datetime.time}
_KEYS = (type(None), bool, int, float, str, bytes, datetime.date, datetime.time, np.generic)


class Decoder:
    """Builds the objects of a table.

    Parameters
    ----------
    entries : list
        The table.
    members : dict
        Member name → bytes, for the larger arrays.
    trusted : iterable of classes and functions
        What the caller allows besides the known classes.
    version : int
        Format of the file.
    """

    def __init__(self, entries: Any, members: dict[str, bytes], trusted: Iterable[Any], version: int) -> None:
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ValueError("the table of objects is not a table")
        self._entries, self._members, self._version = entries, members, version
        self._trusted = {qualified_name(thing): thing for thing in trusted}
        self._built: dict[int, Any] = {}
        self._open: set[int] = set()
        self._later: list[Callable[[], None]] = []
        self._weights: dict[int, int] = {}

    def decode(self, root: Any) -> Any:
        """The root with all that hangs on it."""
        self._weights = weights(self._entries, root)
        self._check_estimators()
        value = self._value(root)
        while self._later:
            self._later.pop()()
        return value

    def _check_estimators(self) -> None:
        """No estimator is a part of itself: asked for anything, it would ask itself."""
        for number in circular(self._entries):
            entry = self._entries[number]
            if (
                number in self._weights
                and entry.get("kind") == "object"
                and issubclass(self._class(entry), BaseEstimator)
            ):
                raise ValueError(f"object {number}, an estimator, is a part of itself")

    def _value(self, value: Any) -> Any:
        if is_plain(value):
            return value
        if not isinstance(value, dict) or set(value) != {"ref"} or type(value["ref"]) is not int:
            raise ValueError(f"a {type(value).__name__} stands where a value should")
        number = value["ref"]
        if number in self._built:
            return self._built[number]
        if not 0 <= number < len(self._entries):
            raise ValueError(f"there is no object {number}")
        if number in self._open:  # only containers that can be filled later may hold themselves
            raise ValueError(f"object {number} is a part of itself")
        self._open.add(number)
        entry = self._entries[number]
        build = getattr(self, f"_build_{entry['kind']}", None) if entry.get("kind") in _KINDS else None
        if build is None:
            raise ValueError(f"object {number} is of the unknown kind {entry.get('kind')!r:.40}")
        built = self._built[number] = build(entry)
        self._open.discard(number)
        return built

    def _values(self, entry: dict[str, Any]) -> list[Any]:
        return [self._value(item) for item in entry["items"]]

    # Numbers, text, times

    def _build_int(self, entry: dict[str, Any]) -> int:
        if len(entry["hex"]) > MOST_BITS // 4 + 3:
            raise ValueError(f"an integer has {len(entry['hex'])} digits")
        return int(entry["hex"], 16)

    def _build_float(self, entry: dict[str, Any]) -> float:
        return float(struct.unpack(">d", bytes.fromhex(entry["bits"]))[0])

    def _build_bytes(self, entry: dict[str, Any]) -> bytes:
        return base64.b64decode(entry["data"], validate=True)

    def _build_time(self, entry: dict[str, Any]) -> Any:
        return _TIMES[entry["kind"]].fromisoformat(entry["text"])

    _build_datetime = _build_date = _build_time

    def _build_timedelta(self, entry: dict[str, Any]) -> datetime.timedelta:
        days, seconds, microseconds = entry["parts"]
        return datetime.timedelta(days, seconds, microseconds)

    # Containers: those that change are filled once everything they hold can be built

    def _build_list(self, entry: dict[str, Any]) -> list[Any]:
        made: list[Any] = []
        self._later.append(lambda: made.extend(self._values(entry)))
        return made

    def _build_dict(self, entry: dict[str, Any]) -> dict[Any, Any]:
        made: dict[Any, Any] = {}

        def fill() -> None:
            for key, value in entry["pairs"]:
                made[self._key(key)] = self._value(value)

        self._later.append(fill)
        return made

    def _build_set(self, entry: dict[str, Any]) -> set[Any]:
        return {self._key(item) for item in entry["items"]}

    def _key(self, value: Any) -> Any:
        """A key or a member of a set: light, and made of what hashes by itself."""
        if isinstance(value, dict) and self._weights.get(value.get("ref", -1), 0) > MOST_KEY:
            raise ValueError(f"a key has more than {MOST_KEY} parts")
        return _checked_key(self._value(value))

    def _build_frozenset(self, entry: dict[str, Any]) -> frozenset[Any]:
        return frozenset(self._build_set(entry))

    def _build_tuple(self, entry: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self._values(entry))

    def _build_slice(self, entry: dict[str, Any]) -> slice:
        start, stop, step = self._values(entry)
        return slice(start, stop, step)

    def _build_range(self, entry: dict[str, Any]) -> range:
        start, stop, step = self._values(entry)
        return range(start, stop, step)

    # NumPy and SciPy

    def _build_array(self, entry: dict[str, Any]) -> Array:
        if "member" in entry:
            return _filled(*read_npy(self._members[entry["member"]]))
        return _array(base64.b64decode(entry["data"], validate=True), entry["dtype"], entry["shape"], entry["order"])

    def _build_objects(self, entry: dict[str, Any]) -> Array:
        if math.prod(_shape(entry["shape"])) != len(entry["items"]):
            raise ValueError("an array of objects has another size than its shape")
        made = np.empty(len(entry["items"]), dtype=object)

        def fill() -> None:
            for k, item in enumerate(entry["items"]):
                made[k] = self._value(item)

        self._later.append(fill)
        return made.reshape(_shape(entry["shape"]))

    def _build_scalar(self, entry: dict[str, Any]) -> Any:
        return _array(base64.b64decode(entry["data"], validate=True), entry["dtype"], [], "C")[()]

    def _build_dtype(self, entry: dict[str, Any]) -> Any:
        return _dtype(entry["name"], "biufcSUOMm")

    def _build_type(self, entry: dict[str, Any]) -> type:
        module, _, name = entry["name"].rpartition(".")
        found = PLAIN_TYPES.get(name) if module == "" else getattr(np, name, None) if module == "numpy" else None
        if not isinstance(found, type) or (module == "numpy" and not issubclass(found, np.generic)):
            raise ValueError(f"{entry['name']!r:.60} is not a type that files may name")
        return found

    def _build_seed(self, entry: dict[str, Any]) -> Any:
        parts = {name: self._value(part) for name, part in entry["parts"].items()}
        while self._later:  # the entropy may be a list: it has to be full before it is read
            self._later.pop()()
        if type(parts["pool_size"]) is not int or not 4 <= parts["pool_size"] <= MOST_POOL:
            raise ValueError(f"a seed has a pool of {parts['pool_size']!r:.60}")
        check_seed(parts["entropy"], parts["spawn_key"])
        return np.random.SeedSequence(**parts)

    def _build_bit_generator(self, entry: dict[str, Any]) -> Any:
        if entry["name"] not in BITS:
            raise ValueError(f"there is no bit generator {entry['name']!r:.40}")
        state, seed = self._value(entry["state"]), self._value(entry["seed"])
        while self._later:
            self._later.pop()()
        _check_bits(state, entry["name"])
        if seed is not None and not isinstance(seed, np.random.SeedSequence):
            raise ValueError(f"a bit generator has a {type(seed).__name__} as its seed")
        made = getattr(np.random, entry["name"])(0 if seed is None else seed)
        made.state = state
        return made

    def _build_generator(self, entry: dict[str, Any]) -> Any:
        bits = self._value(entry["bits"])
        if not isinstance(bits, np.random.BitGenerator):
            raise ValueError("a generator has no bit generator")
        return np.random.Generator(bits)

    def _build_random_state(self, entry: dict[str, Any]) -> Any:
        state = self._value(entry["state"])
        while self._later:
            self._later.pop()()
        if not isinstance(state, dict) or state.get("bit_generator") not in BITS:
            raise ValueError("a random state has no bit generator")
        _check_bits(state, state["bit_generator"])
        made = np.random.RandomState(getattr(np.random, state["bit_generator"])(0))
        made.set_state(state)
        return made

    def _build_sparse(self, entry: dict[str, Any]) -> Any:
        parts = [self._value(part) for part in entry["parts"]]
        shape, kind = _shape(entry["shape"]), entry["format"]
        stored = kind if kind in ("csr", "csc", "bsr", "dia") else "coo"
        if kind not in ("csr", "csc", "bsr", "dia", "coo", "lil", "dok") or not all(
            isinstance(part, np.ndarray) and part.dtype.kind in "biufc" for part in parts
        ):
            raise ValueError("a sparse matrix is not one")
        if kind == "lil" and shape[0] > MOST_LISTS:
            raise ValueError(f"a matrix of {shape[0]} lists")
        cls = getattr(sp, f"{stored}_{'array' if entry['array'] is True else 'matrix'}")
        data, *rest = parts
        made = cls((data, tuple(rest)) if stored == "coo" else (data, *rest), shape=shape)
        if stored in ("csr", "csc", "bsr"):
            made.check_format(full_check=True)  # indices are followed without a check later on
        return made.asformat(kind)

    # Classes

    def _class(self, entry: dict[str, Any]) -> type:
        name = entry["class"]
        foreign = entry.get("trusted") is True  # such a class may bear one of our names
        cls = known_class(name, self._version) if isinstance(name, str) and not foreign else None
        if isinstance(name, str) and (foreign or self._version == 1):
            cls = cls or self._trusted.get(name)
        if not isinstance(cls, type):
            raise ModelFileError(
                f"the file names the class {name!r:.100}, which is not one of Certifit's: if you trust the file, load "
                "it with trusted=[the class]."
            )
        return cls

    def _build_trusted(self, entry: dict[str, Any]) -> Any:
        if entry["name"] not in self._trusted:
            raise ModelFileError(
                f"the file names {entry['name']!r:.100}: if you trust the file, load it with trusted=[that function]."
            )
        return self._trusted[entry["name"]]

    def _build_enum(self, entry: dict[str, Any]) -> Any:
        cls = self._class(entry)
        if not issubclass(cls, enum.Enum):
            raise ValueError(f"{entry['class']} is not an enumeration")
        return cls.__members__[entry["member"]]

    def _build_named(self, entry: dict[str, Any]) -> Any:
        cls = self._class(entry)
        items = self._values(entry)
        if not issubclass(cls, tuple) or len(items) != len(getattr(cls, "_fields", ())):
            raise ValueError(f"{entry['class']} does not have these fields")
        return tuple.__new__(cls, items)

    def _build_object(self, entry: dict[str, Any]) -> Any:
        cls, state = self._class(entry), entry["state"]
        if issubclass(cls, enum.Enum):
            raise ValueError(f"{entry['class']} is an enumeration")
        made = object.__new__(cls)
        for name in state:
            problem = attribute_problem(cls, name)
            if problem is not None:
                raise ValueError(problem)

        def fill() -> None:
            for name, item in state.items():
                value = self._value(item)
                if isinstance(getattr_static(cls, name, None), types.MemberDescriptorType):
                    object.__setattr__(made, name, value)
                else:
                    made.__dict__[name] = value

        self._later.append(fill)
        return made


_KINDS = frozenset(name.removeprefix("_build_") for name in vars(Decoder) if name.startswith("_build_"))


def _check_bits(state: Any, name: str) -> None:
    """NumPy follows the positions in these states without looking."""
    inner = state.get("state") if isinstance(state, dict) else None
    if not isinstance(inner, dict) or state.get("bit_generator") != name:
        raise ValueError(f"the state of {name} is not one")
    position = inner.get("pos", 0) if name == "MT19937" else state.get("buffer_pos", 0)
    if not 0 <= int(position) <= (624 if name == "MT19937" else 4):
        raise ValueError(f"the state of {name} points to {position}")


def _checked_key(key: Any) -> Any:
    parts = key if type(key) in (tuple, frozenset) else (key,)
    for part in parts:
        if type(part) in (tuple, frozenset):
            _checked_key(part)
        elif not isinstance(part, _KEYS):
            raise ValueError(f"a key is of type {type(part).__name__}")
        elif type(part) is int and abs(part) > MOST_KEY_INT:
            raise ValueError("a key is an integer beyond 64 bits")  # any number of those have the same hash
    return key


def _shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, list) or len(shape) > MOST_DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError("a shape is not one")
    return tuple(shape)


def _dtype(name: Any, kinds: str) -> Any:
    dtype = np.dtype(name) if isinstance(name, str) and len(name) < 40 else None
    if dtype is None or dtype.str != name or dtype.kind not in kinds or dtype.names is not None:
        raise ValueError(f"{name!s:.60} is not a dtype of numbers or text")
    return dtype


def _array(data: bytes, dtype: Any, shape: Any, order: Any) -> Array:
    return _filled(data, _dtype(dtype, "biufcSUMm"), _shape(shape), order)


def _filled(data: bytes | memoryview, dtype: Any, shape: tuple[int, ...], order: Any) -> Array:
    """An array with these bytes; the size is compared before anything is allocated."""
    if order not in ("C", "F") or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"an array of shape {shape} and dtype {dtype} does not have {len(data)} bytes")
    made = np.zeros(shape, dtype=dtype, order=order)
    if data:
        flat = made.reshape(-1, order=order)
        flat[:] = np.frombuffer(data, dtype=dtype)
    return made
