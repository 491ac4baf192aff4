"""A parameter declared once: name, type, default, domain and text in one line of its class.

    class Ridge(Declared, BaseEstimator):
        '''Least squares with an L2 penalty.'''

        alpha: float = Parameter(1.0, Real(0), "Strength of the penalty.")
        fit_intercept: bool = FIT_INTERCEPT

From the declaration come the constructor (with a signature that scikit-learn, editors and type checkers read), the
"Parameters" section of the docstring, the check at the start of `fit`, and the values that the contract tests
try and must see refused. A base class's parameters come first, in its order; a class that names one again replaces it
in its place; a class with a constructor of its own keeps it.
"""

from __future__ import annotations

import inspect
import numbers
import textwrap
from dataclasses import dataclass, field
from typing import Any, dataclass_transform

import numpy as np
from sklearn.utils import check_random_state

__all__ = [
    "FIT_INTERCEPT",
    "MAX_ITER",
    "N_JOBS",
    "RANDOM_STATE",
    "TOL",
    "VERBOSE",
    "WARM_START",
    "Any_",
    "Choice",
    "Declared",
    "Domain",
    "Either",
    "Flag",
    "Integer",
    "Named",
    "Nothing",
    "Parameter",
    "Real",
    "Seed",
    "check_parameters",
    "parameters_of",
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
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
            return f"a number{self._interval()}"
        number = float(value)
        above = number > self.low if self.open_low else number >= self.low
        below = number < self.high if self.open_high else number <= self.high
        fine = above and below and (np.isfinite(number) or (self.infinite and number == np.inf))
        return None if fine else f"a number{self._interval()}"

    def wrong_type(self, value: Any) -> bool:
        """Whatever is not a number."""
        return isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real)

    def _interval(self) -> str:
        left = "(" if self.open_low or np.isinf(self.low) else "["
        right = ")" if self.open_high or (np.isinf(self.high) and not self.infinite) else "]"
        return f" in {left}{self.low:g}, {self.high:g}{right}"

    def describe(self) -> str:
        """``float ≥ 0`` and the like."""
        if np.isinf(self.low) and np.isinf(self.high):
            return "float"
        if np.isinf(self.high):
            return f"float {'>' if self.open_low else '≥'} {self.low:g}"
        return f"float{self._interval()}"

    def nonsense(self) -> list[Any]:
        """Other types, NaN, and what lies beyond the ends."""
        out: list[Any] = [np.nan, "a", True]
        if np.isfinite(self.low):
            out += [self.low - 1.0] + ([self.low] if self.open_low else [])
        if np.isfinite(self.high):
            out += [self.high + 1.0] + ([self.high] if self.open_high else [])
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
        return isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral)

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
        out: list[Any] = [1.5, np.nan, "a"]
        if np.isfinite(self.low):
            out.append(int(self.low) - 1)
        if np.isfinite(self.high):
            out.append(int(self.high) + 1)
        return out


@dataclass(frozen=True)
class Flag(Domain):
    """True or False."""

    def refuses(self, value: Any) -> str | None:
        """Anything but a truth value."""
        return None if isinstance(value, (bool, np.bool_)) else "True or False"

    def wrong_type(self, value: Any) -> bool:
        """All that is refused."""
        return True

    def describe(self) -> str:
        """``bool``."""
        return "bool"

    def nonsense(self) -> list[Any]:
        """What people write instead."""
        return ["yes", 2, None]


@dataclass(frozen=True)
class Choice(Domain):
    """One of a few names."""

    names: tuple[Any, ...]

    def __init__(self, *names: Any) -> None:
        object.__setattr__(self, "names", names)

    def refuses(self, value: Any) -> str | None:
        """Whatever is not listed."""
        fine = isinstance(value, (str, bool, int, float, type(None))) and any(
            value is name or (type(value) is type(name) and value == name) for name in self.names
        )
        return None if fine else f"one of {', '.join(map(repr, self.names))}"

    def describe(self) -> str:
        """``{"a", "b"}``."""
        return "{" + ", ".join(f'"{name}"' if isinstance(name, str) else repr(name) for name in self.names) + "}"

    def nonsense(self) -> list[Any]:
        """Names that are not listed."""
        return ["no such name", 3.25]


@dataclass(frozen=True)
class Nothing(Domain):
    """None, and what it means goes into the text: ``Either(Nothing(), Integer(1))``."""

    def refuses(self, value: Any) -> str | None:
        """Anything but None."""
        return None if value is None else "None"

    def describe(self) -> str:
        """``None``."""
        return "None"


