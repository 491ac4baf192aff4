"""The mechanism of declared parameters: constructor, documentation and checks from one line of the class body.

A base class's parameters come first, in its order; a class that names one again replaces it in its place, and those after
``_: KW_ONLY`` are given by name only, as in dataclasses. The parameters of a class with ``kw_only=True`` come behind those of
the classes derived from it: to type checkers they are given by name only, and the constructor takes them by place too. A class
that lists names in ``__order__`` has these, in this order. A class with a constructor of its own keeps it.
"""

from __future__ import annotations

import functools
import inspect
import textwrap
import warnings
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, dataclass_transform

from certifit.parameters.domains import Choice, Domain
from certifit.parameters.methods import complete_methods

__all__ = ["Declared", "Fitted", "OneOf", "Parameter", "check_parameters", "parameters_of"]

WIDTH = 116
LATER_SECTIONS = ("See Also", "Notes", "References", "Examples")


@dataclass(frozen=True)
class _Declaration:
    """Default, domain and text of a parameter."""

    default: Any
    domain: Domain
    text: str
    kind: str = ""
    """The type in the docstring, where the domain's own words do not do."""
    keyword: bool = False
    """Whether it is given by name only."""
    was: str = ""
    """Its name in earlier releases, which is still understood."""

    @functools.cached_property
    def default_fits(self) -> bool:
        """Whether the default lies in the domain; one that must be given has a default outside."""
        return self.domain.refuses(self.default) is None

    def but(self, default: Any = ..., text: str | None = None, domain: Domain | None = None, kind: str = "") -> Any:
        """The same parameter with another default, text or domain."""
        return _Declaration(
            self.default if default is ... else default,
            self.domain if domain is None else domain,
            self.text if text is None else text,
            kind or (self.kind if domain is None else ""),
            was=self.was,
        )

    def heading(self) -> str:
        """Type and default, as numpydoc writes them after the name."""
        shown = f'"{self.default}"' if isinstance(self.default, str) else repr(self.default)
        return f"{self.kind or self.domain.describe()}, default={shown}"


@dataclass(frozen=True)
class _Attribute:
    """Type and text of what `fit` leaves behind."""

    kind: str
    text: str

    def heading(self) -> str:
        """The type."""
        return self.kind


def Parameter(  # noqa: N802 - reads as a declaration
    default: Any, domain: Domain, text: str, *, kind: str = "", was: str = ""
) -> Any:
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
    was : str
        Its name in earlier releases: understood by the constructor, `set_params`, reading and old files, with a warning where
        somebody writes it.

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
    return _Declaration(default, domain, text, kind, was=was)


def OneOf(words: tuple[str, ...], text: str) -> Any:  # noqa: N802 - as above
    """Declare a parameter that is one of several words, of which the first is its default.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from certifit.parameters import Declared, OneOf, check_parameters
    >>> class Center(Declared, BaseEstimator):
    ...     '''The middle of numbers.'''
    ...     of: str = OneOf(("mean", "median"), "Which middle.")
    >>> Center().of
    'mean'
    >>> check_parameters(Center(of="mode"))
    Traceback (most recent call last):
    ValueError: of must be one of 'mean', 'median'; got 'mode'.
    """
    return Parameter(words[0], Choice(*words), text)


def Fitted(kind: str = "", text: str = "", *, init: Literal[False] = False) -> Any:  # noqa: N802 - as above
    """Declare a fitted attribute in the body of a class: no parameter, and a line of the "Attributes" section.

    Parameters
    ----------
    kind : str
        Its type in the docstring; without one the attribute is not documented.
    text : str
        What it holds.
    init : bool
        Tells type checkers that no constructor takes it.

    Returns
    -------
    Any
        Typed so that ``coef_: Array = Fitted(…)`` is what type checkers expect.
    """
    return _Attribute(kind, text)


