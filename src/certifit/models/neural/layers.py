"""The layers of a network as arrays: where they begin, how they are flattened, and the native network that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import certifit._native.network as native
from certifit._types import Array, Matrix, is_sparse
from certifit.representation.basis.summaries import mean_and_deviation

__all__ = [
    "ACTIVATIONS",
    "FAR",
    "INITS",
    "Columns",
    "check_near",
    "ends",
    "flat",
    "initial",
    "inputs_of",
    "leaks",
    "n_weights",
    "parts",
    "penalty_of",
    "rounded",
]

ACTIVATIONS = ("relu", "leaky_relu", "prelu", "tanh", "sigmoid", "identity")
INITS = ("glorot", "he", "normal")
FAR = 1e12  # what the network sees is held within


class Columns:
    """How columns are brought to one scale: z = (x − mean) / scale.

    Both are rounded to what a network can tell apart, so that the order of rows, their layout in memory and whether zeros
    are stored change nothing.
    """

    def __init__(self, mean: Array, scale: Array) -> None:
        self.mean, self.scale = mean, scale

    @classmethod
    def of(cls, X: Matrix, weight: Array, standardize: bool) -> Columns:
        """Those of weighted rows; constant columns become zero."""
        if not standardize:
            check_near(X)
            return cls(np.zeros(X.shape[1]), np.ones(X.shape[1]))
        mean, deviation = mean_and_deviation(X, weight)
        # One whose inverse is no number is as good as none.
        deviation = np.where(deviation >= np.finfo(np.float64).tiny, deviation, 1.0)
        scale = rounded(deviation, 12)
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.rint(mean / scale * 2.0**12)
        near = np.abs(steps) < 2.0**40  # a mean far beyond the spread keeps all its digits
        return cls(np.where(near, steps * (scale * 2.0**-12), mean), scale)

    def seen(self, X: Matrix) -> Any:
        """Rows as the native network reads them, for one pass."""
        return native.inputs(inputs_of(X), self.mean, 1.0 / self.scale)

    def kept(self, X: Matrix, threads: int) -> Any:
        """The same for many passes: scaled once, and without their zeros where most entries are zero."""
        return native.kept(inputs_of(X), self.mean, 1.0 / self.scale, threads)

    def scaled(self, X: Matrix, dtype: Any = np.float32) -> Array:
        """Rows as the network sees them, dense and in single precision unless told otherwise."""
        found = np.empty(X.shape, dtype=dtype)
        for start in range(0, X.shape[0], 4096):
            rows = slice(start, start + 4096)
            block = X[rows].toarray() if is_sparse(X) else X[rows]
            with np.errstate(over="ignore"):
                found[rows] = np.clip((block - self.mean) * (1.0 / self.scale), -FAR, FAR)
        return found


def check_near(X: Matrix) -> None:
    """Refuse entries that no network could take as they are."""
    values = X.data if is_sparse(X) else X
    greatest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if greatest > FAR:
        raise ValueError(
            f"X has entries as large as {greatest:.3g}, and a network takes none beyond ±{FAR:g} as they are: "
            "standardize=True brings columns to one scale."
        )


def rounded(values: Array, bits: int) -> Array:
    """To so many leading bits."""
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(mantissa * 2.0**bits) * 2.0**-bits, exponent))


def inputs_of(X: Matrix) -> Any:
    """X as native kernels read it: rows one after the other."""
    if is_sparse(X):
        X = X.tocsr()
        return native.csr(X.data, X.indices, X.indptr.astype(X.indices.dtype, copy=False), X.shape[1])
    return native.dense(np.require(X, requirements=["C", "A"]))


def parts(sizes: Sequence[int], plain: Array) -> tuple[list[Array], list[Array]]:
    """Weights, (in, out) each, and biases of the layers, as views of the flat vector."""
    coefs, intercepts = [], []
    for (n_in, n_out), start in zip(pairwise(sizes), ends(sizes, plain), strict=False):
        middle = start + n_in * n_out
        coefs.append(plain[start:middle].reshape(n_in, n_out))
        intercepts.append(plain[middle : middle + n_out])
    return coefs, intercepts


def leaks(sizes: Sequence[int], plain: Array) -> list[Array]:
    """Slopes below zero of the units of each hidden layer that learn them, as views of the flat vector; none if they do not."""
    if plain.shape[0] == n_weights(sizes):
        return []
    return [plain[end - n_out : end] for n_out, end in zip(sizes[1:-1], ends(sizes, plain)[1:-1], strict=True)]


def ends(sizes: Sequence[int], plain: Array) -> list[int]:
    """Where the layers begin and end in the flat vector: weights, then biases, then slopes below zero that are learned."""
    learned = plain.shape[0] > n_weights(sizes)
    found = [0]
    for layer, (n_in, n_out) in enumerate(pairwise(sizes)):
        found.append(found[-1] + (n_in + 1 + (learned and layer + 2 < len(sizes))) * n_out)
    return found


def n_weights(sizes: Sequence[int]) -> int:
    """Weights and biases."""
    return sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))


def flat(
    coefs: Sequence[Array], intercepts: Sequence[Array], below: Sequence[Array] = (), dtype: Any = np.float32
) -> Array:
    """The layers as one vector, with the slopes below zero of the hidden ones if these are learned."""
    pieces = [list(pair) for pair in zip(coefs, intercepts, strict=True)]
    for layer, slopes in zip(pieces, below, strict=False):
        layer.append(slopes)
    return np.concatenate([piece.ravel() for layer in pieces for piece in layer]).astype(dtype)


def initial(
    sizes: Sequence[int],
    rule: str,
    bias: float,
    rng: np.random.Generator,
    leak: float | None = None,
    dtype: Any = np.float32,
) -> Array:
    """Weights before the first step, with D inputs of the layer: N(0, 1/D), N(0, 2/D) (He), or U(±√(6/(D + units))) (Glorot).

    Units that learn their slopes below zero begin with `leak`.
    """
    coefs, intercepts = [], []
    for n_in, n_out in pairwise(sizes):
        if rule == "glorot":
            edge = np.sqrt(6.0 / (n_in + n_out))
            coefs.append(rng.uniform(-edge, edge, size=(n_in, n_out)))
        else:
            coefs.append(rng.normal(scale=np.sqrt((2.0 if rule == "he" else 1.0) / n_in), size=(n_in, n_out)))
        intercepts.append(np.full(n_out, bias))
    intercepts[-1] = np.zeros(sizes[-1])
    return flat(coefs, intercepts, () if leak is None else [np.full(n_out, leak) for n_out in sizes[1:-1]], dtype)


def penalty_of(sizes: Sequence[int], plain: Array) -> float:
    """½ Σ ‖W_l‖²; biases are free."""
    coefs, _ = parts(sizes, plain)
    return 0.5 * float(sum(np.einsum("ij,ij->", coef, coef, dtype=np.float64) for coef in coefs))
