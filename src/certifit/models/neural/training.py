"""The epochs of a network: step sizes, what is watched, when to stop, which weights are kept.

The epoch itself, from the rows of a batch to the step of the weights, is native (`native/network/`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.optimization.stochastic.descent import Visits
from certifit.progress import Progress

__all__ = ["SCHEDULES", "History", "Recipe", "State", "Watch", "adaptive", "rate_at", "train"]

SCHEDULES = ("constant", "1/sqrt(t)", "cosine", "plateau", "invscaling")
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
    """Least improvement that counts, in the unit of the loss; for L-BFGS the greatest slope at which to stop."""
    seed: int
    power: float = 0.5
    """Of the rows visited, by which "invscaling" divides the step size."""
    visited: int = 0
    """Rows visited before this training."""
    before: int = 0
    """Epochs before this training."""
    horizon: int = 0
    """Epochs that "cosine" is laid out for; those of this training by default."""
    least_rate: float | None = None
    """The step size below which a plateau is the end; a thousandth of the first one by default."""
    flat: float = 1e-15
    """Relative fall of the objective at which L-BFGS stops."""
    evaluations: int = 1_000_000
    """Most evaluations of the objective by L-BFGS."""
    unscaled: bool = False
    """Whether Adam adds epsilon to its root before that is corrected for its start at zero."""

    per_batch: bool = False
    """Whether `alpha` is that of a full batch, and the last one, of fewer rows, has as much more of it as they are fewer."""

    def epsilon_at(self, steps: float) -> float:
        """What Adam adds to its corrected root in this step, numbered from 1."""
        return self.epsilon / float(np.sqrt(1.0 - self.betas[1] ** steps)) if self.unscaled else self.epsilon


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
    score: list[float] = field(default_factory=list)
    """Of the rows set aside, where a score is watched instead of their loss."""
    rate: list[float] = field(default_factory=list)
    best: int = 0
    """The epoch whose weights were kept, from 1."""
    note: str = ""
    """What went wrong."""
    visited: int = 0
    """Rows visited, those before this training included."""
    ran_away: bool = False
    settled: bool = False
    """Whether training ended by itself, because nothing more was gained."""


class Watch:
    """What is watched, epoch by epoch: the loss, or that of rows set aside, or their score; and which weights are kept.

    `held_out` gives the loss of the rows set aside and their score, or None for it; without it the loss of the epoch is watched,
    and the last weights stand.
    """

    def __init__(self, held_out: Any, recipe: Recipe, state: State, clock: Progress) -> None:
        self.held_out, self.recipe, self.clock = held_out, recipe, clock
        self.history, self.best, self.kept, self.last, self.idle = History(), np.inf, state, state, 0

    def saw(self, loss: float, trainer: Any, state: State) -> bool:
        """Whether an epoch ended in which nothing was gained for as long as one is patient."""
        history, self.last, watched = self.history, state, loss
        history.loss.append(loss)
        told = f"loss {loss:.4g}"
        if self.held_out is not None:
            held, score = self.held_out(trainer)
            history.validation.append(held)
            watched = held
            told += f", held out {held:.4g}"
            if score is not None:
                history.score.append(score)
                watched = -score
                told += f", score {score:.4g}"
        self.clock.tell(len(history.loss), self.recipe.max_epochs, told)
        self.idle = 0 if watched < self.best - self.recipe.tol else self.idle + 1
        if watched < self.best:
            self.best, history.best, self.kept = watched, len(history.loss), state
        return self.idle >= self.recipe.patience

    def found(self) -> tuple[State, History]:
        """The weights to keep, and what was seen."""
        if self.held_out is not None:
            return self.kept, self.history
        self.history.best = len(self.history.loss)
        return self.last, self.history


def adaptive(optimizer: str) -> bool:
    """Whether an optimizer remembers gradients and their squares; others remember their last step."""
    return optimizer.startswith("adam")


def rate_at(recipe: Recipe, epoch: int, cuts: int, visited: int = 0) -> float:
    """The step size of an epoch, numbered from 1, after `cuts` plateaus and that many visits to rows."""
    if recipe.schedule == "invscaling":
        return float(recipe.learning_rate * (1.0 + visited) ** -recipe.power)  # so a steep power ends at 0
    if recipe.schedule == "1/sqrt(t)":
        return float(recipe.learning_rate / np.sqrt(epoch))
    if recipe.schedule == "cosine":
        share = min((epoch - 1) / (recipe.horizon or recipe.max_epochs), 1.0)
        return float(recipe.learning_rate * 0.5 * (1.0 + np.cos(np.pi * share)))
    return float(recipe.learning_rate * CUT**cuts)


def train(
    trainer: Any, visits: Visits, recipe: Recipe, state: State, held_out: Any, clock: Progress
) -> tuple[State, History]:
    """Epoch after epoch until what is watched no longer falls.

    `trainer` goes through one epoch: ``trainer.load(state)``, ``trainer.epoch(order, recipe, rate)`` gives the mean loss of the
    rows as they were met and whether all stayed finite, ``trainer.state()``.
    """
    watch, cuts, visited = Watch(held_out, recipe, state, clock), 0, recipe.visited
    history = watch.history
    history.visited = visited
    least = LEAST * recipe.learning_rate if recipe.least_rate is None else recipe.least_rate
    trainer.load(state)
    for epoch in range(1, recipe.max_epochs + 1):
        rate, order = rate_at(recipe, recipe.before + epoch, cuts, visited), visits.next()
        loss, sound = _epoch(trainer, order, recipe, rate)
        after = trainer.state()
        if not sound or not after.finite:
            history.ran_away = True
            history.note = (
                f"Training ran away in epoch {epoch} at a step size of {rate:.3g} and went back to the weights before it: "
                "give a smaller learning_rate, or clip gradients."
            )
            break
        history.rate.append(rate)
        history.visited = visited = visited + order.shape[0]
        if not watch.saw(loss, trainer, after):
            continue
        if recipe.schedule != "plateau" or rate * CUT < least:
            history.settled = True
            break
        cuts, watch.idle = cuts + 1, 0
    return watch.found()


def _epoch(trainer: Any, order: Array, recipe: Recipe, rate: float) -> tuple[float, bool]:
    """Once over the rows: their mean loss, and whether it stayed finite."""
    n, rest = order.shape[0], order.shape[0] % recipe.batch_size
    if not recipe.per_batch or rest in (0, n):
        return trainer.epoch(order, recipe, rate)
    loss, sound = trainer.epoch(order[: n - rest], recipe, rate)
    if not sound:
        return loss, sound
    more = replace(recipe, alpha=recipe.alpha * recipe.batch_size / rest)
    last, sound = trainer.epoch(order[n - rest :], more, rate)
    return (loss * (n - rest) + last * rest) / n, sound
