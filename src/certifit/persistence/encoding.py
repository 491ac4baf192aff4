"""Objects as data: a flat table in which every object has a number.

None, booleans, text, ordinary integers and finite floats stand for themselves; everything else is a reference
``{"ref": k}`` to entry k of the table. So shared objects stay shared, cycles end, and depth costs no recursion.
"""

from __future__ import annotations

import base64
import datetime
import enum
import math
import struct
import types
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from certifit._types import Array
from certifit.persistence.classes import attribute_problem, known_name, qualified_name, state_of
from certifit.persistence.container import ARRAY
from certifit.persistence.limits import MOST_BITS, MOST_KEY, MOST_KEY_INT, check_seed, circular, weights
from certifit.persistence.npy import can_write, write_npy

__all__ = ["BITS", "MOST_LISTS", "PLAIN_TYPES", "SMALL", "Encoder", "is_plain"]

SMALL = 2048
"""Arrays of at most so many bytes lie in the table itself: a member of an archive each would be mostly overhead."""
EXACT = 2**53
"""JSON readers keep integers up to here."""
BITS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
"""NumPy's bit generators."""
PLAIN_TYPES: dict[str, type] = {cls.__name__: cls for cls in (bool, int, float, str, bytes, object)}
_TIMES = (datetime.datetime, datetime.date, datetime.time)
MOST_LISTS = 10**7
"""Rows of a matrix of lists: each costs a reader memory, whatever it holds."""
_INDEXED = ("csr", "csc", "bsr")


