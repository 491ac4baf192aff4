"""The outcome of a contest: its record and the fitted models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certifit.contest.record.model import TableModel
from certifit.contest.record.outputs import write_outputs
from certifit.contest.record.record import leaderboard_rows

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Result"]


class Result:
    """What a contest found.

    Attributes
    ----------
    record : dict
        Everything the report shows, as plain data; what `run.json` holds.
    models : dict of str to TableModel
        The models that were scored, by entrant: fitted on the training rows.
    winner : TableModel
        The model that is shipped: the best one, fitted anew on all rows if the contest was to do so; `winner.origin` says it.
    """

    def __init__(self, record: dict[str, Any], models: dict[str, TableModel], winner: TableModel) -> None:
        self.record = record
        self.models = models
        self.winner = winner

    def score(self, name: str) -> float:
        """Score of an entrant on the sealed rows."""
        for entrant in self.record["entrants"]:
            if entrant["name"] == name and entrant["score"] is not None:
                return float(entrant["score"]["value"])
        known = ", ".join(e["name"] for e in self.record["entrants"] if e["score"] is not None)
        raise ValueError(f"{name!r} has no score; {known} have one.")

    @property
    def leaderboard(self) -> pl.DataFrame:
        """One row per entrant."""
        import polars as pl

        return pl.DataFrame(leaderboard_rows(self.record), infer_schema_length=None)

    def save(self, folder: str | os.PathLike[str]) -> dict[str, Path]:
        """Write report.html, leaderboard.csv, model.cfit and run.json into a folder; nothing is left half-written.

        Returns
        -------
        dict of str to Path
            What was written.
        """
        return write_outputs(self.record, self.winner, Path(folder))

    def __str__(self) -> str:
        return "\n".join(self.record["summary"])
