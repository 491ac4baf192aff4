"""Stochastic gradient descent: one batch of rows, one step, and a duality gap to say how far it came.

    z = w − η_t · mean over the batch of ℓ'(y_i, f_i)·x_i,        w ← prox_{η_t R}(z),      b ← b − η_t · mean ℓ'(y_i, f_i)

Weights are visits: in an epoch a row of weight s is visited s times (a fraction by chance), so that a weight of 2 and the row
given twice are the same draw. Iterates are averaged over windows of 1, 1, 2, 4, 8, … epochs (Polyak and Juditsky 1992;
Rakhlin et al. 2012), and at the end and in the middle of each window the gap is computed: the fit stops once it is small
enough, and cuts its step when a window brought little.

The engines that take the steps are in `stochastic_engines`, the bounds in `stochastic_bounds`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

import certifit._native.stochastic as native
from certifit._types import Array
from certifit.progress import Progress

__all__ = ["SCHEDULES", "Descent", "Engine", "Steps", "Visits", "descend", "step_at", "step_schedule"]

SCHEDULES = ("optimal", "constant", "1/t", "1/sqrt(t)")
VISITS_LIMIT = 64  # whole weights are taken as counts while an epoch has at most this many visits a row
CACHE = 8 << 20  # bytes of X from which the order of rows is drawn with memory in mind
BLOCK, GROUP = 32, 64  # rows of a block, blocks that are shuffled together


@dataclass(frozen=True)
class Steps:
    """How steps are taken."""

    schedule: str = "optimal"
    size: float | None = None
    batch: int = 1
    average: bool = True
    shuffle: bool = True
    cut: float = 0.5
    """Factor of the step when a window brought little."""


class Visits:
    """The rows of one epoch after the other, in a drawn order."""

    def __init__(self, weight: Array, shuffle: bool, rng: np.random.Generator, size: int = 0) -> None:
        n = weight.shape[0]
        # Rows beyond the cache are shuffled in groups of blocks; `size` is what they take, in bytes.
        self.block = 1 if size <= CACHE else BLOCK
        if n >= 2**32:
            raise ValueError(
                f"X has {n} rows; stochastic gradient descent takes fewer than 2³² at a time: use partial_fit."
            )
        self.rng, self.shuffle = rng, shuffle
        self.state = rng.integers(0, 2**64, size=4, dtype=np.uint64)
        self.fraction: Array | None = None
        self.rows = np.arange(n, dtype=np.uint32)
        if bool((weight == 1.0).all()):
            return
        total = float(weight.sum())
        counts = bool((weight == np.rint(weight)).all()) and total <= VISITS_LIMIT * n
        rate = weight if counts else weight * (n / total)
        whole = np.floor(rate)
        self.whole = whole.astype(np.int64)
        if bool((whole == rate).all()):
            self.rows = np.repeat(self.rows, self.whole)
        else:
            self.fraction = rate - whole

    def next(self) -> Array:
        """Row numbers of the next epoch."""
        if self.fraction is None:
            order = self.rows
        else:
            extra = self.rng.random(self.fraction.shape[0]) < self.fraction
            order = np.repeat(np.arange(self.fraction.shape[0], dtype=np.uint32), self.whole + extra)
        if self.shuffle:
            native.shuffle(order, self.state, self.block, GROUP)
        return order


class Engine(Protocol):
    """What the loop asks of an engine."""

    scale: float
    """Objective of the best constant."""
    goal: float
    """The gap that is wanted: a bound that reaches it need not be improved."""

    @property
    def t(self) -> float:
        """Batches so far."""

    def epoch(self, order: Array, schedule: tuple[float, float, float, float], average_from: int) -> tuple[float, bool]:
        """Visit the rows; the mean running loss, and whether the scores ran away."""

    def restart(self) -> None:
        """Forget the average."""

    def save(self) -> Any:
        """What `load` needs to come back here."""

    def load(self, saved: Any) -> None:
        """Come back to a saved point."""

    def point(self) -> tuple[Array, Any]:
        """The averaged iterate, or the last one when there is no average; in the precision of X."""

    def evaluate(self, w: Array, b: Any) -> tuple[float, float]:
        """Objective and lower bound, in double precision."""


@dataclass(frozen=True)
class Descent:
    """How a descent went."""

    coef: Array
    intercept: Any
    objective: float
    bound: float
    epochs: int
    step: float
    """The step size of the first batch."""
    history: list[float]
    """Running loss of each epoch, each row before it was learned from."""
    validation: list[float]
    note: str
    stopped_early: bool


def descend(
    engine: Engine,
    visits: Visits,
    steps: Steps,
    curvature: tuple[float, float],
    tol: float,
    max_epochs: int,
    clock: Progress,
    held_out: Any = None,
    patience: int = 5,
    stall: float | None = None,
) -> Descent:
    """Epochs until the relative gap is `tol`, the rows held out say stop, the loss stalls, or `max_epochs`.

    Parameters
    ----------
    curvature : (float, float)
        How far a first step of size one overshoots on a typical row, and the strength of L2: see `typical_curvature`.
    held_out : callable, optional
        Loss of a point (w, b) on rows set aside.
    stall : float, optional
        A fall from the lowest loss so far (of the rows held out, or the running one) that is no more than this is none; after
        `patience` epochs without one the descent ends. Without it, only rows held out can end it.
    """
    steep, l2 = curvature
    schedule = step_schedule(steps, steep, l2)
    first = step_at(schedule, engine.t + 1.0)
    notes: list[str] = []
    history: list[float] = []
    validation: list[float] = []
    best: tuple[float, Array, Any] | None = None
    bound, cuts, waited, lowest, stopped = 0.0, 0, 0, np.inf, False
    goal = engine.goal = tol * engine.scale
    epoch, window = 0, 0
    while epoch < max_epochs:
        if epoch & (epoch - 1) == 0:
            engine.restart()
            window = epoch
        saved = engine.save()
        order = visits.next()
        # The first window starts at the constant model: its first half is the way there, not the neighborhood.
        skip = (order.shape[0] // steps.batch) // 2 if epoch == window == 0 else 0
        loss, diverged = engine.epoch(order, schedule, skip)
        usual = max(engine.scale, history[0] if history else 0.0)
        if diverged or (usual > 0 and not loss <= 1e3 * usual):
            engine.load(saved)
            if steps.size is not None:
                notes.append(f"Diverged in epoch {epoch + 1} with step={steps.size:g}: give a smaller step.")
                break
            cuts += 1
            if cuts > 60:
                notes.append("Diverged with every step size that was tried; scale the features.")
                break
            steep *= 8.0
            schedule = step_schedule(steps, steep, l2)
            continue
        history.append(loss)
        epoch += 1
        if held_out is not None:
            w, b = engine.point()
            validation.append(held_out(w, b))
            fell = validation[-1] < lowest - (1e-4 * max(engine.scale, 0.0) if stall is None else stall)
            if fell or (stall is not None and validation[-1] <= lowest):  # of equals the later, which has seen more
                lowest, best = validation[-1], (np.nan, w, b)
            waited = 0 if fell else waited + 1
            if waited == (patience + 1) // 2 < patience:  # perhaps the step is too large for what is left
                schedule = (schedule[0] * steps.cut, *schedule[1:])
                engine.restart()
            clock.update(epoch, max_epochs, np.inf)
            if waited >= patience:
                stopped = True
                break
            continue
        if stall is not None:
            waited = 0 if loss < lowest - stall else waited + 1
            lowest, stopped = min(lowest, loss), waited >= patience
        if stopped or epoch == max_epochs or _is_checkpoint(epoch):
            w, b = engine.point()
            objective, new_bound = engine.evaluate(w, b)
            bound = max(bound, new_bound)
            before = best[0] if best is not None else engine.scale
            if best is None or objective < best[0]:
                best = (objective, w, b)
            clock.update(epoch, max_epochs, (best[0] - bound) / engine.scale if engine.scale > 0 else np.inf)
            if stopped or best[0] - bound <= goal:
                break
            # A quarter of what is missing, where a good bound says what is missing; else a share of the whole.
            missing = 0.25 * (before - bound) if bound > 0.5 * before else 0.02 * before
            if not before - objective >= missing and not _falls(
                history[max(window - 1, 0) :], order.shape[0] // steps.batch
            ):
                # Never below c/√epochs: a step that is too small closes little too, and would be cut for ever.
                least = 1.0 / (steep * np.sqrt(epoch)) if steps.size is None else 0.0
                schedule = (max(schedule[0] * steps.cut, min(least, schedule[0])), *schedule[1:])
                engine.restart()
    if best is None:
        w, b = engine.point()
        best = (np.nan, w, b)
    objective, w, b = best
    if not np.isfinite(objective):
        objective, bound = engine.evaluate(w, b)
    if cuts and steps.size is None:
        notes.append(f"The first step size diverged and was cut {cuts} times.")
    return Descent(w, b, objective, bound, epoch, first, history, validation, " ".join(notes), stopped)


def _falls(losses: list[float], batches: int) -> bool:
    """Whether the running loss still falls from epoch to epoch: the way is long then, and the step not too large for the noise.

    Few batches an epoch have little noise, and one epoch more than another tells; many need several epochs in a row.
    """
    enough = 2 if batches <= 4 else 5
    return len(losses) >= enough and all(later < sooner for sooner, later in pairwise(losses))


def step_schedule(steps: Steps, steep: float, l2: float) -> tuple[float, float, float, float]:
    """(size, offset, slope, power) with η_t = size / (offset + slope·t)^power."""
    size = 1.0 / steep if steps.size is None else steps.size
    if steps.schedule == "constant":
        return size, 0.0, 0.0, 0.0
    if steps.schedule == "1/sqrt(t)":
        return size, 0.0, 1.0, 0.5
    if steps.schedule == "1/t":
        if steps.size is not None:
            return size, 0.0, 1.0, 1.0
        # Pegasos' 1/(l2·t), started where the first step does not overshoot.
        return size, 1.0, l2 * size, 1.0
    # An average forgives larger steps, and gains from them: Xu 2011.
    return size, 1.0, l2 * size, 0.75 if steps.average else 1.0


def step_at(schedule: tuple[float, float, float, float], t: float) -> float:
    """The step size of batch t."""
    size, offset, slope, power = schedule
    return size if power == 0.0 else float(size * (offset + slope * t) ** -power)


def _is_checkpoint(epoch: int) -> bool:
    """1, 2, 3, 4, 6, 8, 12, 16, …: the end and the middle of each window."""
    third = epoch // 3 if epoch % 3 == 0 else epoch
    return epoch & (epoch - 1) == 0 or third & (third - 1) == 0