@dataclass(frozen=True)
class Seed(Domain):
    """None, a whole number, or a RandomState."""

    def refuses(self, value: Any) -> str | None:
        """What scikit-learn's own check refuses."""
        try:
            check_random_state(value)
        except (ValueError, TypeError):
            return "None, an integer in [0, 2**32 - 1], or a numpy.random.RandomState"
        return None

    def describe(self) -> str:
        """``int, RandomState or None``."""
        return "int, RandomState or None"

    def nonsense(self) -> list[Any]:
        """Seeds that are none."""
        return ["a", -1, 1.5, np.nan]


@dataclass(frozen=True)
class Named(Domain):
    """A name of a registry or an object of a type: ``Named("loss", Loss, LOSSES)``."""

    what: str
    kind: type | tuple[type, ...]
    registry: Any = ()

    def refuses(self, value: Any) -> str | None:
        """Unknown names and foreign objects."""
        if isinstance(value, str):
            fine = value in self.registry
        else:
            fine = isinstance(value, self.kind)
        kinds = self.kind if isinstance(self.kind, tuple) else (self.kind,)
        listed = ", ".join(repr(name) for name in self.registry)
        types = " or ".join(kind.__name__ for kind in kinds)
        return None if fine else f"{f'one of {listed}, or ' if listed else ''}an object of type {types}"

    def describe(self) -> str:
        """``str or Loss``."""
        kinds = self.kind if isinstance(self.kind, tuple) else (self.kind,)
        return " or ".join((["str"] if self.registry else []) + [kind.__name__ for kind in kinds])

    def nonsense(self) -> list[Any]:
        """Names and objects of another kind."""
        return [f"no such {self.what}", 3]


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
class Either(Domain):
    """Any of several domains."""

    parts: tuple[Domain, ...]

    def __init__(self, *parts: Domain) -> None:
        object.__setattr__(self, "parts", parts)

    def refuses(self, value: Any) -> str | None:
        """What every part refuses."""
        reasons = [part.refuses(value) for part in self.parts]
        if any(reason is None for reason in reasons):
            return None
        return ", or ".join(str(reason) for reason in reasons)

    def wrong_type(self, value: Any) -> bool:
        """When it is so for all parts that know types."""
        judged = [part.wrong_type(value) for part in self.parts if not isinstance(part, (Choice, Nothing))]
        return bool(judged) and all(judged) and not isinstance(value, str)

    def describe(self) -> str:
        """The parts, joined by "or"."""
        return " or ".join(part.describe() for part in self.parts)

    def nonsense(self) -> list[Any]:
        """What no part takes."""
        values = [value for part in self.parts for value in part.nonsense()]
        return [
            value for value in values if self.refuses(value) is not None or any(isinstance(p, Any_) for p in self.parts)
        ]


@dataclass(frozen=True)
class _Declaration:
    """Default, domain and text of a parameter."""

    default: Any
    domain: Domain
    text: str
    kind: str = field(default="")
    """The type in the docstring, where the domain's own words do not do."""

    def but(self, default: Any = ..., text: str | None = None, domain: Domain | None = None) -> Any:
        """The same parameter with another default, text or domain."""
        return _Declaration(
            self.default if default is ... else default,
            self.domain if domain is None else domain,
            self.text if text is None else text,
            self.kind,
        )


def Parameter(default: Any, domain: Domain, text: str, *, kind: str = "") -> Any:  # noqa: N802 - reads as a declaration
    """Declare a parameter in the body of a class.

    Parameters
    ----------
    default : object
        Its default; must not be mutable.
    domain : Domain
        The values it may have.
    text : str
        What it means, for the docstring.
    kind : str
        Its type in the docstring; the domain's own words by default.

    Returns
    -------
    Any
        Typed so that ``alpha: float = Parameter(1.0, …)`` is what type checkers expect.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from certifit.parameters import Declared, Integer, Parameter, check_parameters
    >>> class Mean(Declared, BaseEstimator):
    ...     '''The mean of the last rows.'''
    ...     rows: int = Parameter(3, Integer(1), "How many rows.")
    >>> Mean(rows=5).get_params()
    {'rows': 5}
    >>> check_parameters(Mean(rows=0))
    Traceback (most recent call last):
    ValueError: rows must be an integer in [1, inf); got 0.
    """
    return _Declaration(default, domain, text, kind)


