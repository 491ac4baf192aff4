"""The epochs of a network: step sizes, what is watched, when to stop, which weights are kept.

The epoch itself, from the rows of a batch to the step of the weights, is native (`native/network/`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.optimization.stochastic.descent import Visits
from certifit.progress import Progress

__all__ = ["SCHEDULES", "History", "Recipe", "State", "rate_at", "train"]

SCHEDULES = ("constant", "1/sqrt(t)", "cosine", "plateau")
CUT, LEAST = 0.2, 1e-3  # factor of the step size on a plateau, and the share of the first one at which to stop


@dataclass(frozen=True)
class Recipe:
    """How to train: the parameters of the estimator that the epochs read."""

    optimizer: str
    learning_rate: float
    schedule: str
    momentum: float
    betas: tuple[float, float]
    epsilon: float
    alpha: float
    batch_size: int
    dropout: float
    input_noise: float
    adversarial: float
    clip: float
    max_epochs: int
    patience: int
    tol: float
    """Least improvement that counts, in the unit of the loss."""
    seed: int


@dataclass
class State:
    """Weights as one vector, the two running means of the optimizer, and the steps so far."""

    weights: Array
    first: Array
    second: Array
    steps: float = 0.0

    @classmethod
    def start(cls, weights: Array) -> State:
        """Before the first step."""
        return cls(weights, np.zeros_like(weights), np.zeros_like(weights))

    @property
    def finite(self) -> bool:
        """Whether every number still is one."""
        return bool(np.isfinite(self.weights).all() and np.isfinite(self.second).all())


@dataclass
class History:
    """What was seen, epoch by epoch."""

    loss: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    best: int = 0
    """The epoch whose weights were kept, from 1."""
    note: str = ""


def rate_at(recipe: Recipe, epoch: int, cuts: int) -> float:
    """The step size of an epoch, numbered from 1, after `cuts` plateaus."""
    if recipe.schedule == "1/sqrt(t)":
        return float(recipe.learning_rate / np.sqrt(epoch))
    if recipe.schedule == "cosine":
        return float(recipe.learning_rate * 0.5 * (1.0 + np.cos(np.pi * (epoch - 1) / recipe.max_epochs)))
    return float(recipe.learning_rate * CUT**cuts)


def train(
    trainer: Any, visits: Visits, recipe: Recipe, state: State, held_out: Any, clock: Progress
) -> tuple[State, History]:
    """Epoch after epoch until what is watched no longer falls.

    `trainer` goes through one epoch: ``trainer.load(state)``, ``trainer.epoch(order, recipe, rate)`` gives the mean loss of the
    rows as they were met and whether all stayed finite, ``trainer.state()``. `held_out` gives the loss of the rows set aside, if
    there are any: then they are watched, and the weights of their best epoch are kept; otherwise the loss of the epoch is
    watched, and the last weights stand.
    """
    history, best, kept, idle, cuts = History(), np.inf, state, 0, 0
    trainer.load(state)
    for epoch in range(1, recipe.max_epochs + 1):
        rate = rate_at(recipe, epoch, cuts)
        loss, sound = trainer.epoch(visits.next(), recipe, rate)
        after = trainer.state()
        if not sound or not after.finite:
            history.note = (
                f"Training ran away in epoch {epoch} at a step size of {rate:.3g} and went back to the weights before it: "
                "give a smaller learning_rate, or clip gradients."
            )
            break
        state = after
        history.loss.append(loss)
        history.rate.append(rate)
        watched = loss
        if held_out is not None:
            watched = held_out(trainer)
            history.validation.append(watched)
        told = f"loss {loss:.4g}" + (f", held out {watched:.4g}" if held_out is not None else "")
        clock.tell(epoch, recipe.max_epochs, told)
        idle = 0 if watched < best - recipe.tol else idle + 1
        if watched < best:
            best, history.best, kept = watched, epoch, state
        if idle < recipe.patience:
            continue
        if recipe.schedule != "plateau" or CUT ** (cuts + 1) < LEAST:
            break
        cuts, idle = cuts + 1, 0
    if held_out is not None:
        return kept, history
    history.best = len(history.loss)
    return state, history
