"""Text of others, made fit to be shown: names of columns, labels and notes come from files nobody has read yet."""

from __future__ import annotations

import inspect
import json
import re
import reprlib
from collections.abc import Sequence
from typing import Any

__all__ = ["brief", "json_text", "listing", "plain_number", "printable"]

# Control characters command terminals, lone surrogates have no encoding, overrides of the writing direction turn the text
# around them, and a line must stay a line.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: Any) -> str:
    r"""The text on one line, with characters that would steer a terminal written as escapes.

    Examples
    --------
    >>> from certifit.printable import printable
    >>> printable("pri\x1b[2Jce\n€")
    'pri\\x1b[2Jce\\n€'
    """
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), str(text))


def plain_number(value: float, spec: str = ".4g") -> str:
    """A number in a sentence: thousands apart, and no exponent for everyday sizes.

    Examples
    --------
    >>> from certifit.printable import plain_number
    >>> plain_number(1651234.5), plain_number(4216.2), plain_number(0.0821, ".4f"), plain_number(3.2e-9), plain_number(2e12)
    ('1,651,234', '4,216', '0.0821', '3.2e-09', '2e+12')
    """
    text = format(value, f",{spec}")
    return f"{value:,.0f}" if "e" in text and 1.0 <= abs(value) < 1e9 else text


def listing(names: Sequence[str]) -> str:
    """Names as a sentence lists them.

    Examples
    --------
    >>> from certifit.printable import listing
    >>> listing(["a"]), listing(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def json_text(value: Any, indent: int | None = None) -> str:
    r"""A value as JSON in which letters of all languages are themselves and what steers a terminal is escaped.

    Examples
    --------
    >>> from certifit.printable import json_text
    >>> json_text({"né": "a\x9b31m"})
    '{"né": "a\\u009b31m"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    # Line ends stand between values only: within texts json has written them as escapes already.
    lines = (_UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", line) for line in text.split("\n"))
    return "\n".join(lines)


class _Brief(reprlib.Repr):
    """`repr` that ends: no code of the objects runs, and depth and length are bounded whatever they share."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother = 5, 80, 80
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = self.maxarray = 6

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if x.bit_length() <= 128 else f"integer of {x.bit_length()} bits"

    def repr_float(self, x: float, level: int) -> str:
        return repr(x)

    def repr_bool(self, x: bool, level: int) -> str:
        return repr(x)

    def repr_NoneType(self, x: None, level: int) -> str:  # noqa: N802 - found by the name of the type
        return "None"

    def repr_ndarray(self, x: Any, level: int) -> str:
        return f"array of shape {x.shape}, {x.dtype}"

    def repr_instance(self, x: Any, level: int) -> str:
        if level <= 0:
            return "…"
        parts = (f"{name}={self.repr1(value, level - 1)}" for name, value in _arguments(x).items())
        return f"{type(x).__name__}({', '.join(parts)})"


def _arguments(thing: Any) -> dict[str, Any]:
    """What the constructor was given, as far as the instance keeps it and it is not the default."""
    state = getattr(thing, "__dict__", {})
    wanted = inspect.signature(type(thing)).parameters if callable(type(thing)) else {}
    found = {}
    for name, parameter in wanted.items():
        if name in state:
            value, default = state[name], parameter.default
            same = type(value) is type(default) and isinstance(value, (bool, int, float, str)) and value == default
            if value is not default and not same:
                found[name] = value
    return found


def brief(thing: Any) -> str:
    """A model in a line: its class and the arguments that are not the defaults, as far as they fit.

    Examples
    --------
    >>> from certifit import Ridge
    >>> from certifit.printable import brief
    >>> brief(Ridge(alpha=0.5))
    'Ridge(alpha=0.5)'
    >>> pair = (1, 2)
    >>> for _ in range(50):
    ...     pair = (pair, pair)
    >>> brief(Ridge(alpha=pair))
    'Ridge(alpha=((((..., ...), (..., ...)), ((..., ...), (..., ...))), ...
    """
    return printable(_BRIEF.repr(thing))


_BRIEF = _Brief()
