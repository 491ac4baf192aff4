"""From whatever mapping a caller holds to plain JSON values, and from those to text that is safe inside a page."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from certifit.contest.plain import plain
from certifit.contest.record import RUN_FORMAT

__all__ = ["embed", "listed", "mapped", "named", "parts", "readable_run", "rounded", "visible"]

# Inside a script element only these could end it, open a comment, or break a line of JavaScript.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}

# Control characters have no look, lone surrogates no encoding, and overrides of the writing direction would turn the text
# around them: all are shown as the replacement character.
_UNPRINTABLE = re.compile("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def visible(text: str) -> str:
    """A text without characters that have no look or turn the text around them."""
    return _UNPRINTABLE.sub("\ufffd", text)


def readable_run(run: Any) -> dict[str, Any]:
    """The run as plain values, or a ValueError/TypeError that says why it cannot be shown."""
    if not isinstance(run, Mapping):
        raise TypeError(f"run must be a mapping such as the content of run.json, got {type(run).__name__}")
    found = run.get("format")
    if found != RUN_FORMAT:
        cure = "upgrade Certifit to show it" if isinstance(found, int) and found > RUN_FORMAT else "is it a run.json?"
        raise ValueError(f"run has format {found!r}, this report reads format {RUN_FORMAT}: {cure}")
    result: dict[str, Any] = plain(run, visible)
    for part, kind in (("task", dict), ("entrants", list)):
        if not isinstance(result.get(part), kind):
            raise ValueError(f"run has no {part!r} part: it was not written by a contest, or it was cut short")
    if not all(isinstance(entrant, dict) for entrant in result["entrants"]):
        raise ValueError("run: every item of 'entrants' must be a mapping")
    for part in ("data", "options", "environment", "leaderboard", "finalists", "files"):
        result[part] = result[part] if isinstance(result.get(part), dict) else {}
    result["left_out"] = [str(part) for part in listed(result, "left_out")]
    result["shipped"] = mapped(result, "shipped")
    result["promise"] = mapped(result, "promise")
    result["ledger"] = result["ledger"] if isinstance(result.get("ledger"), dict) else None
    return result


def mapped(part: Any, key: str) -> dict[str, Any]:
    """The mapping at a key, empty where there is none."""
    found = part.get(key) if isinstance(part, dict) else None
    return found if isinstance(found, dict) else {}


def listed(part: Any, key: str) -> list[Any]:
    """The list at a key, empty where there is none."""
    found = part.get(key) if isinstance(part, dict) else None
    return found if isinstance(found, list) else []


def parts(part: Any, key: str) -> list[dict[str, Any]]:
    """The mappings in the list at a key."""
    return [item for item in listed(part, key) if isinstance(item, dict)]


def named(part: dict[str, Any], key: str) -> str:
    """The name at a key, or a word that says there is none."""
    found = part.get(key)
    return "unnamed" if found is None else str(found)


def rounded(value: Any) -> Any:
    """A value with its numbers cut to seven digits: more than a screen shows, and a third of the text."""
    if isinstance(value, float) and abs(value) < 1e7:  # larger ones are dates, or whole enough
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list) else value


def embed(value: Any) -> str:
    r"""
    JSON that can stand inside a script element whatever strings it holds.

    Examples
    --------
    >>> print(embed({"name": "</script>"}))
    {"name":"\u003c/script\u003e"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)
