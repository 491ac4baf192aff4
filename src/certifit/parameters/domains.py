"""The values a parameter may have: what is refused, what the docstring says, and the nonsense that tests try."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

__all__ = [
    "Any_",
    "Choice",
    "Domain",
    "Either",
    "Flag",
    "Folds",
    "Function",
    "Given",
    "Integer",
    "Learner",
    "Named",
    "Nothing",
    "Real",
    "Reals",
    "Seed",
    "Threads",
]


class Domain:
    """The values a parameter may have."""

    def refuses(self, value: Any) -> str | None:
        """What is wanted instead of the value; None if it is fine."""
        raise TypeError(f"{type(self).__name__} must say what it refuses.")

    def describe(self) -> str:
        """The values in the words of a docstring: ``float in (0, 1]``."""
        raise TypeError(f"{type(self).__name__} must describe itself.")

    def nonsense(self) -> list[Any]:
        """Values outside, for the contract tests."""
        return []

    def wrong_type(self, value: Any) -> bool:
        """Whether a refused value is of a wrong type (a TypeError) and not merely outside (a ValueError)."""
        return False

    def found(self, value: Any) -> str:
        """A refused value as the error tells it."""
        return repr(value)


class Sort(Domain):
    """A type by itself: whatever is refused is of another one."""

    words: str
    wrong: tuple[Any, ...] = ()

    def wrong_type(self, value: Any) -> bool:
        """All that is refused."""
        return True

    def describe(self) -> str:
        """The words."""
        return self.words

    def nonsense(self) -> list[Any]:
        """As given."""
        return list(self.wrong)


def _is_truth(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


@dataclass(frozen=True)
class Real(Domain):
    """A finite number in an interval; ``open_low``, ``open_high`` leave its ends out, `infinite` admits +∞."""

    low: float = -np.inf
    high: float = np.inf
    open_low: bool = False
    open_high: bool = False
    infinite: bool = False

    def refuses(self, value: Any) -> str | None:
        """Anything but a number inside."""
        if self.wrong_type(value):
            return f"a number{self.interval()}"
        number = float(value)
        above = number > self.low if self.open_low else number >= self.low
        below = number < self.high if self.open_high else number <= self.high
        fine = above and below and (math.isfinite(number) or (self.infinite and number == math.inf))
        return None if fine else f"a number{self.interval()}"

    def wrong_type(self, value: Any) -> bool:
        """Whatever is not a number."""
        return _is_truth(value) or not isinstance(value, numbers.Real)

    def interval(self) -> str:
        """``in [0, inf)`` and the like, after a space."""
        left = "(" if self.open_low or np.isinf(self.low) else "["
        right = ")" if self.open_high or (np.isinf(self.high) and not self.infinite) else "]"
        return f" in {left}{self.low:g}, {self.high:g}{right}"

    def describe(self) -> str:
        """``float ≥ 0`` and the like."""
        if np.isinf(self.low) and np.isinf(self.high):
            return "float"
        if np.isinf(self.high):
            return f"float {'>' if self.open_low else '≥'} {self.low:g}"
        return f"float{self.interval()}"

    def nonsense(self) -> list[Any]:
        """Other types, NaN, and what lies beyond the ends."""
        out: list[Any] = [np.nan, "a", True, None]
        if np.isfinite(self.low):
            out += [self.low - 1.0] + ([float(self.low)] if self.open_low else [])
        if np.isfinite(self.high):
            out += [self.high + 1.0] + ([float(self.high)] if self.open_high else [])
        elif not self.infinite:
            out.append(np.inf)
        return out


@dataclass(frozen=True)
class Integer(Domain):
    """A whole number in an interval."""

    low: float = -np.inf
    high: float = np.inf

    def refuses(self, value: Any) -> str | None:
        """Anything but a whole number inside."""
        fine = not self.wrong_type(value) and self.low <= value <= self.high
        return None if fine else f"an integer{self._interval()}"

    def wrong_type(self, value: Any) -> bool:
        """Whatever is no whole number."""
        return _is_truth(value) or not isinstance(value, numbers.Integral)

    def _interval(self) -> str:
        left, right = "(" if np.isinf(self.low) else "[", ")" if np.isinf(self.high) else "]"
        return f" in {left}{self.low:g}, {self.high:g}{right}"

    def describe(self) -> str:
        """``int ≥ 1`` and the like."""
        if np.isinf(self.low) and np.isinf(self.high):
            return "int"
        return f"int ≥ {self.low:g}" if np.isinf(self.high) else f"int{self._interval()}"

    def nonsense(self) -> list[Any]:
        """Fractions, other types, and what lies beyond the ends."""
        out: list[Any] = [1.5, np.nan, "a", None]
        if np.isfinite(self.low):
            out += [int(self.low) - 1, int(self.low) - 2]
        if np.isfinite(self.high):
            out.append(int(self.high) + 1)
        return out


@dataclass(frozen=True)
class Reals(Domain):
    """A sequence of one number or more, each in an interval."""

    low: float = -np.inf
    high: float = np.inf
    open_low: bool = False
    shape: str = "array"
    """What the docstring calls it."""

    def _entry(self) -> Real:
        return Real(self.low, self.high, self.open_low)

    def _outside(self, value: Any) -> list[tuple[int, Any]]:
        """Position and value of the first entry that is outside, if there is one."""
        entry = self._entry()
        return next(([(i, found)] for i, found in enumerate(value) if entry.refuses(found) is not None), [])

    def refuses(self, value: Any) -> str | None:
        """Scalars, text, nothing, and entries outside."""
        if self._is_sequence(value) and len(value) > 0 and not self._outside(value):
            return None
        return f"a sequence of numbers{self._entry().interval()}"

    def _is_sequence(self, value: Any) -> bool:
        sized = isinstance(value, Iterable) and hasattr(value, "__len__")
        return sized and not isinstance(value, (str, bytes, Mapping))

    def wrong_type(self, value: Any) -> bool:
        """What is no sequence at all, or not of numbers; a nested one has the wrong shape only."""
        return not self._is_sequence(value) or any(
            self._entry().wrong_type(entry) and not self._is_sequence(entry) for _, entry in self._outside(value)
        )

    def found(self, value: Any) -> str:
        """The first entry that is outside."""
        outside = self._outside(value) if self._is_sequence(value) else []
        return next((f"{entry!r} at position {i}" for i, entry in outside), repr(value))

    def describe(self) -> str:
        """``array``, or the shape."""
        return self.shape

    def nonsense(self) -> list[Any]:
        """Nothing, text, NaN, and what lies beyond the ends."""
        beyond = [[self.low - 1.0]] if np.isfinite(self.low) else []
        return [[], [np.nan], "a", [[1.0, 2.0]], *beyond]


@dataclass(frozen=True)
class Flag(Sort):
    """True or False."""

    words, wrong = "bool", ("yes", 2, None)

    def refuses(self, value: Any) -> str | None:
        """Anything but a truth value."""
        return None if _is_truth(value) else "True or False"


@dataclass(frozen=True)
class Choice(Domain):
    """One of a few names."""

    names: tuple[Any, ...]

    def __init__(self, *names: Any) -> None:
        object.__setattr__(self, "names", names)

    def refuses(self, value: Any) -> str | None:
        """Whatever is not listed."""
        fine = any(value is name or (type(value) is type(name) and value == name) for name in self.names)
        listed = ", ".join(map(repr, self.names))
        return None if fine else (f"one of {listed}" if len(self.names) > 1 else listed)

    def describe(self) -> str:
        """``{"a", "b"}``."""
        shown = [f'"{name}"' if isinstance(name, str) else repr(name) for name in self.names]
        return shown[0] if len(shown) == 1 else "{" + ", ".join(shown) + "}"

    def nonsense(self) -> list[Any]:
        """Names that are not listed."""
        return [value for value in ("no such name", 3, True, None) if self.refuses(value) is not None]


@dataclass(frozen=True)
class Nothing(Sort):
    """None, and what it means goes into the text: ``Either(Integer(1), Nothing())``."""

    words = "None"

    def refuses(self, value: Any) -> str | None:
        """Anything but None."""
        return None if value is None else "None"


@dataclass(frozen=True)
class Seed(Domain):
    """None, a whole number, or a RandomState."""

    def refuses(self, value: Any) -> str | None:
        """What scikit-learn's own check refuses."""
        if type(value) is int and 0 <= value < 2**32:  # to make the generator takes longer than a small fit
            return None
        try:
            check_random_state(value)
        except (ValueError, TypeError):
            return f"None, an integer in [0, {2**32 - 1}], or a numpy.random.RandomState"
        return None

    def describe(self) -> str:
        """``int, RandomState or None``."""
        return "int, RandomState or None"

    def nonsense(self) -> list[Any]:
        """Seeds that are none."""
        return ["a", -1, 1.5, np.nan]


