"""The leaderboard as it is shown: one row per entrant, a common axis for the whiskers, and the table of pairs."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from certifit.contest.numbers import ABSENT, count, duration, interval, is_number, number, percent, with_format
from certifit.contest.report.cleaning import mapped, parts

__all__ = [
    "Pair",
    "Row",
    "Scale",
    "answer",
    "certified_as",
    "pair_table",
    "proven_whole",
    "rows",
    "scale",
    "slug",
    "winner",
]

Part = dict[str, Any]

VERDICTS = {
    "best": ("best score", "good"),
    "tied with the best": ("cannot be told apart from the best", "good"),
    "worse than the best": ("worse than the best", "bad"),
    "no better than the baseline": ("no better than the baseline", "bad"),
}
"""What a paired verdict is called on the page, and its colour (never without the words)."""

CERTIFICATES = {"certified": ("certified", "good"), "not certified": ("not certified", "bad")}


@dataclass(frozen=True)
class Scale:
    """The common axis of the whiskers: its ends, its ticks, and where the baseline stands (all in per cent)."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    baseline: float | None

    def place(self, value: float) -> float:
        """Where a value stands, between 2 and 98 per cent, so that a mark at the end is not cut in half."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(2 + 96 * min(1.0, max(0.0, share)), 2)


@dataclass(frozen=True)
class Row:
    """An entrant's line: texts, places on the axis, and the keys by which the columns sort."""

    place: str
    label: str
    link: str
    detail: str
    status: str
    error: str
    baseline: bool
    dot: float | None
    low: float | None
    high: float | None
    beyond: bool
    cut_low: bool
    cut_high: bool
    score: str
    interval: str
    doubted: bool
    """Whether the interval is not to be trusted."""
    verdict: str
    tone: str
    against: str
    skill: str
    certificate: str
    certificate_tone: str
    gap: str
    fit: str
    predict: str
    memory: str
    keys: dict[str, Any]


@dataclass(frozen=True)
class Pair:
    """One cell of the table of pairs: how the row's entrant compares with the column's."""

    symbol: str
    tone: str
    text: str


def slug(text: Any) -> str:
    """A name as a part of an address: letters, digits and hyphens only."""
    return re.sub(r"[^a-z0-9]+", "-", str(text).lower()).strip("-")[:40] or "entrant"


def name_of(entrant: Part) -> str:
    """What an entrant is called."""
    return str(entrant.get("label") or entrant.get("name") or "unnamed")


def score_of(entrant: Part) -> Part:
    """An entrant's score, empty where it has none."""
    score = mapped(entrant, "score")
    return score if is_number(score.get("value")) else {}


def winner(run: Part) -> Part | None:
    """The entrant with the best score, or None where nobody finished."""
    return next((entrant for entrant in run["entrants"] if score_of(entrant)), None)


def proven_whole(entrant: Part | None) -> bool:
    """Whether the fit of an entrant as a whole is proven to be the best possible; a proof of a part of it does not count."""
    certificate = mapped(entrant or {}, "certificate")
    whole = certificate.get("verdict") == "certified" and not certificate.get("claim")
    return whole and not (entrant or {}).get("baseline")


def certified_as(certificate: Part) -> str:
    """The verdict of a certificate; a proof of a part of the fit is called so."""
    verdict = str(certificate.get("verdict") or ABSENT)
    return "certified in part" if verdict == "certified" and certificate.get("claim") else verdict


