"""The same training on a GPU, through PyTorch where it is installed with CUDA.

The formulas are those of `native/network/`, written out: PyTorch gives products and elementwise kernels, not derivatives. Weights
are one vector on the device, and their layers views of it, so that a step of the optimizer is a few kernels whatever the depth.
Without dropout and noise, which draw from another generator there, the result is that of the processor up to the rounding of
single precision. A loss that has no formula here is evaluated on the processor, batch by batch: right, and slower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from certifit._types import Array, Matrix
from certifit.models.neural.layers import Columns
from certifit.models.neural.objective import Target
from certifit.models.neural.training import Recipe, State, adaptive

__all__ = ["CudaTrainer", "import_torch"]

BLOCK = 1 << 16  # rows that are scored at a time

Pair = tuple[Callable[..., Any], Callable[..., Any]]
# Value and slope at scores f of targets y, with the parameters a and c of the loss as in `native/stochastic/loss.hpp`.
SHIFTED: dict[str, Pair] = {
    "squared": (lambda t, y, f, a, c: 0.5 * (f - y) ** 2, lambda t, y, f, a, c: f - y),
    "absolute": (lambda t, y, f, a, c: (f - y).abs(), lambda t, y, f, a, c: t.sign(f - y)),
    "huber": (
        lambda t, y, f, a, c: c * (f - y).abs().clamp(max=a) * ((f - y).abs() - 0.5 * (f - y).abs().clamp(max=a)),
        lambda t, y, f, a, c: c * (f - y).clamp(-a, a),
    ),
    "quantile": (
        lambda t, y, f, a, c: t.where(f > y, (1.0 - a) * (f - y), a * (y - f)),
        lambda t, y, f, a, c: (1.0 - a) * (f > y).to(f.dtype) - a * (f < y).to(f.dtype),
    ),
}
"""Losses of the difference f − y: what the targets have in common is subtracted in double precision."""
LINKED: dict[str, Pair] = {
    "logistic": (
        lambda t, y, f, a, c: t.nn.functional.softplus(f) - y * f,
        lambda t, y, f, a, c: t.sigmoid(f) - y,
    ),
    "poisson": (
        lambda t, y, f, a, c: t.exp(f) - y * f - y + t.xlogy(y, y),
        lambda t, y, f, a, c: t.exp(f) - y,
    ),
}
NAMES = ("softmax", *SHIFTED, *LINKED)


def import_torch() -> Any:
    """PyTorch with a GPU, or an error that says what is missing."""
    try:
        import torch
    except ImportError as error:
        raise ValueError(
            "device='cuda' needs PyTorch with CUDA, and PyTorch is not installed: use device='cpu'."
        ) from error
    if not torch.cuda.is_available():
        raise ValueError("device='cuda' needs a GPU that PyTorch can use, and it finds none: use device='cpu'.")
    return torch


class CudaTrainer:
    """Epochs over rows and targets that stay on the device."""

    def __init__(
        self,
        torch: Any,
        sizes: Sequence[int],
        activation: str,
        leak: float,
        columns: Columns,
        X: Matrix,
        target: Target,
        device: str = "cuda",
    ) -> None:
        self.torch, self.device, self.sizes = torch, torch.device(device), list(sizes)
        self.activation, self.leak, self.columns, self.offset = activation, leak, columns, target.offset
        self.name, self.a, self.c, *_ = (*(target.form or ("",)), 0.0, 0.0)
        self.softmax = self.name == "softmax"
        # A loss without a formula here is asked on the processor, batch by batch.
        self.elsewhere = None if self.name in NAMES else target.function()
        self.X = torch.from_numpy(columns.scaled(X)).to(self.device)
        if self.softmax:
            self.y = torch.from_numpy(target.y.astype(np.int64)).to(self.device)
        elif self.elsewhere is None:
            y = target.plain() - (target.offset if self.name in SHIFTED else 0.0)
            self.y = torch.from_numpy(y.astype(np.float32)).to(self.device)
        level = target.offset if self.name in LINKED else np.zeros(self.sizes[-1])
        self.level = torch.from_numpy(level.astype(np.float32)).to(self.device)
        self.learned = activation == "prelu"
        count = sum((n_in + 1) * n_out for n_in, n_out in pairwise(self.sizes)) + self.learned * sum(self.sizes[1:-1])
        self.w, self.m, self.v, self.g, decays = (torch.zeros(count, device=self.device) for _ in range(5))
        self.weights, self.biases, self.leaks = self._views(self.w)
        self.weight_slopes, self.bias_slopes, self.leak_slopes = self._views(self.g)
        for view in self._views(decays)[0]:
            view.fill_(1.0)
        self.decays, self.steps = decays, 0.0
        self.below: list[Any] = []

    def _views(self, plain: Any) -> tuple[list[Any], list[Any], list[Any]]:
        """The layers of a vector: weights, biases, and the slopes below zero of hidden units that learn them."""
        weights, biases, below, at = [], [], [], 0
        for n_in, n_out in pairwise(self.sizes):
            weights.append(plain[at : at + n_in * n_out].view(n_in, n_out))
            at += n_in * n_out
            biases.append(plain[at : at + n_out])
            at += n_out
            if self.learned and len(weights) < len(self.sizes) - 1:
                below.append(plain[at : at + n_out])
                at += n_out
        return weights, biases, below

    def load(self, state: State) -> None:
        """Go on from here."""
        for ours, theirs in ((self.w, state.weights), (self.m, state.first), (self.v, state.second)):
            ours.copy_(self.torch.from_numpy(np.array(theirs, dtype=np.float32)))
        self.steps = state.steps

    def state(self) -> State:
        """Where it is."""
        return State(self.w.cpu().numpy().copy(), self.m.cpu().numpy().copy(), self.v.cpu().numpy().copy(), self.steps)

    def epoch(self, order: Array, recipe: Recipe, rate: float) -> tuple[float, bool]:
        """Once over the rows; their mean loss as they were met, and whether it stayed finite."""
        torch = self.torch
        visits = torch.from_numpy(order.astype(np.int64)).to(self.device)
        draws = torch.Generator(device=self.device)
        draws.manual_seed((recipe.seed + int(self.steps)) % 2**63)
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        with torch.no_grad():
            for start in range(0, order.shape[0], recipe.batch_size):
                rows = visits[start : start + recipe.batch_size]
                total += self._slopes(rows, self._attacked(rows, recipe.adversarial), recipe, draws)
                self.steps += 1.0
                self._step(recipe, rate)
        mean = float(total) / order.shape[0]
        return mean, bool(np.isfinite(mean))

    def _attacked(self, rows: Any, size: float) -> Any:
        """The rows of a batch, each moved by `size` along the sign of the slope of its loss."""
        a = self.X.index_select(0, rows)
        if size > 0:
            _, _, slopes, delta = self._forward(rows, a)
            for layer in range(len(self.weights) - 1, 0, -1):
                delta = self.torch.mm(delta, self.weights[layer].t()) * slopes[layer - 1]
            a = a + size * self.torch.sign(self.torch.mm(delta, self.weights[0].t()))
        return a

    def _slopes(self, rows: Any, a: Any, recipe: Recipe | None = None, draws: Any = None) -> Any:
        """Forward and back for a batch, the inputs of its rows given: leaves the gradient of the mean loss; the summed loss."""
        torch = self.torch
        if recipe is not None and recipe.input_noise > 0:
            a = a + recipe.input_noise * torch.randn(a.shape, generator=draws, device=self.device)
        loss, inputs, slopes, delta = self._forward(rows, a, recipe.dropout if recipe is not None else 0.0, draws)
        for layer in range(len(self.weights) - 1, -1, -1):
            torch.mm(inputs[layer].t(), delta, out=self.weight_slopes[layer])
            torch.sum(delta, 0, out=self.bias_slopes[layer])
            if layer:
                back = torch.mm(delta, self.weights[layer].t())
                delta = back * slopes[layer - 1]
                if self.learned:
                    # Where a unit was below zero its output was leak·z, of which z is the slope at the leak.
                    torch.sum(back * self.below[layer - 1], 0, out=self.leak_slopes[layer - 1])
        return loss

    def _forward(
        self, rows: Any, a: Any, dropout: float = 0.0, draws: Any = None
    ) -> tuple[Any, list[Any], list[Any], Any]:
        """Summed loss of a batch, inputs of every layer, slopes of the hidden units, and that of the mean loss at the scores."""
        torch, last = self.torch, len(self.weights) - 1
        inputs, slopes, self.below = [a], [], []
        for layer in range(last):
            z = torch.addmm(self.biases[layer], a, self.weights[layer])
            a, slope = self._activated(z, layer)
            if self.learned:
                self.below.append(z.clamp(max=0.0))
            if dropout > 0:
                kept = (torch.rand(a.shape, generator=draws, device=self.device) >= dropout).to(a.dtype)
                kept /= 1.0 - dropout
                a, slope = a * kept, slope * kept
                if self.learned:
                    self.below[-1] *= kept
            inputs.append(a)
            slopes.append(slope)
        loss, delta = self._loss(torch.addmm(self.biases[last], a, self.weights[last]) + self.level, rows)
        return loss, inputs, slopes, delta / rows.shape[0]

    def _activated(self, z: Any, layer: int) -> tuple[Any, Any]:
        torch = self.torch
        if self.activation == "identity":
            return z, torch.ones_like(z)
        if self.activation == "tanh":
            a = torch.tanh(z)
            return a, 1.0 - a * a
        if self.activation == "sigmoid":
            a = torch.sigmoid(z)
            return a, a * (1.0 - a)
        slope = (z > 0).to(z.dtype)
        if self.activation != "relu":
            slope = slope + (self.leaks[layer] if self.learned else self.leak) * (1.0 - slope)
        return z * slope, slope

    def _loss(self, scores: Any, rows: Any) -> tuple[Any, Any]:
        """Summed loss of rows, and its slope at every score."""
        torch = self.torch
        if self.elsewhere is not None:
            plain = scores.cpu().numpy().astype(np.float64) + self.offset
            slopes = np.empty_like(plain)
            loss = self.elsewhere(rows.cpu().numpy(), plain, slopes)
            found = torch.from_numpy(slopes.astype(np.float32)).to(self.device)
            return torch.tensor(loss, dtype=torch.float64, device=self.device), found
        y = self.y.index_select(0, rows)
        if self.softmax:
            logs = torch.log_softmax(scores, 1)
            own = y.unsqueeze(1)
            delta = logs.exp()
            delta.scatter_add_(1, own, torch.full_like(own, -1, dtype=delta.dtype))
            return -logs.gather(1, own).sum(dtype=torch.float64), delta
        value, slope = (SHIFTED | LINKED)[self.name]
        given = (torch, y, scores, self.a, self.c)
        return value(*given).sum(dtype=torch.float64), slope(*given)

    def _step(self, recipe: Recipe, rate: float) -> None:
        """The formulas of `native/network/step.hpp`."""
        w, m, v, g = self.w, self.m, self.v, self.g
        if recipe.clip > 0:
            g *= (recipe.clip / g.norm().clamp(min=1e-30)).clamp(max=1.0)
        if recipe.optimizer == "adamw":
            w.addcmul_(w, self.decays, value=-rate * recipe.alpha)
        else:
            g.addcmul_(w, self.decays, value=recipe.alpha)
        if adaptive(recipe.optimizer):
            first, second = recipe.betas
            m.mul_(first).add_(g, alpha=1.0 - first)
            v.mul_(second).addcmul_(g, g, value=1.0 - second)
            root = v.sqrt().mul_(1.0 / np.sqrt(1.0 - second**self.steps)).add_(recipe.epsilon_at(self.steps))
            w.addcdiv_(m, root, value=-rate / (1.0 - first**self.steps))
            return
        m.mul_(recipe.momentum).add_(g, alpha=-rate)
        if recipe.optimizer == "nesterov":
            w.add_(m, alpha=recipe.momentum).add_(g, alpha=-rate)
        else:
            w.add_(m)

    def gradient(self, rows: Array) -> Array:
        """The gradient of the mean loss over some of the rows, all layers in one vector."""
        with self.torch.no_grad():
            chosen = self.torch.from_numpy(rows.astype(np.int64)).to(self.device)
            self._slopes(chosen, self.X.index_select(0, chosen))
        return np.asarray(self.g.cpu().numpy().copy())

    def scores(self, X: Matrix | None = None) -> Array:
        """Scores of rows, by default those it trains on, in units and in double precision."""
        torch, found = self.torch, []
        with torch.no_grad():
            for start in range(0, (self.X if X is None else X).shape[0], BLOCK):
                rows = slice(start, start + BLOCK)
                a = self.X[rows] if X is None else torch.from_numpy(self.columns.scaled(X[rows])).to(self.device)
                for layer, (weights, biases) in enumerate(zip(self.weights, self.biases, strict=True)):
                    a = torch.addmm(biases, a, weights)
                    if layer + 1 < len(self.weights):
                        a, _ = self._activated(a, layer)
                found.append(a.cpu().numpy().astype(np.float64))
        return np.concatenate(found) + self.offset