@dataclass(frozen=True)
class Threads(Domain):
    """A number of threads: None for what is granted, negative ones count from all."""

    def refuses(self, value: Any) -> str | None:
        """No threads at all."""
        fine = value is None or (not self.wrong_type(value) and value != 0)
        return None if fine else "a number of threads (an integer, not 0), -1 for all, or None for what is granted"

    def wrong_type(self, value: Any) -> bool:
        """Whatever is no whole number."""
        return Integer().wrong_type(value)

    def describe(self) -> str:
        """``int or None``."""
        return "int or None"

    def nonsense(self) -> list[Any]:
        """What counts no threads."""
        return ["a", 1.5, 0, np.nan]


@dataclass(frozen=True)
class Folds(Domain):
    """Folds by number, by a splitter, or row by row."""

    def refuses(self, value: Any) -> str | None:
        """What cannot be split by."""
        if value is None or (hasattr(value, "split") and not isinstance(value, str)):
            return None
        if isinstance(value, numbers.Real):
            fine = Integer(2).refuses(value) is None
        else:
            fine = isinstance(value, Iterable) and not isinstance(value, str)
        return None if fine else "an integer >= 2, a splitter, an iterable of pairs (train, test) or None"

    def wrong_type(self, value: Any) -> bool:
        """Numbers that are not whole, and what nothing can be drawn from."""
        return Integer().wrong_type(value) and not isinstance(value, Iterable)

    def describe(self) -> str:
        """``int, splitter or list of (train, test)``."""
        return "int ≥ 2, splitter, list of (train, test) or None"

    def nonsense(self) -> list[Any]:
        """What splits nothing."""
        return [1, -2, 1.5, "a"]


