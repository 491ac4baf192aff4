"""The registry of entrants. A family joins with one line in `FAMILIES`; contest, command line, report and tests read it here."""

from __future__ import annotations

from certifit.contest.entrants import baseline, linear, trees
from certifit.contest.entrants.base import Encoded, Entrant, NotApplicable, Path, Predict, Setting, predictor

__all__ = [
    "ENTRANTS",
    "Encoded",
    "Entrant",
    "NotApplicable",
    "Path",
    "Predict",
    "Setting",
    "entrants_for",
    "predictor",
]

FAMILIES = (baseline, linear, trees)

ENTRANTS: dict[str, Entrant] = {entrant.name: entrant for family in FAMILIES for entrant in family.ENTRANTS}


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
