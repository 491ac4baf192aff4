"""The examination of the finalists on the sealed rows, after all scores are in: the cheap and wanted parts first, each within a
limit, and what there was no time for is listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from certifit.contest.entrants import Conditions
from certifit.contest.search.limits import Budget, OutOfTime, time_limit
from certifit.contest.standing import Standing, Watcher
from certifit.contest.table.encoded import Training
from certifit.contest.verdict.finalists import Evidence, dependence, growth, importance, shown_at_once
from certifit.contest.verdict.ledger import winner_ledger
from certifit.contest.verdict.referee import Ranking, Referee
from certifit.contest.verdict.scoring import Scoring

__all__ = ["Examination", "choose_finalists", "examine"]

MOST = 4
DRAWN = 6  # columns whose dependence is drawn


@dataclass
class Examination:
    """What was found about the finalists."""

    pages: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By finalist, the best first."""
    ledger: dict[str, Any] | None = None
    left_out: list[str] = field(default_factory=list)
    """Parts that there was no time for, in words."""
    interrupted: bool = False


def choose_finalists(standings: list[Standing], ranking: Ranking) -> list[str]:
    """The best, those that cannot be told apart from it, and the best one that a page of text explains; at most four."""
    order, entrants = ranking.order, {s.name: s.entrant for s in standings}
    readable = [name for name in order if entrants[name].readable]
    rivals = [name for name in order[1:] if name in ranking.tied and not entrants[name].baseline]
    chosen = [order[0], *rivals[: MOST - 1 - bool(readable)]]
    chosen += [name for name in readable[:1] if name not in chosen]
    if len(chosen) < 2:
        chosen += [name for name in order[1:] if name not in chosen and not entrants[name].baseline][:1]
    return chosen[:MOST]


def examine(
    standings: list[Standing],
    ranking: Ranking,
    *,
    training: Training,
    referee: Referee,
    scoring: Scoring,
    conditions: Conditions,
    budget: Budget,
    watch: Watcher,
) -> Examination:
    """Look at the finalists; an interrupt ends it early and keeps what was found."""
    names = choose_finalists(standings, ranking)
    by_name = {s.name: s for s in standings}
    evidence = Evidence(training, *referee.unseal(), scoring, conditions)
    found = Examination({name: {} for name in names})
    try:
        for name in names:
            found.pages[name] |= shown_at_once(evidence, by_name[name], referee.predictions(name))
        _look_deeper(
            found, evidence, [by_name[name] for name in names], [by_name[n] for n in ranking.order], budget, watch
        )
    except KeyboardInterrupt:
        found.interrupted = True
    return found


def _look_deeper(
    found: Examination,
    evidence: Evidence,
    finalists: list[Standing],
    order: list[Standing],
    budget: Budget,
    watch: Watcher,
) -> None:
    """Importance and dependence of the winner, its ledger, its learning curve; then the other finalists."""
    winner = finalists[0]
    if not winner.entrant.baseline:  # which looks at no column, and learns no more from more rows
        _columns(found, evidence, winner, budget, watch)
        watch.phase(f"the ledger of {winner.entrant.label}")
        with _while_time(budget, found, "the ledger"):
            found.ledger = winner_ledger(evidence, winner, order[1:])
        watch.phase(f"the learning curve of {winner.entrant.label}")
        with _while_time(budget, found, "the learning curve"):
            found.pages[winner.name]["learning_curve"] = growth(evidence, winner)
    for standing in finalists[1:]:
        _columns(found, evidence, standing, budget, watch)


def _columns(found: Examination, evidence: Evidence, standing: Standing, budget: Budget, watch: Watcher) -> None:
    """Which columns matter to a finalist, and how its predictions change with them."""
    model, page, label = standing.model, found.pages[standing.name], standing.entrant.label
    assert model is not None
    watch.phase(f"what matters to {label}")
    with _while_time(budget, found, f"what matters to {label}"):
        page["importance"] = importance(evidence, model.predict)
    page["dependence"] = []
    names = [row["feature"] for row in page.get("importance", [])]
    with _while_time(budget, found, f"how {label} depends on single columns"):
        for name in [name for name in names if evidence.training.kinds[name] != "text"][:DRAWN]:
            page["dependence"].append(dependence(evidence, model.predict, name))


@contextmanager
def _while_time(budget: Budget, found: Examination, what: str) -> Iterator[None]:
    """A part that may be cut short: what is missing then is listed."""
    try:
        with time_limit(budget.left):
            yield
    except OutOfTime:
        found.left_out.append(what)