def answer(run: Part) -> str:
    """The contest's answer as the page's heading."""
    first = winner(run)
    target = run["task"].get("target") or "the target"
    if first is None:
        return "No entrant finished"
    if first.get("baseline") and sum(1 for entrant in run["entrants"] if score_of(entrant)) == 1:
        return "Only the trivial baseline finished"
    if first.get("baseline"):
        return f"Nothing here predicts “{target}” better than the trivial baseline"
    tied = [e for e in run["entrants"] if e.get("verdict") == "tied with the best" and not e.get("baseline")]
    if any(e.get("verdict") == "tied with the best" and e.get("baseline") for e in run["entrants"]):
        return f"{name_of(first)} leads on “{target}”, but is not shown to beat the trivial baseline"
    if len(tied) == 1:
        return f"{name_of(first)} and {name_of(tied[0])} predict “{target}” best"
    if tied:
        return f"{name_of(first)} leads on “{target}”, but {count(len(tied))} others cannot be told apart from it"
    return f"{name_of(first)} predicts “{target}” best"


def scale(run: Part) -> Scale | None:
    """
    The axis of all intervals.

    An entrant far worse than the baseline must not squeeze the others into a corner: the axis ends a little beyond the
    baseline, and who lies outside is drawn at the edge with an arrow.
    """
    scores = [score_of(entrant) for entrant in run["entrants"] if score_of(entrant)]
    if not scores:
        return None
    ends = [s[key] for s in scores for key in ("value", "low", "high") if is_number(s.get(key))]
    low, high = min(ends), max(ends)
    floor = next((score_of(e) for e in run["entrants"] if e.get("baseline") and score_of(e)), {})
    base = floor.get("value")
    if is_number(base):
        lower_is_better = _lower_is_better(run)
        better = min(ends) if lower_is_better else max(ends)
        room = 1.5 * abs(base - better)
        if room > 0 and lower_is_better:
            high = min(high, max(better + room, floor["high"] if is_number(floor.get("high")) else base))
        elif room > 0:
            low = max(low, min(better - room, floor["low"] if is_number(floor.get("low")) else base))
    if low == high:
        pad = abs(low) * 0.1 or 1.0
        low, high = low - pad, high + pad
    drawn = Scale(low, high, (), None)
    ticks = tuple((drawn.place(t), text) for t, text in _ticks(low, high))
    return Scale(low, high, ticks, drawn.place(base) if is_number(base) else None)


