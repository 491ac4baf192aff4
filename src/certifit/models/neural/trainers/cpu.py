"""The native trainer: a network on the processor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import certifit._native.network as native
from certifit._types import Array, Matrix
from certifit.models.neural.layers import Columns
from certifit.models.neural.objective import Target
from certifit.models.neural.training import Recipe, State

__all__ = ["Trainer", "layer_output"]


class Trainer:
    """Epochs over rows and targets that stay the same."""

    def __init__(
        self,
        sizes: Sequence[int],
        activation: str,
        leak: float,
        columns: Columns,
        X: Matrix,
        target: Target,
        threads: int,
    ) -> None:
        self.net = native.network(list(sizes), activation, leak)
        self.rows, self.y, self.loss = columns.kept(X, threads), target.plain(), target.native()
        self.columns, self.offset, self.threads = columns, target.offset, threads
        self.depth, self.n_scores = len(sizes) - 1, sizes[-1]
        self.clock = np.zeros(1)

    def load(self, state: State) -> None:
        """Go on from here."""
        self.net.load("weights", state.weights)
        self.net.load("first", state.first)
        self.net.load("second", state.second)
        self.clock[0] = state.steps

    def state(self) -> State:
        """Where it is."""
        found = [np.empty(self.net.size, dtype=np.float32) for _ in range(3)]
        for name, values in zip(("weights", "first", "second"), found, strict=True):
            self.net.save(name, values)
        return State(found[0], found[1], found[2], float(self.clock[0]))

    def epoch(self, order: Array, recipe: Recipe, rate: float) -> tuple[float, bool]:
        """Once over the rows; their mean loss as they were met, and whether it stayed finite."""
        plan = native.plan(
            recipe.optimizer,
            rate,
            recipe.momentum,
            (*recipe.betas, recipe.epsilon, *([True] if recipe.unscaled else [])),
            recipe.alpha,
            min(recipe.batch_size, order.shape[0]),
            (recipe.dropout, recipe.input_noise, recipe.adversarial),
            recipe.clip,
            recipe.seed,
        )
        total, sound = self.net.train(self.rows, self.y, order, self.loss, plan, self.clock, self.threads)
        return total / order.shape[0], sound

    def gradient(self, rows: Array) -> Array:
        """The gradient of the mean loss over some of the rows, all layers in one vector."""
        found = np.empty(self.net.size, dtype=np.float32)
        self.net.differentiate(self.rows, self.y, rows, self.loss, found, self.threads)
        return found

    def input_slopes(self, rows: Array) -> Array:
        """The slopes of the loss of each of some rows at its inputs."""
        found = np.empty((rows.shape[0], self.rows.shape[1]), dtype=np.float32)
        self.net.input_slopes(self.rows, self.y, rows, self.loss, found, self.threads)
        return found

    def output(self, layer: int, width: int) -> Array:
        """What the units of a layer give for the rows."""
        return layer_output(self.net, self.rows, layer, width, self.threads)

    def scores(self, X: Matrix | None = None) -> Array:
        """Scores of rows, by default those it trains on, in units and in double precision."""
        rows = self.rows if X is None else self.columns.seen(X)
        return layer_output(self.net, rows, self.depth, self.n_scores, self.threads) + self.offset


def layer_output(net: native.Network, rows: native.Inputs, layer: int, width: int, threads: int) -> Array:
    """What the units of a layer give for rows, in single precision."""
    out = np.empty((rows.shape[0], width), dtype=np.float32)
    net.evaluate(rows, layer, out, threads)
    return out
