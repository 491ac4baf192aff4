"""Numbers as a reader wants to see them on the page and the terminal: thousands apart, as many digits as mean something."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any, TypeGuard

__all__ = [
    "ABSENT",
    "aligned",
    "compact",
    "count",
    "duration",
    "fixed",
    "interval",
    "is_number",
    "moment",
    "number",
    "percent",
    "readable",
    "with_format",
]

ABSENT = "–"
"""What stands where there is no number."""

SPEC = re.compile(r"\.\d{1,2}[feg]")


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value of the run is a finite number (a truth value is not)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _minus(text: str) -> str:
    """A number's text with a minus sign instead of a hyphen, and no negative zero."""
    if text.startswith("-") and not text.strip("-0.,e+"):
        text = text[1:]
    return text.replace("-", "−")


def number(value: Any, digits: int = 3) -> str:
    """
    A number to so many significant digits.

    Examples
    --------
    >>> number(1234567.8), number(2006), number(-0.012345), number(3.1e-7), number(None)
    ('1,234,568', '2006', '−0.0123', '3.1e−07', '–')
    """
    if not is_number(value):
        return ABSENT
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if not -4 <= size < 9:
        text = f"{value:.{digits - 1}e}"
        mantissa, _, exponent = text.partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return _minus(f"{mantissa}e{exponent}")
    apart = "," if size >= 4 else ""  # 2006 may be a year
    text = f"{value:{apart}.{max(0, digits - 1 - size)}f}"
    if isinstance(value, int) or float(value).is_integer():
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return _minus(text)


def compact(value: Any) -> str:
    """
    A number to six significant digits without idle zeros: settings, objectives.

    Examples
    --------
    >>> compact(0.05), compact(140), compact(0.331), compact(8.2e-7)
    ('0.05', '140', '0.331', '8.2e−07')
    """
    return _minus(f"{value:,.6g}") if is_number(value) else ABSENT


def with_format(value: Any, spec: Any) -> str:
    """A score with the format its metric asks for (``".4f"``); a format that is none falls back on `number`."""
    if not is_number(value):
        return ABSENT
    if not isinstance(spec, str) or not SPEC.fullmatch(spec):
        return number(value, 4)
    return _minus(format(value, f",{spec}"))


def fixed(spec: Any, value: Any) -> str | None:
    """
    A format with as many decimals for every number as a significant-digits format gives to one of them.

    Numbers under one another are compared at a glance only if their decimal points are.

    Examples
    --------
    >>> fixed(".4g", 34.12), fixed(".4g", 0.0824), fixed(".4f", 3.0)
    ('.2f', '.5f', '.4f')
    """
    if (
        not isinstance(spec, str)
        or not SPEC.fullmatch(spec)
        or not spec.endswith("g")
        or not is_number(value)
        or not value
    ):
        return spec if isinstance(spec, str) else None
    decimals = int(spec[1:-1]) - 1 - math.floor(math.log10(abs(value)))
    return f".{decimals}f" if 0 <= decimals <= 8 else ".0f" if decimals < 0 else spec


def readable(value: Any, spec: Any, beside: Any = None) -> str:
    """
    A score in a sentence: thousands apart, no exponent for everyday sizes, as many decimals as the number `beside` it has.

    Examples
    --------
    >>> readable(45090.4, ".4g"), readable(0.166, ".3g"), readable(50123.0, ".4g", beside=45090.4), readable(3.2e-9, ".4g")
    ('45,090', '0.166', '50,123', '3.2e−09')
    >>> readable(181.1, ".4g", beside=0.000184)
    '181.1'
    """
    alike = is_number(value) and is_number(beside) and 0.0 < abs(value) < 1000.0 * abs(beside)
    return aligned(value, fixed(spec, beside if alike else value))


def aligned(value: Any, spec: Any) -> str:
    """
    A number in its column's format, unless that would hide it: then with the digits it needs.

    Examples
    --------
    >>> aligned(0.021, ".4f"), aligned(3.1e-8, ".4f"), aligned(0.0, ".4f")
    ('0.0210', '3.1e−08', '0.0000')
    """
    text = with_format(value, spec)
    return number(value, 2) if is_number(value) and value and not text.strip("−0.,") else text


def interval(low: Any, high: Any, spec: Any) -> str:
    """An interval in words, empty where it has no ends."""
    if not is_number(low) or not is_number(high):
        return ""
    return f"{with_format(low, spec)} to {with_format(high, spec)}"


def count(value: Any) -> str:
    """A whole number with its thousands apart."""
    return _minus(f"{round(value):,}") if is_number(value) else ABSENT


def percent(value: Any, digits: int = 1) -> str:
    r"""
    A share as a percentage; never "0.0 %" for something nor "100.0 %" for not quite everything.

    Examples
    --------
    >>> percent(0.4123), percent(1), percent(-0.0), percent(0.00002), percent(0.99999)
    ('41.2\xa0%', '100\xa0%', '0\xa0%', 'under 0.1\xa0%', 'over 99.9\xa0%')
    """
    if not is_number(value):
        return ABSENT
    step = 10.0**-digits
    if -step / 2 < value * 100 <= 0 or value == 1:
        return f"{abs(round(value)) * 100}\u00a0%"
    if 0 < value * 100 < step / 2:
        return f"under {step:.{digits}f}\u00a0%"
    if 100 - step / 2 < value * 100 < 100:
        return f"over {100 - step:.{digits}f}\u00a0%"
    return _minus(f"{value * 100:,.{digits}f}\u00a0%")


def duration(seconds: Any) -> str:
    r"""
    A time span in the unit that suits it.

    Examples
    --------
    >>> duration(0.0000042), duration(0.0123), duration(41.2), duration(3725)
    ('4.2\xa0µs', '12\xa0ms', '41\xa0s', '1\xa0h 2\xa0min')
    """
    if not is_number(seconds) or seconds < 0:
        return ABSENT
    if seconds == 0:
        return "0\u00a0s"
    if seconds < 1e-3:
        return f"{number(seconds * 1e6, 2)}\u00a0µs"
    if seconds < 1:
        return f"{number(seconds * 1e3, 2)}\u00a0ms"
    if seconds < 60:
        return f"{seconds:.0f}\u00a0s" if seconds >= 10 else f"{seconds:.1f}\u00a0s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest}\u00a0s" if rest else f"{minutes}\u00a0min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}\u00a0h {minutes}\u00a0min" if minutes else f"{hours}\u00a0h"


def moment(text: Any) -> str:
    """
    An ISO time stamp as a date a person would write; anything else as it stands.

    Examples
    --------
    >>> moment("2026-11-15T10:00:00Z")
    '15 November 2026, 10:00 UTC'
    """
    try:
        when = datetime.fromisoformat(str(text))
    except ValueError:
        return str(text or "")
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"