def _lower_is_better(run: Part) -> bool:
    return bool(mapped(run["task"], "metric").get("lower_is_better", True))


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    step *= next((m for m in (1, 2, 5, 10) if (high - low) / (m * step) <= 4), 10)
    digits = max(0, -math.floor(math.log10(step)))
    places = range(math.ceil(low / step), math.floor(high / step) + 1)
    found = [(k * step, with_format(k * step, f".{digits}f")) for k in places]
    room = 30 // max((len(text) + 2 for _, text in found), default=1)  # the axis is some thirty digits wide
    return found[:: -(-len(found) // max(1, room))] if found else []


def rows(run: Part, links: dict[str, str]) -> list[Row]:
    """The lines of the leaderboard, in the run's order; `links` are the addresses of the finalists' pages."""
    axis = scale(run)
    spec = mapped(run["task"], "metric").get("format")
    return [_row(entrant, k, axis, spec, links) for k, entrant in enumerate(run["entrants"])]


def _row(entrant: Part, k: int, axis: Scale | None, spec: Any, links: dict[str, str]) -> Row:
    score = score_of(entrant)
    low, high = score.get("low"), score.get("high")
    ends = (axis.place(low), axis.place(high)) if axis and is_number(low) and is_number(high) else (None, None)
    verdict, tone = VERDICTS.get(str(entrant.get("verdict")), ("", ""))
    if entrant.get("baseline"):
        verdict, tone = "the floor: the trivial baseline", ""
    certificate = mapped(entrant, "certificate")
    word, certificate_tone = CERTIFICATES.get(
        str(certificate.get("verdict")), (certificate.get("verdict") or ABSENT, "")
    )
    gap, claim = certificate.get("relative_gap"), str(certificate.get("claim") or "")
    if (whole := certified_as(certificate)) != word:
        word, certificate_tone = whole, ""
    each = None
    if is_number(entrant.get("predict_seconds")) and is_number(entrant.get("predict_rows")) and entrant["predict_rows"]:
        each = entrant["predict_seconds"] / entrant["predict_rows"] * 1000
    status = str(entrant.get("status") or "finished")
    memory = entrant.get("memory_mib")
    skill = entrant.get("skill")
    return Row(
        place=count(entrant.get("rank")),
        label=name_of(entrant),
        link=links.get(str(entrant.get("name")), ""),
        detail=str(entrant.get("description") or ""),
        status=status,
        error=str(entrant.get("error") or ""),
        baseline=bool(entrant.get("baseline")),
        dot=axis.place(score["value"]) if axis and score else None,
        low=ends[0],
        high=ends[1],
        cut_low=bool(axis and is_number(low) and low < axis.low),
        cut_high=bool(axis and is_number(high) and high > axis.high),
        beyond=bool(axis and score and not axis.low <= score["value"] <= axis.high),
        score=with_format(score.get("value"), spec),
        interval=interval(low, high, spec),
        doubted=score.get("trusted") is False,
        verdict=verdict,
        tone=tone,
        against=_against(entrant.get("against_best"), spec),
        skill=percent(skill),
        certificate=str(word),
        certificate_tone=certificate_tone,
        gap=claim or (f"gap {number(gap, 2)}" if is_number(gap) and word != "no bound possible" else ""),
        fit=duration(entrant.get("fit_seconds")),
        predict=duration(each),
        memory=number(memory, 2),
        keys={
            "rank": entrant["rank"] if is_number(entrant.get("rank")) else k + 1,
            "label": name_of(entrant),
            "score": score.get("value"),
            "skill": skill,
            "certificate": {"certified": 0, "not certified": 1}.get(str(certificate.get("verdict")), 2),
            "fit": entrant.get("fit_seconds"),
            "predict": each,
            "memory": memory,
        },
    )


def _against(part: Any, spec: Any) -> str:
    if not isinstance(part, dict) or not is_number(part.get("difference")):
        return ""
    text = f"differs by {with_format(part['difference'], spec)}"
    if between := interval(part.get("low"), part.get("high"), spec):
        text += f" ({between})"
    p = part.get("p_adjusted") if is_number(part.get("p_adjusted")) else part.get("p")
    return text + (f", p\u00a0{_p(p)}" if is_number(p) else "")


def _p(p: float) -> str:
    return "<\u00a00.001" if p < 0.001 else f"=\u00a0{number(p, 2)}"


def pair_table(run: Part) -> tuple[list[str], list[list[Pair | None]]]:
    """The entrants that were compared, and for every two of them who is better (None on the diagonal)."""
    found = {(str(p.get("a")), str(p.get("b"))): p for p in parts(run["leaderboard"], "pairs")}
    compared = {name for key in found for name in key}
    order = [entrant for entrant in run["entrants"] if str(entrant.get("name")) in compared]
    spec = mapped(run["task"], "metric").get("format")
    lower = _lower_is_better(run)

    def cell(a: Part, b: Part) -> Pair | None:
        first, second = str(a.get("name")), str(b.get("name"))
        if first == second:
            return None
        pair, sign = found.get((first, second)), 1.0
        if pair is None:
            pair, sign = found.get((second, first)), -1.0
        if pair is None or not is_number(pair.get("difference")):
            return Pair("", "", "not compared")
        difference = sign * pair["difference"]
        p = pair.get("p_adjusted") if is_number(pair.get("p_adjusted")) else pair.get("p")
        detail = f"difference {with_format(difference, spec)}" + (f", p\u00a0{_p(p)}" if is_number(p) else "")
        if not pair.get("distinguishable"):
            return Pair("=", "", f"cannot be told apart: {detail}")
        better = (difference < 0) == lower
        return Pair("▲", "good", f"better: {detail}") if better else Pair("▼", "bad", f"worse: {detail}")

    return [name_of(e) for e in order], [[cell(a, b) for b in order] for a in order]
