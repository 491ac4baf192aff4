"""What a finalist's page tells beside its figures: certificate, scores, settings and the search for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from certifit.contest.numbers import compact, count, duration, fixed, interval, is_number, number, with_format
from certifit.contest.report.cleaning import mapped, parts
from certifit.contest.report.diagnostics import comparison_figures, finalist_figures
from certifit.contest.report.figures import Figure, numbered
from certifit.contest.report.standings import certified_as, name_of, slug

__all__ = ["Finalist", "comparison", "finalists", "links"]

Part = dict[str, Any]

SEARCHED = 25
"""Settings of a search that are listed, the best first."""

CERTIFICATE = {
    "objective": "objective reached",
    "bound": "proven lower bound",
    "gap": "gap: the fit is at most this far from the optimum",
    "relative_gap": "gap, relative to the best constant model",
}


@dataclass(frozen=True)
class Finalist:
    """A finalist's page."""

    anchor: str
    label: str
    entrant: Part
    figures: list[tuple[str, Figure]]
    verdict: str
    """Of its certificate."""
    certificate: list[tuple[str, str]]
    metrics: list[tuple[str, str, str, str]]
    settings: list[tuple[str, str]]
    searched: list[tuple[str, str, str]]
    more_searched: int
    rules: str


def setting(value: Any) -> str:
    """The value of a hyperparameter as text, cut where it is a long list."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if is_number(value):
        return compact(value)
    text = (
        value if isinstance(value, str) else ", ".join(map(setting, value)) if isinstance(value, list) else str(value)
    )
    return text if len(text) <= 120 else text[:119] + "…"


def links(run: Part) -> dict[str, str]:
    """The address of each finalist's page, by the entrant's name."""
    found: dict[str, str] = {}
    for entrant in run["entrants"]:
        name = str(entrant.get("name"))
        if name in run["finalists"] and name not in found:
            anchor = f"finalist-{slug(name)}"
            found[name] = anchor if anchor not in found.values() else f"{anchor}-{len(found) + 1}"
    return found


def finalists(run: Part) -> list[Finalist]:
    """The pages, in order of the leaderboard."""
    anchors = links(run)
    entrants = {str(e.get("name")): e for e in reversed(run["entrants"])}
    return [_finalist(run, entrants[name], anchor) for name, anchor in anchors.items()]


def comparison(run: Part) -> list[tuple[str, Figure]]:
    """The figures that lay the finalists over one another."""
    entrants = {str(e.get("name")): e for e in reversed(run["entrants"])}
    pages = [(name_of(entrants[name]), mapped(run["finalists"], name)) for name in links(run)]
    return list(numbered(comparison_figures(pages, run["task"]), "compare")) if len(pages) > 1 else []


def _finalist(run: Part, entrant: Part, anchor: str) -> Finalist:
    part, task = mapped(run["finalists"], str(entrant.get("name"))), run["task"]
    metric = mapped(task, "metric")
    spec = metric.get("format")
    searched = [s for s in parts(entrant, "searched") if is_number(s.get("score"))]
    sign = 1.0 if metric.get("lower_is_better", True) else -1.0
    searched.sort(key=lambda s: sign * s["score"])
    return Finalist(
        anchor=anchor,
        label=name_of(entrant),
        entrant=entrant,
        figures=list(numbered(finalist_figures(name_of(entrant), part, task), anchor)),
        verdict=certified_as(mapped(entrant, "certificate")),
        certificate=_certificate(entrant.get("certificate")),
        metrics=[_metric(m) for m in mapped(entrant, "metrics").values() if isinstance(m, dict)],
        settings=[(key, setting(value)) for key, value in mapped(entrant, "hyperparameters").items()],
        searched=[_setting(s, spec) for s in searched[:SEARCHED]],
        more_searched=max(0, len(searched) - SEARCHED),
        rules=str(part.get("rules") or ""),
    )


def _certificate(certificate: Any) -> list[tuple[str, str]]:
    if not isinstance(certificate, dict):
        return []
    proven = certificate.get("kind") not in (None, "none")
    found = [("kind of proof", str(certificate["kind"]))] if proven else []
    found += [
        (text, number(certificate[key], 2) if "gap" in key else compact(certificate[key]))
        for key, text in CERTIFICATE.items()
        # Without a proof there is no bound, and no distance from one.
        if is_number(certificate.get(key)) and (proven or key == "objective")
    ]
    if is_number(certificate.get("iterations")):
        found.append(("iterations", count(certificate["iterations"])))
    if is_number(certificate.get("seconds")):
        found.append(("time of the fit", duration(certificate["seconds"])))
    return found


def _metric(metric: Part) -> tuple[str, str, str, str]:
    spec = fixed(metric.get("format") or ".4g", metric.get("value"))
    better = "lower is better" if metric.get("lower_is_better") else "higher is better"
    between = interval(metric.get("low"), metric.get("high"), spec)
    return str(metric.get("label") or ""), with_format(metric.get("value"), spec), between, better


def _setting(searched: Part, spec: Any) -> tuple[str, str, str]:
    settings = searched.get("hyperparameters")
    text = ", ".join(f"{k} {setting(v)}" for k, v in settings.items()) if isinstance(settings, dict) else ""
    error = f"± {with_format(searched['se'], spec)}" if is_number(searched.get("se")) else ""
    return text or "its defaults", with_format(searched["score"], spec), error
