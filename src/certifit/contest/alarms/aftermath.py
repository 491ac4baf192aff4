"""What looks wrong once the scores are in: a winner that is too good, an error with a heavy tail, parts without time."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.contest.alarms.registry import ring
from certifit.contest.numbers import percent
from certifit.contest.standing import Standing
from certifit.contest.verdict.scoring import Scoring

__all__ = ["aftermath", "has_heavy_tail"]

EXPLAINED = 0.9999  # of the variation of a number
REMOVED = 0.999  # of the log loss of classes
FEWEST = 30
WORST, MOST_SHARE = 0.02, 0.5


def aftermath(
    winner: Standing,
    *,
    y: Array,
    scoring: Scoring,
    removed: float | None,
    warned: list[dict[str, Any]],
    left_out: list[str],
    why_not_refitted: str,
) -> list[dict[str, Any]]:
    """Warnings about the winner, who removes a share of the baseline's log loss, and about what was left out."""
    found = []
    leaks = any(warning["kind"] == "leakage" for warning in warned)
    if not leaks and not winner.entrant.baseline and y.shape[0] >= FEWEST and winner.verdict is not None:
        text = _too_good(winner, scoring, removed)
        if text:
            found.append(ring("too good", None, label=winner.entrant.label, text=text))
    if winner.verdict is not None and not scoring.n_classes:
        worst = has_heavy_tail(scoring.losses(y, winner.verdict.predicted))
        if worst is not None:
            rows, share = worst
            found.append(ring("heavy tail", None, rows=rows, test=y.shape[0], share=f"{100 * share:.0f}"))
    if left_out:
        listed = left_out[0] if len(left_out) == 1 else ", ".join(left_out[:-1]) + " and " + left_out[-1]
        found.append(ring("no time", None, parts=listed))
    if why_not_refitted:
        found.append(ring("not refitted", None, why=why_not_refitted))
    return found


def _too_good(winner: Standing, scoring: Scoring, removed: float | None) -> str:
    """Why the winner cannot be true, or nothing."""
    assert winner.verdict is not None
    if not scoring.n_classes:
        explained = winner.verdict.metrics.get("r2", {}).get("value", 0.0)
        return f"it explains {percent(explained, 2)} of the variation" if explained > EXPLAINED else ""
    if removed is not None and removed > REMOVED:
        return f"it removes {percent(removed, 2)} of the baseline's log loss"
    return ""


def has_heavy_tail(losses: Array) -> tuple[int, float] | None:
    """How many of the worst rows make up more than half of the loss, and their share; None where they do not.

    Of normal errors the worst 2 % give an eighth of the squares, of Student's t with 3 degrees of freedom often a half.
    """
    n = losses.shape[0]
    total = float(losses.sum())
    if n < FEWEST or not total > 0.0:
        return None
    rows = max(2, round(WORST * n))
    share = float(np.sort(losses)[-rows:].sum()) / total
    return (rows, share) if share > MOST_SHARE else None