@dataclass_transform(field_specifiers=(Parameter,))
class Declared:
    """A class whose constructor, documentation and checks come from its declared parameters.

    Subclasses of scikit-learn's BaseEstimator put this first among their bases.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = {name: value for name, value in vars(cls).items() if isinstance(value, _Declaration)}
        for name in own:
            delattr(cls, name)  # a fitted or unfitted instance has the value, never the class
        inherited: dict[str, _Declaration] = {}
        for base in reversed(cls.__mro__[1:]):
            for name, declaration in vars(base).get("__own_parameters__", {}).items():
                inherited[name] = declaration
        cls.__own_parameters__ = own  # type: ignore[attr-defined]
        dropped = vars(cls).get("__without__", ())
        declared = {name: value for name, value in {**inherited, **own}.items() if name not in dropped}
        order = vars(cls).get("__order__")
        if order is not None:
            declared = {name: declared[name] for name in order}
        cls.__parameters__ = declared  # type: ignore[attr-defined]
        if declared and "__init__" not in vars(cls):
            setattr(cls, "__init__", _constructor(cls, declared))  # noqa: B010 - mypy forbids the plain assignment
        if declared and cls.__doc__:
            cls.__doc__ = _documented(cls.__doc__, declared)


def _constructor(cls: type, declared: dict[str, _Declaration]) -> Any:
    """A plain function with the signature of the declarations, as if written by hand."""
    hints = {
        name: hint for base in reversed(cls.__mro__) for name, hint in vars(base).get("__annotations__", {}).items()
    }
    arguments = ", ".join(f"{name}=_defaults[{name!r}]" for name in declared)
    body = "\n".join(f"    self.{name} = {name}" for name in declared)
    space: dict[str, Any] = {"_defaults": {name: value.default for name, value in declared.items()}}
    exec(f"def __init__(self, {arguments}):\n{body}\n", space)
    function = space["__init__"]
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    function.__module__ = cls.__module__
    function.__doc__ = "Keep the arguments as they are; `fit` checks them."
    function.__annotations__ = {name: hints.get(name, Any) for name in declared} | {"return": None}
    return function


def _documented(doc: str, declared: dict[str, _Declaration]) -> str:
    """The docstring with a numpydoc section of the parameters before its other sections."""
    doc = inspect.cleandoc(doc)
    if "\nParameters\n----------\n" in doc:
        return doc
    entries = []
    for name, one in declared.items():
        shown = f'"{one.default}"' if isinstance(one.default, str) else repr(one.default)
        entries.append(f"{name} : {one.kind or one.domain.describe()}, default={shown}")
        entries += textwrap.wrap(one.text, 110, initial_indent="    ", subsequent_indent="    ")
    section = "Parameters\n----------\n" + "\n".join(entries)
    for title in ("Attributes", "See Also", "Notes", "References", "Examples"):
        mark = f"\n{title}\n{'-' * len(title)}\n"
        if mark in doc:
            before, after = doc.split(mark, 1)
            return f"{before.rstrip()}\n\n{section}\n{mark}{after}"
    return f"{doc.rstrip()}\n\n{section}\n"


def parameters_of(cls: type) -> dict[str, Any]:
    """The declarations of a class, by name; each has `default`, `domain`, `text`."""
    return dict(getattr(cls, "__parameters__", {}))


def check_parameters(estimator: Any) -> None:
    """Every declared parameter inside its domain, or an error that names it, what was found and what is wanted."""
    for name, declared in parameters_of(type(estimator)).items():
        value = getattr(estimator, name)
        wanted = declared.domain.refuses(value)
        if wanted is None:
            continue
        if declared.domain.wrong_type(value):
            raise TypeError(f"{name} must be {wanted}; got {value!r} of type {type(value).__name__}.")
        raise ValueError(f"{name} must be {wanted}; got {value!r}.")


FIT_INTERCEPT = Parameter(True, Flag(), "Whether to fit the unpenalized intercept b.")
TOL = Parameter(1e-6, Real(0), "Wanted relative gap of the certificate.")
MAX_ITER = Parameter(1000, Integer(1), "Most iterations.")
N_JOBS = Parameter(
    None, Either(Nothing(), Integer()), "Threads of the native kernels; None takes what is granted, -1 all."
)
VERBOSE = Parameter(0, Integer(0), "1 shows a progress bar.")
RANDOM_STATE = Parameter(None, Seed(), "Seed of what is drawn at random.")
WARM_START = Parameter(False, Flag(), "Whether `fit` goes on from the last fit.")
