"""What to look at when a network does not learn: gradients against differences, dead and saturated units, steepness by layer.

Adversarial examples are the rows themselves, moved by a step that nobody would notice to where their loss is greater:
x + eps·scale·sign(∂ℓ/∂x) (Goodfellow et al. 2015).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix
from certifit.data.gate import check_real
from certifit.models.neural.evidence import gradient_at
from certifit.models.neural.layers import Columns, ends, leaks, parts, penalty_of
from certifit.models.neural.objective import Target
from certifit.models.neural.trainers.cpu import Trainer
from certifit.models.neural.trainers.double import DoubleNetwork, DoubleTrainer
from certifit.models.neural.training import State
from certifit.names import record
from certifit.threads import n_threads

__all__ = ["Diagnostics", "GradientCheck", "UnitReport"]

SLOPES: dict[str, Callable[[Array, Any], Array]] = {
    "relu": lambda a, leak: (a > 0).astype(np.float64),
    "leaky_relu": lambda a, leak: np.where(a > 0, 1.0, leak),
    "prelu": lambda z, leak: np.where(z > 0, 1.0, np.abs(leak)),
    "tanh": lambda a, leak: 1.0 - a * a,
    "sigmoid": lambda a, leak: a * (1.0 - a),
    "identity": lambda a, leak: np.ones_like(a, dtype=np.float64),
}
"""Steepness of a unit from its output; from its input where the slope below zero may be negative."""
FLAT = 0.05  # share of its greatest slope below which a unit learns next to nothing


@record("GradientCheck")
class GradientCheck:
    """Gradients by backpropagation against differences of the objective, layer by layer."""

    errors: tuple[float, ...]
    """Of each layer: the greatest difference, relative to the greatest slope of all layers."""
    norms: tuple[float, ...]
    """Norm of the gradient of each layer."""

    @property
    def passed(self) -> bool:
        """Whether every layer agrees to the digits of single precision."""
        return max(self.errors) < 1e-3

    def __str__(self) -> str:
        lines = [
            f"layer {i + 1}: off by {e:.1e}, norm {n:.2g}"
            for i, (e, n) in enumerate(zip(self.errors, self.norms, strict=True))
        ]
        return "\n".join(["Gradients agree." if self.passed else "Gradients DISAGREE.", *lines])


@record("UnitReport")
class UnitReport:
    """Units of the hidden layers that learn nothing: dead on every row, or saturated on nearly all."""

    units: tuple[int, ...]
    dead: tuple[int, ...]
    saturated: tuple[int, ...]
    norms: tuple[float, ...]
    """Norm of the gradient of each layer, the output layer last; a fall by orders from last to first is a vanishing gradient."""

    @property
    def vanishing(self) -> bool:
        """Whether the first layer is less than a thousandth as steep as the last."""
        return bool(self.norms[0] < 1e-3 * self.norms[-1])

    @property
    def exploding(self) -> bool:
        """Whether the first layer is more than a thousand times as steep as the last."""
        return bool(self.norms[0] > 1e3 * self.norms[-1])

    def __str__(self) -> str:
        lines = [
            f"hidden layer {i + 1}: {n} units, {d} dead, {s} saturated; gradient {g:.2g}"
            for i, (n, d, s, g) in enumerate(zip(self.units, self.dead, self.saturated, self.norms[:-1], strict=True))
        ]
        word = "The gradient vanishes." if self.vanishing else "The gradient explodes." if self.exploding else ""
        return "\n".join([*lines, f"output layer: gradient {self.norms[-1]:.2g}", *([word] if word else [])])


class Diagnostics:
    """Methods of a fitted network that look inside it; a model says what its targets are in `_examined`."""

    activation: str
    leak: float
    alpha: float
    categorical_features: Any
    n_jobs: Any
    coefs_: list[Array]
    mean_: Array
    scale_: Array

    def _examined(self, X: Matrix, y: Any) -> Target:
        raise TypeError(f"{type(self).__name__} must say what its targets are.")

    @staticmethod
    def _check_rows(X: Matrix, y: Array) -> None:
        if y.shape[0] != X.shape[0]:
            raise ValueError(f"X and y must have the same number of rows: X has {X.shape[0]}, y has shape {y.shape}.")

    def _checked(self, X: Any) -> Matrix:
        raise TypeError(f"{type(self).__name__} must say how it takes rows.")

    def _same_layers(self, sizes: tuple[int, ...]) -> State:
        raise TypeError(f"{type(self).__name__} must say where it stands.")

    def _at(self, X: Any, y: Any) -> tuple[Matrix, Trainer | DoubleTrainer, Target, State, tuple[int, ...]]:
        """Checked rows and the network on them."""
        check_is_fitted(self)
        X = self._checked(X)
        target = self._examined(X, y)
        sizes = (self.coefs_[0].shape[0], *(coef.shape[1] for coef in self.coefs_))
        columns = Columns(self.mean_, self.scale_)
        given = (sizes, self.activation, float(self.leak), columns, X, target)
        double = getattr(self, "_double", False)
        trainer = DoubleTrainer(*given) if double else Trainer(*given, n_threads(self.n_jobs))
        state = State.start(self._same_layers(sizes).weights.astype(np.float64 if double else np.float32))
        trainer.load(state)
        return X, trainer, target, state, sizes

    def check_gradients(self, X: Any, y: Any, n_weights: int = 20) -> GradientCheck:
        """Backpropagation against differences of the objective in double precision.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            A few rows will do.
        y : array of shape (n_samples,)
            Their targets.
        n_weights : int, default=20
            Weights and biases of each layer that are tried.

        Returns
        -------
        GradientCheck
            Print it; `passed` sums it up.
        """
        check_real("n_weights", n_weights, low=1, integer=True)
        X, trainer, target, state, sizes = self._at(X, y)
        rows = np.arange(X.shape[0], dtype=np.uint32)
        gradient = gradient_at(trainer, sizes, state, float(self.alpha), rows).astype(np.float64)
        inputs = trainer.output(0, sizes[0]).astype(np.float64)
        net, alpha = DoubleNetwork(sizes, self.activation, float(self.leak)), float(self.alpha)

        def objective(at: Array) -> float:
            # All rows count alike in a gradient of rows as they are.
            return target.mean(net.outputs(at, inputs) + target.offset) + alpha * penalty_of(sizes, at)

        at, rng = state.weights.astype(np.float64), np.random.default_rng(0)
        size = max(float(np.abs(gradient).max()), 1e-300)
        errors, norms = [], []
        for start, end in pairwise(ends(sizes, at)):
            tried = rng.choice(np.arange(start, end), size=min(int(n_weights), int(end - start)), replace=False)
            off = [np.abs(_slopes(objective, at, int(i)) - gradient[i]).min() for i in tried]
            errors.append(float(max(off)) / size)
            norms.append(float(np.linalg.norm(gradient[start:end])))
        return GradientCheck(tuple(errors), tuple(norms))

    def unit_report(self, X: Any, y: Any) -> UnitReport:
        """Dead and saturated units, and how steep each layer is.

        A unit is dead if it is at its flat side for every row, and saturated if it is not dead but its slope is below a
        twentieth of the greatest for 95 % of the rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows, of training or new ones.
        y : array of shape (n_samples,)
            Their targets.

        Returns
        -------
        UnitReport
            Print it.
        """
        X, trainer, _, state, sizes = self._at(X, y)
        rows = np.arange(X.shape[0], dtype=np.uint32)
        gradient = gradient_at(trainer, sizes, state, 0.0, rows).astype(
            np.float64
        )  # of the loss: the penalty never vanishes
        norms = [float(np.linalg.norm(gradient[start:end])) for start, end in pairwise(ends(sizes, gradient))]
        top = {"sigmoid": 0.25}.get(self.activation, 1.0)
        dead, saturated = [], []
        below = leaks(sizes, state.weights)
        for layer in range(1, len(sizes) - 1):
            shown = trainer.output(layer - bool(below), sizes[layer - bool(below)])
            if below:
                coefs, intercepts = parts(sizes, state.weights)
                shown = shown @ coefs[layer - 1] + intercepts[layer - 1]
            leak = below[layer - 1] if below else float(self.leak)
            flat = SLOPES[self.activation](shown.astype(np.float64), leak) < FLAT * top
            never = flat.all(axis=0)
            dead.append(int(never.sum()))
            saturated.append(int(((flat.mean(axis=0) >= 0.95) & ~never).sum()))
        return UnitReport(tuple(sizes[1:-1]), tuple(dead), tuple(saturated), tuple(norms))

    def adversarial(self, X: Any, y: Any, eps: float = 0.1) -> Array:
        """Rows moved by `eps` standardized units in every column to where their loss is greater: the fast gradient sign.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows.
        y : array of shape (n_samples,)
            Their true targets.
        eps : float, default=0.1
            Size of the step, in units of `scale_`.

        Returns
        -------
        array of shape (n_samples, n_features)
            Dense, in the units of X.
        """
        check_real("eps", eps, low=0)
        if self.categorical_features is not None:
            raise ValueError(
                "adversarial moves rows by steps, and categories take none: fit with categorical_features=None."
            )
        X, trainer, *_ = self._at(X, y)
        slopes = trainer.input_slopes(np.arange(X.shape[0], dtype=np.uint32))
        dense = X.toarray() if hasattr(X, "toarray") else X
        return np.asarray(dense + eps * self.scale_ * np.sign(slopes), dtype=dense.dtype)


def _slopes(objective: Callable[[Array], float], at: Array, i: int) -> Array:
    """Differences along one weight: from side to side, up and down. At a kink of a unit the gradient is one of the last two."""
    step = np.zeros_like(at)
    step[i] = 1e-5 * max(1.0, abs(at[i]))
    up, here, down = objective(at + step), objective(at), objective(at - step)
    return np.array([0.5 * (up - down), up - here, here - down]) / step[i]