def is_plain(value: Any) -> bool:
    """Whether a value stands for itself in JSON."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return True
    return (kind is int and abs(value) <= EXACT) or (kind is float and math.isfinite(value))


class Encoder:
    """Turns objects into a table of plain entries, and arrays into members of the file.

    Parameters
    ----------
    trusted : iterable of classes and functions
        What may occur besides the known classes; the reader has to trust the same ones.
    """

    def __init__(self, trusted: Iterable[Any] = ()) -> None:
        self.entries: list[dict[str, Any]] = []
        self.members: dict[str, bytes] = {}
        self.used: set[str] = set()
        self.needed: set[str] = set()
        self._trusted = {id(thing): qualified_name(thing) for thing in trusted}
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []  # an object that is gone could lend its id to another one
        self._queue: deque[tuple[int, Any, str]] = deque()
        self._kinds: dict[type, Callable[[Any, str], dict[str, Any]]] = {
            int: self._int,
            float: lambda x, _: {"kind": "float", "bits": struct.pack(">d", x).hex()},
            bytes: lambda x, _: {"kind": "bytes", "data": _text(x)},
            list: self._items("list"),
            tuple: self._items("tuple"),
            set: self._unordered("set"),
            frozenset: self._unordered("frozenset"),
            dict: self._dict,
            slice: lambda x, path: {"kind": "slice", "items": self._values((x.start, x.stop, x.step), path)},
            range: lambda x, path: {"kind": "range", "items": self._values((x.start, x.stop, x.step), path)},
            datetime.timedelta: lambda x, _: {"kind": "timedelta", "parts": [x.days, x.seconds, x.microseconds]},
            **dict.fromkeys(_TIMES, self._time),
            np.ndarray: self._array,
            np.memmap: self._array,
            np.random.Generator: lambda x, path: {
                "kind": "generator",
                "bits": self._value(x.bit_generator, f"{path}.bit_generator"),
            },
            np.random.RandomState: lambda x, path: {
                "kind": "random_state",
                "state": self._value(x.get_state(legacy=False), path),
            },
            np.random.SeedSequence: self._seed,
        }

    def encode(self, root: Any) -> Any:
        """The value of the root; afterwards the table and the members are complete."""
        value = self._value(root, type(root).__name__)
        while self._queue:
            number, thing, path = self._queue.popleft()
            self.entries[number] = self._entry(thing, path)
        try:
            weights(self.entries, value)
            around = [self._alive[number] for number in circular(self.entries)]
            if any(isinstance(thing, BaseEstimator) for thing in around):
                raise ValueError("an estimator is a part of itself")
        except ValueError as error:
            raise TypeError(f"{type(root).__name__} cannot be saved: {error}.") from error
        return value

    def _value(self, thing: Any, path: str) -> Any:
        if is_plain(thing):
            return thing
        number = self._numbers.get(id(thing))
        if number is None:
            number = self._numbers[id(thing)] = len(self.entries)
            self.entries.append({})
            self._alive.append(thing)
            self._queue.append((number, thing, path))
        return {"ref": number}

    def _values(self, things: Iterable[Any], path: str) -> list[Any]:
        return [self._value(thing, f"{path}[{k}]") for k, thing in enumerate(things)]

    def _entry(self, thing: Any, path: str) -> dict[str, Any]:
        if id(thing) in self._trusted:
            self.needed.add(self._trusted[id(thing)])
            return {"kind": "trusted", "name": self._trusted[id(thing)]}
        encode = self._kinds.get(type(thing))
        if encode is not None:
            return encode(thing, path)
        if isinstance(thing, np.generic):
            return self._scalar(thing, path)
        if isinstance(thing, np.dtype):
            return self._dtype(thing, path)
        if isinstance(thing, np.random.BitGenerator):
            return self._bits(thing, path)
        if isinstance(thing, type):
            return self._type(thing, path)
        if sp.issparse(thing):
            return self._sparse(thing, path)
        return self._instance(thing, path)

    def _int(self, thing: int, path: str) -> dict[str, Any]:
        if thing.bit_length() > MOST_BITS:
            raise TypeError(f"{path} cannot be saved: it is an integer of more than {MOST_BITS} bits.")
        return {"kind": "int", "hex": hex(thing)}

    def _items(self, kind: str) -> Callable[[Any, str], dict[str, Any]]:
        return lambda things, path: {"kind": kind, "items": self._values(things, path)}

    def _unordered(self, kind: str) -> Callable[[Any, str], dict[str, Any]]:
        def encode(things: Any, path: str) -> dict[str, Any]:
            # The order of a set differs from run to run; the bytes of a file must not.
            for item in things:
                _check_key(item, path)
            ordered = sorted(things, key=lambda item: (type(item).__name__, repr(item)))
            return {"kind": kind, "items": self._values(ordered, path)}

        return encode

    def _dict(self, things: dict[Any, Any], path: str) -> dict[str, Any]:
        pairs = []
        for key, value in things.items():
            _check_key(key, path)
            pairs.append([self._value(key, f"key {key!r} of {path}"), self._value(value, f"{path}[{key!r}]")])
        return {"kind": "dict", "pairs": pairs}

    def _time(self, thing: Any, path: str) -> dict[str, Any]:
        zone = getattr(thing, "tzinfo", None)
        if zone is not None and type(zone) is not datetime.timezone:
            raise _unknown(thing, path, "convert it to UTC")
        return {"kind": type(thing).__name__, "text": thing.isoformat()}

    def _array(self, thing: Array, path: str) -> dict[str, Any]:
        if thing.dtype.kind == "O":
            return {"kind": "objects", "shape": list(thing.shape), "items": self._values(thing.ravel().tolist(), path)}
        if not can_write(thing.dtype):
            raise _unknown(thing, path, f"convert the array of dtype {thing.dtype} to numbers or text")
        array = np.asarray(thing)
        order: Any = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        if array.nbytes <= SMALL and array.dtype.names is None:
            return {
                "kind": "array",
                "dtype": array.dtype.str,
                "shape": list(array.shape),
                "order": order,
                "data": _text(array.tobytes(order=order)),
            }
        name = ARRAY.format(len(self.members))
        self.members[name] = write_npy(array)
        return {"kind": "array", "member": name}

    def _scalar(self, thing: Any, path: str) -> dict[str, Any]:
        if thing.dtype.kind not in "biufcSUMm":
            raise _unknown(thing, path, "convert it to a Python number or text")
        return {"kind": "scalar", "dtype": thing.dtype.str, "data": _text(thing.tobytes()[: thing.dtype.itemsize])}

    def _dtype(self, thing: Any, path: str) -> dict[str, Any]:
        if thing.names is not None or thing.kind not in "biufcSUOMm":
            raise _unknown(thing, path, "use a dtype of numbers or text")
        return {"kind": "dtype", "name": thing.str}

    def _type(self, thing: type, path: str) -> dict[str, Any]:
        if issubclass(thing, np.generic) and getattr(np, thing.__name__, None) is thing:
            return {"kind": "type", "name": f"numpy.{thing.__name__}"}
        if PLAIN_TYPES.get(thing.__name__) is thing:
            return {"kind": "type", "name": thing.__name__}
        raise _unknown(thing, path, "store an instance instead of the class, or give it to save(…, trusted=[…])")

    def _bits(self, thing: Any, path: str) -> dict[str, Any]:
        name = type(thing).__name__
        if name not in BITS or getattr(np.random, name) is not type(thing):
            raise _unknown(thing, path, "use one of NumPy's bit generators")
        seed = getattr(thing, "seed_seq", None)
        seed = seed if type(seed) is np.random.SeedSequence else None
        return {
            "kind": "bit_generator",
            "name": name,
            "state": self._value(thing.state, path),
            "seed": self._value(seed, f"{path}.seed_seq"),
        }

    def _seed(self, thing: Any, path: str) -> dict[str, Any]:
        parts = {name: getattr(thing, name) for name in ("entropy", "spawn_key", "pool_size", "n_children_spawned")}
        try:
            check_seed(parts["entropy"], parts["spawn_key"])
        except ValueError as error:
            raise TypeError(f"{path} cannot be saved: {error}. Use a shorter one.") from error
        return {"kind": "seed", "parts": {name: self._value(part, path) for name, part in parts.items()}}

    def _sparse(self, thing: Any, path: str) -> dict[str, Any]:
        if thing.format == "lil" and thing.shape[0] > MOST_LISTS:
            raise _unknown(thing, path, "convert it to CSR")
        matrix = thing if thing.format in (*_INDEXED, "coo", "dia") else thing.tocoo()
        if matrix.format in _INDEXED:
            parts: tuple[Any, ...] = (matrix.data, matrix.indices, matrix.indptr)
        elif matrix.format == "coo":
            parts = (matrix.data, *matrix.coords)
        else:
            parts = (matrix.data, matrix.offsets)
        return {
            "kind": "sparse",
            "format": thing.format,
            "array": isinstance(thing, sp.sparray),
            "shape": [int(n) for n in thing.shape],
            "parts": [self._value(np.asarray(part), path) for part in parts],
        }

    def _instance(self, thing: Any, path: str) -> dict[str, Any]:
        cls = type(thing)
        name, foreign = known_name(cls), {}
        if name is None and id(cls) in self._trusted:
            name, foreign = self._trusted[id(cls)], {"trusted": True}
            self.needed.add(name)
        if name is None:
            raise _unknown(thing, path)
        self.used.add(name)
        if isinstance(thing, enum.Enum):
            return {"kind": "enum", "class": name, **foreign, "member": thing.name}
        if isinstance(thing, tuple) and hasattr(cls, "_fields"):
            return {"kind": "named", "class": name, **foreign, "items": self._values(thing, path)}
        try:
            object.__new__(cls)
        except TypeError as error:
            raise _unknown(thing, path, f"its class extends a built-in type ({error})") from error
        state = state_of(thing)
        for attribute in state:
            problem = attribute_problem(cls, attribute)
            if problem is not None:
                raise TypeError(f"{path} cannot be saved: {problem}. Remove the attribute from the instance.")
        values = {key: self._value(value, f"{path}.{key}") for key, value in state.items()}
        return {"kind": "object", "class": name, **foreign, "state": values}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _check_key(key: Any, path: str) -> None:
    """Keys and members of sets are rebuilt before their container, and their hash must not be user code."""
    parts, met = [key], 0
    while parts:
        part, met = parts.pop(), met + 1
        if met > MOST_KEY // 3:  # an entry of the table has about three values besides what it refers to
            raise TypeError(f"{path} cannot be saved: it has a key of more than {MOST_KEY // 3} parts.")
        if type(part) in (tuple, frozenset):
            parts.extend(part)
        elif type(part) is int and abs(part) > MOST_KEY_INT:
            raise TypeError(f"{path} cannot be saved: it has a key that is an integer beyond 64 bits.")
        elif not (is_plain(part) or type(part) in (int, float, bytes, *_TIMES) or isinstance(part, np.generic)):
            raise TypeError(
                f"{path} cannot be saved: it has a key of type {qualified_name(type(part))}. Keys of dictionaries and "
                "members of sets must be numbers, text or tuples of them."
            )


def _unknown(thing: Any, path: str, cure: str | None = None) -> TypeError:
    if cure is not None:
        return TypeError(f"{path} cannot be saved: it is {thing!r:.80}; {cure}.")
    if isinstance(thing, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc)):
        name = qualified_name(thing)
        if "<" in name:
            return TypeError(
                f"{path} cannot be saved: it is {name}, code without a name of its own. Files hold no code: define it "
                "as a function of a module and give it to both save and load as trusted=[the function]."
            )
        return TypeError(
            f"{path} cannot be saved: it is the function {name}. Files hold no code: give the function to both save "
            "and load, as trusted=[the function]."
        )
    if type(thing).__module__.partition(".")[0] == "certifit":
        return TypeError(
            f"{path} cannot be saved: the class {qualified_name(type(thing))} has no name in files. Write "
            f'@stored("{type(thing).__name__}") above it (certifit.names).'
        )
    return TypeError(
        f"{path} cannot be saved: its class {qualified_name(type(thing))} is not one of Certifit's. Give the class to "
        f"both save and load, as trusted=[{type(thing).__name__}], or replace the object."
    )