@dataclass(frozen=True)
class Learner(Sort):
    """An estimator whose copies are trained, given as an object; it needs one of these methods beside `fit`."""

    methods: tuple[str, ...] = ("predict",)
    example: str = "DecisionTreeClassifier()"
    words, wrong = "estimator", ("tree", 3, int)

    def refuses(self, value: Any) -> str | None:
        """Classes, and what does not learn."""
        learns = all(hasattr(value, name) for name in ("fit", "get_params"))
        if not isinstance(value, type) and learns and any(hasattr(value, name) for name in self.methods):
            return None
        return f"an object with fit, get_params and {' or '.join(self.methods)}, such as {self.example}"


@dataclass(frozen=True)
class Function(Sort):
    """A function, given by itself; the text says of what."""

    words, wrong = "callable", (3, int)

    def refuses(self, value: Any) -> str | None:
        """Whatever cannot be called, and classes."""
        return None if callable(value) and not isinstance(value, type) else "a function"


@dataclass(frozen=True)
class Named(Domain):
    """A name of a registry or an object of a type: ``Named("certifit.losses.Loss", Loss, LOSSES)``."""

    public: str
    """Where users find the type."""
    kind: type
    registry: Collection[str] = ()

    def refuses(self, value: Any) -> str | None:
        """Unknown names and foreign objects."""
        if isinstance(value, self.kind) or (isinstance(value, str) and value in self.registry):
            return None
        listed = f"one of {', '.join(map(repr, self.registry))}, or " if self.registry else ""
        return f"{listed}an instance of {self.public}"

    def describe(self) -> str:
        """``str or Loss``."""
        return f"{'str or ' if self.registry else ''}{self.kind.__name__}"

    def nonsense(self) -> list[Any]:
        """Names and objects of another kind."""
        return ["no such name", 3, None]


@dataclass(frozen=True)
class Any_(Domain):  # noqa: N801 - `Any` is taken
    """What only `fit` can judge, since it depends on the data; described in words, with nonsense given by hand."""

    words: str
    wrong: tuple[Any, ...] = ()

    def refuses(self, value: Any) -> str | None:
        """Nothing: `fit` does."""
        return None

    def describe(self) -> str:
        """The words."""
        return self.words

    def nonsense(self) -> list[Any]:
        """As given."""
        return list(self.wrong)


@dataclass(frozen=True)
class Given(Any_):
    """An array, a sequence or a mapping, of which only `fit` can judge more."""

    def nonsense(self) -> list[Any]:
        """Text, a number, and as given."""
        return ["no such name", 3, *self.wrong]

    def refuses(self, value: Any) -> str | None:
        """Text and scalars."""
        if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
            return None
        return f"{'an' if self.words[0] in 'aeiou' else 'a'} {self.words}"

    def wrong_type(self, value: Any) -> bool:
        """All that is refused."""
        return True


@dataclass(frozen=True)
class Either(Domain):
    """Any of several domains."""

    parts: tuple[Domain, ...]

    def __init__(self, *parts: Domain) -> None:
        object.__setattr__(self, "parts", parts)

    def refuses(self, value: Any) -> str | None:
        """What every part refuses."""
        reasons = []
        for part in self.parts:
            reason = part.refuses(value)
            if reason is None:
                return None
            reasons.append(reason)
        return f"{', '.join(reasons[:-1])}, or {reasons[-1]}"

    def wrong_type(self, value: Any) -> bool:
        """When it is so for all parts; a text is of the type of a part that has names."""
        named = isinstance(value, str) and any(isinstance(part, (Choice, Named)) for part in self.parts)
        return not named and all(part.wrong_type(value) or isinstance(part, (Choice, Named)) for part in self.parts)

    def found(self, value: Any) -> str:
        """As a part tells it that looks closer."""
        return next((told for part in self.parts if (told := part.found(value)) != repr(value)), repr(value))

    def describe(self) -> str:
        """The parts, with "or" before the last."""
        words = [part.describe() for part in self.parts]
        return f"{', '.join(words[:-1])} or {words[-1]}"

    def nonsense(self) -> list[Any]:
        """What no part takes and what only `fit` refuses, each once."""
        by_fit = [value for part in self.parts if isinstance(part, Any_) for value in part.wrong]
        values = [value for part in self.parts for value in part.nonsense() if self.refuses(value) is not None]
        return list({repr(value): value for value in [*values, *by_fit]}.values())
