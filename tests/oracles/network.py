"""A multilayer perceptron in NumPy and double precision: forward, back, and the steps of the optimizers, as the formulas say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

ACTIVATIONS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "relu": (lambda z: np.maximum(z, 0.0), lambda z: (z > 0).astype(float)),
    "leaky_relu": (lambda z: np.where(z > 0, z, 0.01 * z), lambda z: np.where(z > 0, 1.0, 0.01)),
    "identity": (lambda z: z, np.ones_like),
    "tanh": (np.tanh, lambda z: 1.0 - np.tanh(z) ** 2),
    "sigmoid": (lambda z: 1.0 / (1.0 + np.exp(-z)), lambda z: np.exp(-z) / (1.0 + np.exp(-z)) ** 2),
}


def weights(sizes: Sequence[int], seed: int = 0) -> Array:
    """Layers as one vector: weights (in, out) row by row, then biases."""
    rng = np.random.default_rng(seed)
    layers = [(rng.normal(size=n * m) / np.sqrt(n), 0.1 * rng.normal(size=m)) for n, m in pairwise(sizes)]
    return np.concatenate([part for layer in layers for part in layer]).astype(np.float32)


def layers_of(sizes: Sequence[int], plain: Array) -> list[tuple[Array, Array]]:
    found, at = [], 0
    for n, m in pairwise(sizes):
        found.append((plain[at : at + n * m].reshape(n, m), plain[at + n * m : at + n * m + m]))
        at += n * m + m
    return found


def forward(sizes: Sequence[int], plain: Array, X: Array, activation: str) -> tuple[list[Array], list[Array]]:
    """Inputs of the units of each layer, and their outputs, beginning with X."""
    inputs, outputs = [], [np.asarray(X, dtype=float)]
    layers = layers_of(sizes, np.asarray(plain, dtype=float))
    for number, (W, b) in enumerate(layers):
        z = outputs[-1] @ W + b
        inputs.append(z)
        outputs.append(z if number + 1 == len(layers) else ACTIVATIONS[activation][0](z))
    return inputs, outputs


def gradient(sizes: Sequence[int], plain: Array, X: Array, activation: str, slopes: Array) -> tuple[Array, Array]:
    """Of Σ over rows, given its slopes at the scores: at the weights, and at X."""
    inputs, outputs = forward(sizes, plain, X, activation)
    layers, delta, parts = layers_of(sizes, np.asarray(plain, dtype=float)), slopes, []
    for number in reversed(range(len(layers))):
        parts.append(np.concatenate([(outputs[number].T @ delta).ravel(), delta.sum(axis=0)]))
        delta = delta @ layers[number][0].T
        if number:
            delta = delta * ACTIVATIONS[activation][1](inputs[number - 1])
    return np.concatenate(parts[::-1]), delta
