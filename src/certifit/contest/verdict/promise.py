"""The promise of the winner: errors on rows that its models had not seen, against those on the sealed rows."""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.contest.record.model import Blend
from certifit.contest.record.promise import Promise
from certifit.contest.standing import Standing
from certifit.contest.table.encoded import Training
from certifit.contest.verdict.referee import Referee

__all__ = ["left_out", "promise_of"]


def promise_of(winner: Standing, standings: list[Standing], training: Training, referee: Referee) -> Promise | None:
    """The promise, or None where the search judged no fold."""
    found = left_out(winner, standings)
    if found is None:
        return None
    rows, predicted = found
    return Promise.of(predicted, training.y[rows], referee.predictions(winner.name), referee.unseal()[1])


def left_out(winner: Standing, standings: list[Standing]) -> tuple[Array, Array] | None:
    """Rows judged in the search and what models that had not seen them predicted; of a blend, the average of its members."""
    if not isinstance(winner.model, Blend):
        if winner.found is None or not winner.found.best.folds:
            return None
        return winner.found.left_out()
    by_name = {standing.name: standing for standing in standings}
    parts = []
    for name, weight in winner.model.weights.items():
        member = by_name[name].found
        assert member is not None  # the blend was weighted on these
        rows, predicted = member.left_out()
        parts.append((rows, weight * predicted))
    return parts[0][0], np.asarray(sum(predicted for _, predicted in parts))
