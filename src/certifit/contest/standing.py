"""An entrant's way through the contest, and the people who watch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from certifit._types import Array
from certifit.contest.entrants import Entrant
from certifit.contest.record.model import Blend, Chain
from certifit.contest.search.search import Found
from certifit.evaluation.risk.risk import Risk

__all__ = ["Silent", "Standing", "Verdict", "Watcher", "one_line"]


@dataclass(frozen=True)
class Verdict:
    """What the sealed rows say of one entrant."""

    predicted: Array
    seconds: float
    score: Risk
    metrics: dict[str, dict[str, Any]]


@dataclass
class Standing:
    """What is known of one entrant so far."""

    entrant: Entrant
    status: str = "waiting"
    """waiting, searching, fitting, fitted, finished, failed, out of time, interrupted, not applicable"""
    error: str | None = None
    found: Found | None = None
    model: Chain | Blend | None = None
    setting: Mapping[str, Any] | None = None
    """What the search chose: a value for each hyperparameter."""
    search_seconds: float = 0.0
    fit_seconds: float = 0.0
    memory_mib: float | None = None
    verdict: Verdict | None = None
    inner_score: float | None = None
    inner_error: float | None = None
    inner_folds: int = 0

    @property
    def name(self) -> str:
        """The entrant's."""
        return self.entrant.name

    @property
    def fitted(self) -> bool:
        """Whether there is a model."""
        return self.model is not None


class Watcher(Protocol):
    """Told of every step; a progress display implements it."""

    def planned(self, standings: list[Standing]) -> None:
        """The entrants are known."""

    def changed(self, standing: Standing) -> None:
        """An entrant moved on."""

    def phase(self, text: str) -> None:
        """The contest does something that is no entrant's."""


class Silent:
    """Watches and says nothing."""

    def planned(self, standings: list[Standing]) -> None:
        """Nothing to say."""

    def changed(self, standing: Standing) -> None:
        """Nothing to say."""

    def phase(self, text: str) -> None:
        """Nothing to say."""


def one_line(error: Exception) -> str:
    """An error as one line of a table."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
