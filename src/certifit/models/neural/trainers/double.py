"""The network in double precision: the formulas of `native/network/` in NumPy, their products by BLAS.

For L-BFGS, whose line search needs more digits than single precision has, for ``dtype="float64"``, and as what `check_gradients`
compares with. The caller keeps BLAS to one thread, so that the result does not depend on their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from certifit._types import Array, Matrix, is_sparse
from certifit.models.neural.layers import Columns, leaks, n_weights, parts, penalty_of
from certifit.models.neural.objective import Target
from certifit.models.neural.training import Recipe, State, adaptive

__all__ = ["BLOCK", "DoubleNetwork", "DoubleTrainer"]

BLOCK = 4096  # rows that go through the layers at a time
BEYOND = float(np.finfo(np.float32).max)  # a loss like that has run away in any precision


def _relu(z: Array, leak: Any) -> tuple[Array, Array]:
    a = np.maximum(z, 0.0, out=z)
    return a, a > 0


def _bent(z: Array, leak: Any) -> tuple[Array, Array]:
    slope = np.where(z > 0, 1.0, leak)
    z *= slope
    return z, slope


def _tanh(z: Array, leak: Any) -> tuple[Array, Array]:
    a = np.tanh(z, out=z)
    return a, 1.0 - a * a


def _sigmoid(z: Array, leak: Any) -> tuple[Array, Array]:
    a = expit(z, out=z)
    return a, a * (1.0 - a)


UNITS: dict[str, Callable[[Array, Any], tuple[Array, Array]]] = {
    "identity": lambda z, leak: (z, np.ones(z.shape, dtype=bool)),
    "relu": _relu,
    "leaky_relu": _bent,
    "prelu": _bent,
    "tanh": _tanh,
    "sigmoid": _sigmoid,
}
"""Outputs of units, written over their inputs, and their slopes."""


class DoubleNetwork:
    """Layers without weights: what they make of rows, and how slopes come back."""

    def __init__(self, sizes: Sequence[int], activation: str, leak: float) -> None:
        self.sizes, self.activation, self.leak = tuple(sizes), activation, leak

    def outputs(self, weights: Array, a: Any, layer: int | None = None) -> Array:
        """What the units of a layer give for rows as the network sees them; the scores by default."""
        coefs, intercepts = parts(self.sizes, weights)
        below = leaks(self.sizes, weights)
        for number in range(len(coefs) if layer is None else layer):
            a = a @ coefs[number] + intercepts[number]
            if number + 1 < len(coefs):
                a, _ = UNITS[self.activation](a, below[number] if below else self.leak)
        return _dense(a)

    def backpropagated(
        self, weights: Array, a: Any, slopes_at: Callable[[Array], Array], dropout: float = 0.0, draws: Any = None
    ) -> tuple[Array, Array]:
        """The gradient of a sum over rows at the weights, and its slopes at the inputs of the units of the first layer.

        ``slopes_at(scores)`` gives the slopes of the sum at the scores.
        """
        coefs, intercepts = parts(self.sizes, weights)
        below, last = leaks(self.sizes, weights), len(coefs) - 1
        inputs, slopes, low = [a], [], []
        for layer in range(last):
            z = a @ coefs[layer]
            z += intercepts[layer]
            # Where a unit was below zero its output was leak·z, of which z is the slope at the leak.
            under = np.minimum(z, 0.0) if below else None
            a, slope = UNITS[self.activation](z, below[layer] if below else self.leak)
            if dropout > 0:
                kept = (draws.random(a.shape) >= dropout) / (1.0 - dropout)
                a, slope, under = a * kept, slope * kept, None if under is None else under * kept
            inputs.append(a)
            slopes.append(slope)
            low.append(under)
        delta = slopes_at(a @ coefs[last] + intercepts[last])
        gradient = np.empty_like(weights)
        at_coefs, at_intercepts = parts(self.sizes, gradient)
        at_below = leaks(self.sizes, gradient)
        for layer in range(last, -1, -1):
            at_coefs[layer][...] = inputs[layer].T @ delta
            at_intercepts[layer][...] = delta.sum(axis=0)
            if layer:
                delta = delta @ coefs[layer].T
                if below:
                    at_below[layer - 1][...] = (delta * low[layer - 1]).sum(axis=0)
                delta *= slopes[layer - 1]
        return gradient, delta


class DoubleTrainer:
    """Epochs over rows and targets that stay the same; and the whole objective with its gradient, weights of rows included."""

    def __init__(
        self, sizes: Sequence[int], activation: str, leak: float, columns: Columns, X: Matrix, target: Target
    ) -> None:
        self.net, self.columns, self.target = DoubleNetwork(sizes, activation, leak), columns, target
        self.rows = self._seen(X)
        self.decays = np.zeros(n_weights(sizes) + (sum(sizes[1:-1]) if activation == "prelu" else 0))
        for coef in parts(sizes, self.decays)[0]:
            coef[...] = 1.0
        self.now = State.start(np.zeros_like(self.decays))

    def _seen(self, X: Matrix) -> Any:
        """Rows as the network sees them; zeros stay unwritten where nothing is subtracted from them."""
        if is_sparse(X) and not self.columns.mean.any():
            return csr_array(X.astype(np.float64).multiply(1.0 / self.columns.scale[None, :]))
        return self.columns.scaled(X, np.float64)

    def load(self, state: State) -> None:
        """Go on from here."""
        weights, first, second = (np.array(p, dtype=np.float64) for p in (state.weights, state.first, state.second))
        self.now = State(weights, first, second, state.steps)

    def state(self) -> State:
        """Where it is."""
        now = self.now
        return State(now.weights.copy(), now.first.copy(), now.second.copy(), now.steps)

    def epoch(self, order: Array, recipe: Recipe, rate: float) -> tuple[float, bool]:
        """Once over the rows; their mean loss as they were met, and whether it stayed finite."""
        draws = np.random.default_rng((recipe.seed, int(self.now.steps)))
        total = 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, order.shape[0], recipe.batch_size):
                visited = order[start : start + recipe.batch_size]
                loss, gradient = self._batch(visited, recipe, draws)
                total += loss
                if not abs(loss) < BEYOND:
                    return total, False
                self._step(gradient, recipe, rate)
        return total / order.shape[0], True

    def _batch(self, visited: Array, recipe: Recipe, draws: Any) -> tuple[float, Array]:
        """The summed loss of a batch, and the gradient of its mean."""
        a = self.rows[visited]
        if recipe.adversarial > 0:
            a = _dense(a) + recipe.adversarial * np.sign(self.input_slopes(visited))
        if recipe.input_noise > 0:
            a = _dense(a) + recipe.input_noise * draws.normal(size=a.shape)
        values, gradient, _ = self._slopes(self.now.weights, a, visited, 1.0 / len(visited), recipe.dropout, draws)
        return float(values.sum()), gradient

    def _slopes(
        self, weights: Array, a: Any, rows: Any, factor: Any, dropout: float = 0.0, draws: Any = None
    ) -> tuple[Array, Array, Array]:
        """Losses of rows, the gradient of their sum with these factors, and its slopes at the inputs of the first layer."""
        found: list[Array] = []

        def slopes_at(scores: Array) -> Array:
            values, slopes = self.target.at(rows, scores + self.target.offset)
            found.append(values)
            return slopes * factor

        gradient, at_first = self.net.backpropagated(weights, a, slopes_at, dropout, draws)
        return found[0], gradient, at_first

    def _step(self, gradient: Array, recipe: Recipe, rate: float) -> None:
        """The formulas of `native/network/step.hpp`."""
        now, g = self.now, gradient
        if recipe.clip > 0:
            g *= min(1.0, recipe.clip / max(float(np.linalg.norm(g)), 1e-300))
        if recipe.optimizer == "adamw":
            now.weights *= 1.0 - rate * recipe.alpha * self.decays
        else:
            g += recipe.alpha * self.decays * now.weights
        now.steps += 1.0
        if adaptive(recipe.optimizer):
            first, second = recipe.betas
            now.first += (1.0 - first) * (g - now.first)
            now.second += (1.0 - second) * (g * g - now.second)
            root = np.sqrt(now.second / (1.0 - second**now.steps)) + recipe.epsilon_at(now.steps)
            now.weights -= rate / (1.0 - first**now.steps) * now.first / root
            return
        now.first *= recipe.momentum
        now.first -= rate * g
        now.weights += recipe.momentum * now.first - rate * g if recipe.optimizer == "nesterov" else now.first

    def objective(self, weights: Array, alpha: float) -> tuple[float, Array]:
        """The weighted mean loss of all rows plus the penalty, and its gradient."""
        share = self.target.weight / self.target.weight.sum()
        total, gradient = alpha * penalty_of(self.net.sizes, weights), alpha * self.decays * weights
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, share.shape[0], BLOCK):
                rows = slice(start, start + BLOCK)
                values, slopes, _ = self._slopes(weights, self.rows[rows], rows, share[rows, None])
                total += float(share[rows] @ values)
                gradient += slopes
        return total, gradient

    def gradient(self, rows: Array) -> Array:
        """The gradient of the mean loss over some of the rows, all layers in one vector."""
        return self._slopes(self.now.weights, self.rows[rows], rows, 1.0 / len(rows))[1]

    def input_slopes(self, rows: Array) -> Array:
        """The slopes of the loss of each of some rows at its inputs."""
        return (
            self._slopes(self.now.weights, self.rows[rows], rows, 1.0)[2]
            @ parts(self.net.sizes, self.now.weights)[0][0].T
        )

    def output(self, layer: int | None = None, width: int = 0, rows: Any = None) -> Array:
        """What the units of a layer give for the rows; `width` is known here."""
        rows = self.rows if rows is None else rows
        blocks = range(0, rows.shape[0], BLOCK)
        with np.errstate(over="ignore", invalid="ignore"):
            found = [self.net.outputs(self.now.weights, rows[start : start + BLOCK], layer) for start in blocks]
        return np.concatenate(found)

    def scores(self, X: Matrix | None = None) -> Array:
        """Scores of rows, by default those it trains on, in units."""
        return self.output(rows=None if X is None else self._seen(X)) + self.target.offset


def _dense(a: Any) -> Array:
    return np.asarray(a.toarray() if is_sparse(a) else a)
