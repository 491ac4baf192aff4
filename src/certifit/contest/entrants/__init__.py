"""The registry of entrants, gathered from the families; contest, command line, report and tests read it here."""

from __future__ import annotations

from dataclasses import replace

from certifit.contest.entrants.base import Conditions, Encoded, Entrant, NotApplicable, Path, Predict, predictor
from certifit.families import FAMILIES

__all__ = [
    "ENTRANTS",
    "Conditions",
    "Encoded",
    "Entrant",
    "NotApplicable",
    "Path",
    "Predict",
    "entrants_for",
    "predictor",
]

ENTRANTS: dict[str, Entrant] = {
    entrant.name: replace(entrant, family=family.name)
    for family in FAMILIES
    if family.entrants
    for entrant in family.entrant_module().ENTRANTS
}


def entrants_for(task: str, wanted: list[str] | None = None) -> list[Entrant]:
    """The entrants of a task, all or those wanted by name; the baseline always takes part."""
    fitting = [entrant for entrant in ENTRANTS.values() if task in entrant.tasks]
    if wanted is None:
        return fitting
    names = [entrant.name for entrant in fitting]
    unknown = [name for name in wanted if name not in (*names, "blend")]
    if unknown:
        raise ValueError(f"entrants has {unknown[0]!r}; for a {task} task choose among {', '.join(names)}, blend.")
    return [entrant for entrant in fitting if entrant.baseline or entrant.name in wanted]
