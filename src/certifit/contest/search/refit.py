"""The winner fitted anew with its settings on all rows, once the scores are in: the sealed rows have done their work."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from certifit._types import Array
from certifit.contest.entrants import Conditions
from certifit.contest.record.model import Blend, Chain
from certifit.contest.search.limits import Budget, OutOfTime, time_limit
from certifit.contest.search.search import fit_setting
from certifit.contest.standing import Standing, one_line
from certifit.contest.table.encoded import EncodedRows, encoded_by, encoder_for

if TYPE_CHECKING:
    import polars as pl

__all__ = ["refit"]


def refit(
    winner: Standing,
    standings: list[Standing],
    features: pl.DataFrame,
    y: Array,
    *,
    conditions: Conditions,
    kinds: dict[str, str],
    budget: Budget,
) -> tuple[Chain | Blend | None, str]:
    """The model on all rows, or None and why there is none; a blend keeps its weights and refits its members."""
    by_name = {standing.name: standing for standing in standings}

    @cache
    def encoded(encoding: str) -> EncodedRows:  # once for all members of a blend: their file keeps it once, too
        encoder = encoder_for(encoding, kinds).fit(features)
        return EncodedRows(encoded_by(encoder, features, y), None, encoder)

    def again(standing: Standing) -> Chain:
        assert standing.found is not None
        return fit_setting(standing.entrant, standing.found.best, encoded(standing.entrant.encoding), conditions)

    try:
        with time_limit(budget.left), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if isinstance(winner.model, Blend):
                return replace(winner.model, members={name: again(by_name[name]) for name in winner.model.members}), ""
            return again(winner), ""
    except OutOfTime:
        return None, "there was no time left to fit it again"
    except Exception as error:  # the scored model is there, and is shipped instead
        return None, one_line(error)
