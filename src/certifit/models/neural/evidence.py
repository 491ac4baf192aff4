"""What is known of a trained network: its objective, and how steep it still is.

A network has many local optima and no bound is known, so nothing is claimed about the best one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.models.neural.layers import parts, penalty_of
from certifit.models.neural.objective import Target
from certifit.models.neural.training import History, State
from certifit.progress import Progress

__all__ = ["evidence", "gradient_at"]

SAMPLE = 4096  # rows that the gradient is taken over


def gradient_at(trainer: Any, sizes: tuple[int, ...], state: State, alpha: float, rows: Array) -> Array:
    """The gradient of the objective over these rows, all layers in one vector."""
    gradient: Array = trainer.gradient(rows)
    for slope, coef in zip(parts(sizes, gradient)[0], parts(sizes, state.weights)[0], strict=True):
        slope += alpha * coef
    return gradient


def evidence(
    trainer: Any,
    target: Target,
    state: State,
    sizes: tuple[int, ...],
    alpha: float,
    history: History,
    clock: Progress,
) -> Certificate:
    """Objective and stationarity of a network as it stands, on the rows it was trained on."""
    penalty = alpha * penalty_of(sizes, state.weights)
    objective = target.mean(trainer.scores()) + penalty
    n = target.weight.shape[0]
    rows = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.uint32))
    steep = float(np.linalg.norm(gradient_at(trainer, sizes, state, alpha, rows).astype(np.float64)))
    where = "" if n <= SAMPLE else f" over {rows.shape[0]} rows"
    note = f"A network has many local optima: the gradient of the objective has norm {steep:.2g}{where}."
    with np.errstate(over="ignore"):
        told = objective * target.factor
    return Certificate.absent(
        float(told) if np.isfinite(told) else float(np.finfo(np.float64).max),
        f"{note} {history.note}".strip(),
        scale=1.0,
        iterations=len(history.loss),
        seconds=clock.seconds,
    )
