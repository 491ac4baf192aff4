"""The parameters that margin models share."""

from __future__ import annotations

from typing import Any

from certifit.parameters import MAX_ITER, N_JOBS, RANDOM_STATE, TOL, VERBOSE, Declared

__all__ = ["VisitsRows"]


class VisitsRows(Declared, kw_only=True):
    """When a solver that may visit rows one by one stops, and in which order it visits them."""

    tol: float = TOL.but(1e-4)
    max_iter: int = MAX_ITER
    random_state: Any = RANDOM_STATE.but(0, "Order in which rows are visited.")
    n_jobs: int | None = N_JOBS
    verbose: int = VERBOSE
