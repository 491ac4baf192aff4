"""Nearest neighbors as an entrant: the rows most like a row, on standardized columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from certifit._types import is_sparse
from certifit.contest.entrants.base import Conditions, Encoded, Entrant, NotApplicable, Path
from certifit.contest.search.calibrated import calibrated
from certifit.models.neighbors.model import KNeighborsClassifier, KNeighborsRegressor

__all__ = ["ENTRANTS"]

COUNTS = (10, 30, 3, 100)
SPARSE_ROWS = 5000  # beyond, distances of sparse rows take longer than a contest
MOST_WORK = 2e13  # rows × rows × columns


def neighbors_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """All rows are asked, also of large tables: the search is exact and as fast as matrix products.

    Shares of a few votes are often zero, which no probability should be: votes of rows left out are calibrated.
    """
    rows = data.n_rows
    if is_sparse(data.X) and rows > SPARSE_ROWS:
        raise NotApplicable(f"{rows} sparse rows are too many to be compared pair by pair")
    if float(rows) * rows * data.n_columns > MOST_WORK:
        raise NotApplicable(f"{rows} rows of {data.n_columns} columns are too many to be compared pair by pair")

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        # A learning curve begins with a few rows, and calibration fits on two thirds of them.
        k = max(1, min(s["n_neighbors"], fold.n_rows // 3))
        if not conditions.classifies:
            return KNeighborsRegressor(k, weights="distance", n_jobs=conditions.jobs)
        return calibrated(KNeighborsClassifier(k, weights="distance", n_jobs=conditions.jobs))

    counts = [k for k in COUNTS if 3 * k <= rows] or [1]
    return [Path(({"n_neighbors": k},), build) for k in counts]


ENTRANTS = (
    Entrant(
        "neighbors",
        "Nearest neighbors",
        "The answers of the rows most like it, the nearer the weightier; every column counts alike.",
        neighbors_paths,
        richness=2,
    ),
)
