"""The shapes that a seed draws, and data of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from linear_tasks import Data


@dataclass(frozen=True)
class Shape:
    """What is drawn, whatever the family."""

    n: int
    d: int
    density: float
    correlation: float
    scale: float
    strength: float
    """Of the penalty, beside the one at which it decides alone."""
    classes: int
    seed: int

    def __str__(self) -> str:
        kind = f" sparse {self.density:.3g}" if self.density < 1 else ""
        return (
            f"{self.n:,} × {self.d:,}{kind}, correlation {self.correlation:.2f}, scale {self.scale:.2g}, "
            f"strength {self.strength:.2g}, {self.classes} classes"
        )


def draw(seed: int, numbers: float, sparse: bool, most_columns: float, least: float = 0.0) -> Shape:
    """Rows from 10² to 10⁶ and columns from 1 to 10⁵, evenly on the scale of logarithms, `least` to `numbers` entries."""
    rng = np.random.default_rng([seed, 19])
    density = float(10 ** rng.uniform(-3, -1)) if sparse and rng.random() < 0.25 else 1.0
    while True:
        n, d = int(10 ** rng.uniform(2, 6)), int(10 ** rng.uniform(0, math.log10(most_columns)))
        if least <= n * d * density <= numbers:
            break
    return Shape(
        n,
        d,
        density,
        float(rng.choice([0.0, 0.5, 0.9, 0.99])),
        float(10 ** rng.uniform(-2, 2)),
        float(10 ** rng.uniform(-4, -0.3)),
        int(rng.integers(3, 12)),
        seed,
    )


MOST_PLACES = 10**8  # of a sparse X from which places are drawn without repetition: SciPy shuffles all of them


def sparse_rows(shape: Shape, rng: np.random.Generator) -> Any:
    n, d = shape.n, shape.d
    if n * d <= MOST_PLACES:
        X = sp.random(n, d, density=shape.density, format="csr", random_state=shape.seed, data_rvs=rng.standard_normal)
    else:
        ends = np.concatenate([[0], np.cumsum(rng.binomial(d, shape.density, n))])
        X = sp.csr_matrix((rng.standard_normal(ends[-1]), rng.integers(d, size=ends[-1]), ends), shape=(n, d))
        X.sum_duplicates()
    X.data *= shape.scale
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def rows(shape: Shape) -> tuple[Any, np.ndarray, np.random.Generator]:
    """X with columns that share a factor, and the scores of a plane through a few of them."""
    rng = np.random.default_rng(shape.seed)
    n, d = shape.n, shape.d
    if shape.density < 1:
        X = sparse_rows(shape, rng)
    else:
        X = rng.standard_normal((n, d))
        if shape.correlation:
            X *= math.sqrt(1.0 - shape.correlation)
            X += math.sqrt(shape.correlation) * rng.standard_normal((n, 1))
        X *= shape.scale
    w = np.zeros(d)
    some = rng.choice(d, max(1, min(d, 20, d // 3 + 1)), replace=False)
    w[some] = rng.standard_normal(some.size)
    f = np.asarray(X @ w).ravel()
    return X, f / (f.std() or 1.0), rng


def columns_of(X: Any) -> Any:
    """X one column after the other, for peers that want it so."""
    return X.tocsc() if sp.issparse(X) else np.asfortranarray(X)


def numbers_to_predict(shape: Shape, columns: bool = False) -> Data:
    X, f, rng = rows(shape)
    y = f + rng.standard_normal(shape.n)
    largest = float(np.abs(X.T @ (y - y.mean())).max() / shape.n)
    F = columns_of(X) if columns and not sp.issparse(X) else None
    return {"X": X, "y": y, "alpha": shape.strength * largest, "F": F}


def two_classes(shape: Shape, columns: bool = False) -> Data:
    X, f, rng = rows(shape)
    y = (rng.random(shape.n) < 1 / (1 + np.exp(-2 * f))).astype(int)
    y[:2] = 0, 1
    largest = float(np.abs(X.T @ (y - y.mean())).max() / shape.n)
    return {"X": X, "X_csc": columns_of(X) if columns else None, "y": y, "alpha": shape.strength * largest}


def several_classes(shape: Shape) -> Data:
    X, f, rng = rows(shape)
    y = np.digitize(f + 0.5 * rng.standard_normal(shape.n), np.quantile(f, np.linspace(0, 1, shape.classes + 1)[1:-1]))
    y[: shape.classes] = np.arange(shape.classes)
    return {"X": X, "y": y, "alpha": shape.strength / shape.n**0.5}


def first_rows(data: Data, n: int) -> Data:
    """A few rows, as they are stored: enough for just-in-time compilers."""
    few = {key: value[:n] if hasattr(value, "shape") else value for key, value in data.items()}
    return few | {key: columns_of(few[key]) for key in ("F", "X_csc") if few.get(key) is not None}
