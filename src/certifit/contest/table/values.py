"""What strings mean: missing markers, numbers as people write them, dates.

Everything is decided on the distinct values of a column, which are few even where rows are many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from certifit.names import record

__all__ = [
    "DATE_FORMATS",
    "MISSING",
    "NumberFormat",
    "clean_strings",
    "date_format",
    "finite",
    "is_clean",
    "number_format",
    "parse_dates",
]

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-", "."})
"""What counts as missing, in lower case and without blanks around."""

SIGNS = "€$£¥%"
PLAIN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
DRESSED = r"^[+-]?[€$£¥]?\s?[+-]?(\d[\d.,'   ]*\d|\d|[.,]\d+)([eE][+-]?\d+)?\s?[€$£¥%]?$"
GROUPED = {
    ",": r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$",
    ".": r"^[+-]?\d{1,3}(\.\d{3})+(,\d*)?$",
    " ": r"^[+-]?\d{1,3}([   ']\d{3})+([.,]\d*)?$",
}
DECIMAL_COMMA = r"^[+-]?\d*,\d+([eE][+-]?\d+)?$"
WHOLE = r"^[+-]?\d+$"
UNITS = (
    "[kcmµ]?m|[kmµ]?g|[cm]?l|m?s|min|h|[kM]?W|[kMGT]B|kcal|km/h|mph|ft|lb|oz|°[CF]"  # also without a blank before them
)
MEASURED = rf"^[+-]?\d[\d.,']*(\s?(?:{UNITS})|\s[^\s\d€$£¥%]+\d?)$"
FEWEST_MEASURED = 5  # distinct values: "2 doors" and "4 doors" are labels

_CLOCKS = ("", "%H:%M:%S%.f", "%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p")
_YEAR_FIRST = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d")
_DAY_FIRST = tuple(f"%d{s}%m{s}%{y}" for s in "/-." for y in "Yy")
_MONTH_FIRST = tuple(f"%m{s}%d{s}%{y}" for s in "/-" for y in "Yy")
_WORDS = ("%d %B %Y", "%d-%B-%Y", "%d-%B-%y", "%B %d, %Y", "%B %d %Y")


def _formats() -> Iterator[str]:
    for day in (*_YEAR_FIRST, *_DAY_FIRST, *_MONTH_FIRST, *_WORDS):
        for clock in _CLOCKS:
            yield f"{day} {clock}".strip()
    for clock in _CLOCKS[1:4]:
        for zone in ("", "Z", "%z"):
            yield f"%Y-%m-%dT{clock}{zone}"
    yield "%Y-%m-%d %H:%M:%S%.f%z"


DATE_FORMATS = tuple(_formats())
"""Formats that are tried, in this order."""


def clean_strings(values: pl.Series) -> pl.Series:
    """The strings without blanks around, and null where they mark a missing value."""
    distinct = values.unique()
    trimmed = distinct.str.strip_chars()
    missing = trimmed.str.to_lowercase().is_in(list(MISSING))
    changed = ((trimmed != distinct) | missing).fill_null(False)
    if not changed.any():
        return values
    meaning = pl.select(pl.when(missing).then(None).otherwise(trimmed)).to_series()
    return values.replace_strict(distinct, meaning, return_dtype=pl.String)


def is_clean(values: pl.Series) -> bool:
    """Whether a column of categories needs no cleaning."""
    distinct = values.unique().cast(pl.String)
    return bool(distinct.equals(clean_strings(distinct), null_equal=True))


# Numbers


@record("NumberFormat")
class NumberFormat:
    """How a column writes its numbers."""

    decimal: str = "."
    grouping: str = ""
    signs: bool = False
    leftovers: tuple[str, ...] = ()
    unit: str = ""

    @property
    def code(self) -> str:
        """One short string that says it all, for files."""
        signs = "yes" if self.signs else "no"
        unit = f" unit={self.unit}" if self.unit else ""
        return f"decimal={self.decimal} grouping={self.grouping or 'none'} signs={signs}{unit}"

    @classmethod
    def from_code(cls, code: str | None) -> NumberFormat:
        """The reverse of `code`; None is the plain format."""
        if not code:
            return cls()
        parts = dict(part.split("=", 1) for part in code.split(" ") if "=" in part)
        grouping = parts.get("grouping", "none")
        return cls(
            parts.get("decimal", "."),
            "" if grouping == "none" else grouping,
            parts.get("signs") == "yes",
            unit=parts.get("unit", ""),
        )

    @property
    def words(self) -> str | None:
        """What is unusual about it, for people."""
        notes = []
        if self.decimal == ",":
            notes.append("decimal commas")
        if self.grouping:
            notes.append("thousands separators")
        if self.signs:
            notes.append("percent or currency signs")
        if self.unit:
            notes.append(f"the unit {self.unit}")
        return ", ".join(notes) or None

    def parse(self, values: pl.Series) -> pl.Series:
        """Float64; what is not a number, or not finite, becomes null."""
        text = values.str.strip_chars()
        if self.unit:
            text = text.str.strip_suffix(self.unit).str.strip_chars()
        if self.signs:
            text = text.str.replace_all(f"[{SIGNS}]", "").str.strip_chars()
        if self.grouping:
            text = text.str.replace_all("[   ']" if self.grouping == "blank" else f"[{self.grouping}]", "")
        if self.decimal == ",":
            text = text.str.replace(",", ".", literal=True)
        return finite(text.cast(pl.Float64, strict=False))


def finite(numbers: pl.Series) -> pl.Series:
    """Numbers with null for infinity and NaN: in a table these are marks, not measurements."""
    if numbers.null_count() == 0 and numbers.dtype.is_float() and np.isfinite(numbers.to_numpy()).all():
        return numbers  # a view is looked at: thousands of columns cost next to nothing
    usable = numbers.is_finite()
    return numbers if usable.all() else numbers.set(~usable, None)


def number_format(values: pl.Series, delimiter: str | None = None, tolerate: float = 0.0) -> NumberFormat | None:
    """How the strings write numbers, or None where they do not.

    Parameters
    ----------
    values : Series of strings
        Distinct values, cleaned.
    delimiter : str, default=None
        Of the file: where fields are separated by ";", a lone comma is a decimal comma.
    tolerate : float, default=0.0
        Share of the values that may be something else.

    Returns
    -------
    NumberFormat or None
    """
    values = values.drop_nulls()
    if values.is_empty():
        return None
    unit = _unit(values)
    if unit:
        found = number_format(values.str.strip_suffix(unit).str.strip_chars(), delimiter, tolerate)
        return None if found is None else replace(found, unit=unit)
    dressed = values.str.contains(DRESSED) | values.str.contains(PLAIN)
    others = values.filter(~dressed)
    if others.len() > tolerate * values.len():
        return None
    leftovers = tuple(others.head(5).to_list())
    values = values.filter(dressed)
    if values.is_empty():
        return None
    if values.str.contains(PLAIN).all():
        return NumberFormat(leftovers=leftovers)
    signs = bool(values.str.contains(f"[{SIGNS}]").any())
    if signs:
        values = values.str.replace_all(f"[{SIGNS}]", "").str.strip_chars()
    odd = values.filter(~values.str.contains(PLAIN) | values.str.contains(GROUPED["."]))
    punctuation = _punctuation(values, odd, delimiter)
    if punctuation is None:
        return None
    result = NumberFormat(*punctuation, signs, leftovers)
    return result if result.parse(values).null_count() == 0 else None


def _unit(values: pl.Series) -> str:
    """What stands behind every number, as in "42 m²"; empty if there is nothing, or not always the same."""
    if values.len() < FEWEST_MEASURED or not values.head(1).str.contains(MEASURED).all():
        return ""
    units = values.str.extract(MEASURED).str.strip_chars().unique()
    return str(units[0]) if units.len() == 1 and units.null_count() == 0 else ""


def _punctuation(values: pl.Series, odd: pl.Series, delimiter: str | None) -> tuple[str, str] | None:
    """Decimal sign and thousands separator, by the values that only one reading can explain."""
    plain = values.filter(~values.str.contains(r"[,   ']"))
    commas = odd.filter(odd.str.contains(","))
    if odd.str.contains(r"[   ']").any():
        decimal = "," if odd.str.contains(",").any() else "."
        fits = (odd.str.contains(GROUPED[" "]) | odd.str.contains(DECIMAL_COMMA) | odd.str.contains(PLAIN)).all()
        return (decimal, "blank") if fits else None
    if commas.is_empty():
        if plain.str.contains(PLAIN).all():
            return ".", ""
        whole = plain.str.contains(WHOLE) | plain.str.contains(r"^[+-]?\d{1,3}(\.\d{3})+$")
        return (",", ".") if whole.all() else None
    as_thousands = commas.str.contains(GROUPED[","]).all() and plain.str.contains(PLAIN).all()
    dotted = commas.str.contains(r"\.")
    european = commas.str.contains(DECIMAL_COMMA) | commas.str.contains(GROUPED["."])
    rest = plain.str.contains(WHOLE) | plain.str.contains(r"^[+-]?\d{1,3}(\.\d{3})+$")
    as_decimal = european.all() and rest.all() and not commas.str.contains(r"^[+-]?\d{1,3}(,\d{3}){2,}").any()
    if as_thousands and as_decimal:  # "1,234": only the file as a whole can tell
        as_thousands = delimiter != ";" and not commas.str.contains(r"^[+-]?0,").any()
    if as_thousands:
        return ".", ","
    if as_decimal:
        return ",", "." if dotted.any() or plain.str.contains(r"\.").any() else ""
    return None


# Dates


def parse_dates(values: pl.Series, pattern: str) -> pl.Series:
    """Datetimes in microseconds without a zone (UTC where the strings have one); null where the pattern fails."""
    parsed = values.str.to_datetime(pattern, strict=False, time_unit="us")
    if getattr(parsed.dtype, "time_zone", None) is not None:
        parsed = parsed.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return (
        parsed.to_frame()
        .select(pl.when(parsed.dt.year().is_between(1000, 9999)).then(parsed))
        .to_series()
        .alias(parsed.name)
    )


def date_format(values: pl.Series) -> tuple[str, str] | None:
    """The date format that explains every string, and a phrase that says why; None where there is none.

    Parameters
    ----------
    values : Series of strings
        Cleaned, in the order of the file, which may tell days from months.
    """
    values = values.drop_nulls()
    first = values.head(1)
    if first.is_empty() or not first.str.contains(r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{4}|[A-Za-z]{3}.*\d{2}").all():
        return None
    if not values.head(1000).str.contains(r"\d").all() or values.head(1000).str.contains(WHOLE).any():
        return None
    fitting = [p for p in DATE_FORMATS if parse_dates(first, p).null_count() == 0]
    for sample in (values.head(1000), values):
        fitting = [p for p in fitting if parse_dates(sample, p).null_count() == 0]
        if not fitting:
            return None
    day, month = (next((p for p in fitting if p.startswith(start)), None) for start in ("%d", "%m"))
    if day is None or month is None:
        chosen = fitting[0]
        order = {"%Y": "year first", "%d": "day first", "%m": "month first"}.get(chosen[:2], "month by name")
        return chosen, f"dates, {order}"
    ordered = {p: parse_dates(values, p).is_sorted() for p in (day, month)}
    if ordered[day] != ordered[month]:
        chosen = day if ordered[day] else month
        return chosen, f"dates, {'day' if chosen == day else 'month'} first, as the order of the rows shows"
    return day, "dates, taken as day first: nothing tells day from month"
