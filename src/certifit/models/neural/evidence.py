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
from certifit.models.neural.trainers.double import DoubleTrainer
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
    if isinstance(trainer, DoubleTrainer):
        objective, gradient = trainer.objective(state.weights, alpha)
        where = ""
    else:
        objective = target.mean(trainer.scores()) + alpha * penalty_of(sizes, state.weights)
        rows, where = _visited(target.weight)
        gradient = gradient_at(trainer, sizes, state, alpha, rows).astype(np.float64)
    steep = float(np.linalg.norm(gradient))
    told = f"has norm {steep:.2g}{where}" if np.isfinite(steep) else "is beyond the range of its precision"
    note = f"A network has many local optima: the gradient of the objective {told}."
    with np.errstate(over="ignore"):
        value = objective * target.factor
    return Certificate.absent(
        float(value) if np.isfinite(value) else float(np.finfo(np.float64).max),
        f"{note} {history.note}".strip(),
        scale=1.0,
        iterations=len(history.loss),
        seconds=clock.seconds,
    )


def _visited(weight: Array) -> tuple[Array, str]:
    """Rows to take a gradient over, each as often as its weight says, and how many where these are not all."""
    n, total = weight.shape[0], float(weight.sum())
    if (weight == weight[0]).all() and n <= SAMPLE:
        return np.arange(n, dtype=np.uint32), ""
    if (weight == np.rint(weight)).all() and total <= SAMPLE:
        return np.repeat(np.arange(n, dtype=np.uint32), weight.astype(np.intp)), ""
    points = (np.arange(SAMPLE) + 0.5) / SAMPLE * total
    rows = np.minimum(np.searchsorted(np.cumsum(weight), points), n - 1)
    return rows.astype(np.uint32), f" over {SAMPLE} visits to rows"
