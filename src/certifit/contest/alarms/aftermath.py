"""What looks wrong once the scores are in: a winner that is too good, an error with a heavy tail, parts without time."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.contest.alarms.registry import ring
from certifit.contest.numbers import percent
from certifit.contest.standing import Standing
from certifit.contest.verdict.scoring import Scoring
from certifit.printable import listing

__all__ = ["aftermath", "has_heavy_tail"]

EXPLAINED = 0.9999  # of the variation of a number
REMOVED = 0.999  # of the log loss of classes
FEWEST = 30
ENOUGH = 2_000  # sealed rows from which only their own tail matters
WORST = 0.02  # of the rows
MOST_SEALED, MOST_JUDGED = 1 / 2, 1 / 3  # of the loss that they may give: of the sealed rows, of all rows judged


def aftermath(
    winner: Standing,
    *,
    y: Array,
    judged: Array | None = None,
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
        worst = has_heavy_tail(scoring.losses(y, winner.verdict.predicted), judged)
        if worst is not None:
            rows, every, share = worst
            sealed = "sealed rows" if every == y.shape[0] else "rows judged in the search or sealed"
            found.append(ring("heavy tail", None, rows=rows, every=every, sealed=sealed, share=f"{100 * share:.0f}"))
    if left_out:
        listed = listing(left_out)
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


def has_heavy_tail(losses: Array, judged: Array | None = None) -> tuple[int, int, float] | None:
    """How many of how many rows give how much of the loss, where that is too much for an interval of its mean; otherwise None.

    Of normal errors the worst 2 % give an eighth of the squares, of Laplace's a quarter, of Student's t with 3 degrees of freedom
    two fifths. A sample of a heavy tail that happens to have no far row looks light, and its interval is the one that misses: so
    the losses `judged` on rows left out in the search, which are more, are looked at too, unless there are very many sealed rows.
    With t (3 degrees of freedom, 100 sealed rows, 400 judged, level 0.997) intervals cover in 90 %, and cover or are said not to
    be trusted in 97 %; of normal errors none is doubted.
    """
    if losses.shape[0] < FEWEST:
        return None
    looked_at = [(losses, MOST_SEALED)]
    if judged is not None and losses.shape[0] < ENOUGH:
        looked_at.append((np.concatenate((losses, judged)), MOST_JUDGED))
    for values, most in looked_at:
        n, total = values.shape[0], float(values.sum())
        rows = max(2, round(WORST * n))
        share = float(np.sort(values)[-rows:].sum()) / total if total > 0.0 else 0.0
        if share > most:
            return rows, n, share
    return None