# Parameter is no "field specifier": to type checkers it is then the default itself, which is what editors need to know.
@dataclass_transform(eq_default=False, field_specifiers=(Fitted,))
class Declared:
    """A class whose constructor, documentation and checks come from its declared parameters.

    Subclasses of scikit-learn's BaseEstimator put this first among their bases.
    """

    def __init_subclass__(cls, *, kw_only: bool = False, takes: dict[str, str] | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if takes is not None:
            setattr(cls, "__takes__", takes)  # noqa: B010 - mypy forbids the plain assignment
        setattr(cls, "__last__", kw_only)  # noqa: B010 - as above
        own = {name: value for name, value in vars(cls).items() if isinstance(value, (_Declaration, _Attribute))}
        for name in own:
            delattr(cls, name)  # an instance has the value, never the class
        for name in _after_keyword_mark(cls):
            if isinstance(one := own.get(name), _Declaration):
                own[name] = replace(one, keyword=True)
        setattr(cls, "__own_declarations__", own)  # noqa: B010 - as above
        declared = _of_all_bases(cls)
        if "__order__" in vars(cls):
            fitted = {name: value for name, value in declared.items() if isinstance(value, _Attribute)}
            declared = {name: declared[name] for name in vars(cls)["__order__"]} | fitted
        parameters = {name: value for name, value in declared.items() if isinstance(value, _Declaration)}
        setattr(cls, "__parameters__", parameters)  # noqa: B010 - as above
        old = {value.was: name for name, value in parameters.items() if value.was}
        setattr(cls, "__old_names__", old)  # noqa: B010 - as above
        if parameters and "__init__" not in vars(cls):
            setattr(cls, "__init__", _constructor(cls, parameters))  # noqa: B010 - as above
        if cls.__doc__:
            cls.__doc__ = _documented(cls.__doc__, declared)
        complete_methods(cls)

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name; names of earlier releases are understood, with a warning."""
        return super().set_params(**_by_new_names(type(self), params))  # type: ignore[misc]

    def __getattr__(self, name: str) -> Any:
        """A parameter under its old name, one that an old file holds under it, or the default of one that it did not know."""
        old_names: dict[str, str] = type(self).__dict__.get("__old_names__", {})
        other = old_names.get(name) or next((old for old, new in old_names.items() if new == name), None)
        if other is not None and other in vars(self):
            return vars(self)[other]
        parameters = type(self).__dict__.get("__parameters__", {})
        if name in parameters:
            return parameters[name].default
        return object.__getattribute__(self, name)  # raises once more, a property in its own words


def _of_all_bases(cls: type) -> dict[str, Any]:
    """Declarations of a class and its bases in the order of the constructor, each as the class nearest to it has it."""
    firsts: dict[str, Any] = {}
    lasts: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        for name, one in vars(base).get("__own_declarations__", {}).items():
            place = lasts if name in lasts or (vars(base)["__last__"] and name not in firsts) else firsts
            place[name] = one
    return firsts | lasts


def _by_new_names(cls: type, params: dict[str, Any]) -> dict[str, Any]:
    """Arguments under the names of this release."""
    old_names: dict[str, str] = cls.__dict__.get("__old_names__", {})
    for old in [name for name in params if name in old_names]:
        new = old_names[old]
        if new in params:
            raise TypeError(f"{cls.__name__} got {old} and {new}, which are the old and the new name of one parameter.")
        warnings.warn(f"{cls.__name__}: the parameter {old} is called {new} now.", FutureWarning, stacklevel=3)
        params = {new if name == old else name: value for name, value in params.items()}
    return params


def _after_keyword_mark(cls: type) -> list[str]:
    """Names annotated after ``_: KW_ONLY`` in the body of the class itself."""
    names = list(inspect.get_annotations(cls))
    marks = [i for i, hint in enumerate(inspect.get_annotations(cls).values()) if hint in (KW_ONLY, "KW_ONLY")]
    return names[marks[0] + 1 :] if marks else []


def _constructor(cls: type, parameters: dict[str, _Declaration]) -> Any:
    """A plain function with the signature of the declarations, as if written by hand."""
    hints = {name: hint for base in reversed(cls.__mro__) for name, hint in inspect.get_annotations(base).items()}
    places = {name: f"{name}=_defaults[{name!r}]" for name in parameters}
    free = [places[name] for name, value in parameters.items() if not value.keyword]
    named = [places[name] for name, value in parameters.items() if value.keyword]
    arguments = ", ".join([*free, *(["*"] if named else []), *named])
    body = "\n".join(f"    self.{name} = {name}" for name in parameters)
    space: dict[str, Any] = {"_defaults": {name: value.default for name, value in parameters.items()}}
    exec(f"def __init__(self, {arguments}):\n{body}\n", space)
    function = space["__init__"]
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    function.__module__ = cls.__module__
    function.__doc__ = "Keep the arguments as they are; `fit` checks them."
    function.__annotations__ = {name: hints.get(name, Any) for name in parameters} | {"return": None}
    return _understanding_old_names(function) if any(value.was for value in parameters.values()) else function


def _understanding_old_names(plain: Any) -> Any:
    """The constructor, to the eye the same, that takes arguments under their old names too."""

    @functools.wraps(plain)
    def keep(self: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **_by_new_names(type(self), kwargs))

    return keep


def _documented(doc: str, declared: dict[str, Any]) -> str:
    """The docstring with its numpydoc sections of parameters and fitted attributes.

    A section of parameters written by hand stays as it is; attributes written by hand come before the declared ones.
    """
    doc = inspect.cleandoc(doc)
    parameters = _section(doc, "Parameters") or _entries(declared.items(), _Declaration)
    attributes = "\n".join(filter(None, [_section(doc, "Attributes"), _entries(declared.items(), _Attribute)]))
    for title in ("Parameters", "Attributes"):
        if (body := _section(doc, title)) is not None:
            doc = doc.replace(f"\n{title}\n{'-' * len(title)}\n{body}", "", 1)
    starts = [doc.find(f"\n{title}\n{'-' * len(title)}\n") for title in LATER_SECTIONS]
    cut = min((start for start in starts if start >= 0), default=len(doc))
    parts = [doc[:cut].rstrip()]
    parts += [f"Parameters\n----------\n{parameters}"] if parameters else []
    parts += [f"Attributes\n----------\n{attributes}"] if attributes else []
    parts += [doc[cut:].strip("\n")] if cut < len(doc) else []
    return "\n\n".join(parts) + "\n"


def _section(doc: str, title: str) -> str | None:
    """What stands under a heading, to the next heading or the end."""
    _, found, rest = doc.partition(f"\n{title}\n{'-' * len(title)}\n")
    if not found:
        return None
    lines = rest.split("\n")
    ends = [i - 1 for i, line in enumerate(lines) if i > 0 and line and set(line) == {"-"}]
    return "\n".join(lines[: min(ends, default=len(lines))]).rstrip("\n")


def _entries(declared: Iterable[tuple[str, Any]], sort: type[_Declaration] | type[_Attribute]) -> str:
    """One entry of numpydoc for each declaration of a sort that has a type to show."""
    lines: list[str] = []
    for name, one in declared:
        if not isinstance(one, sort) or not one.heading():
            continue
        lines.append(f"{name} : {one.heading()}")
        lines += textwrap.wrap(one.text, WIDTH, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


def parameters_of(cls: type) -> dict[str, Any]:
    """The declarations of a class, by name; each has `default`, `domain`, `text`."""
    return dict(getattr(cls, "__parameters__", {}))


def check_parameters(estimator: Any) -> None:
    """Every declared parameter inside its domain, or an error that names it, what was found and what is wanted."""
    for name, declared in getattr(type(estimator), "__parameters__", {}).items():
        value, domain = getattr(estimator, name), declared.domain
        if value is declared.default and declared.default_fits:
            continue
        wanted = domain.refuses(value)
        if wanted is None:
            continue
        found = domain.found(value)
        if not domain.wrong_type(value):
            raise ValueError(f"{name} must be {wanted}; got {found}.")
        raise TypeError(
            f"{name} must be {wanted}; got {found}{f' of type {type(value).__name__}' if found == repr(value) else ''}."
        )
