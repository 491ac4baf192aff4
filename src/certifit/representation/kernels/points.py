"""The rows that a kernel model is a sum over: rows of numbers, things of any kind, or columns of a Gram matrix.

    f(x) = Σ_j β_j k(x, x_j) + b

Equal rows of numbers become one with the sum of their weights, so that a weight of 2 is the row given twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certifit._types import Array, is_sparse
from certifit.data.equal_rows import equal_rows
from certifit.data.gate import check_x, check_xy
from certifit.data.targets import check_labels
from certifit.names import record
from certifit.representation.kernels import RBF, Kernel, Precomputed
from certifit.representation.kernels.mercer import by_construction
from certifit.representation.kernels.span import check_mercer, row_parts

__all__ = ["Points", "Sample", "new_rows", "raw_rows", "sample_of"]


@record("KernelPoints")
class Points:
    """Rows of a fit with the kernel they are compared by, all of its parameters numbers."""

    kernel: Kernel
    rows: Any
    """A matrix, a list of things, or with a precomputed kernel the numbers of columns."""
    center: Array | None = None
    """Taken off rows of numbers before distances are computed, which do not change by it but in their rounding."""

    @staticmethod
    def of(kernel: Kernel, rows: Any) -> Points:
        """Bind the kernel to the rows."""
        bound = kernel.bound(rows)
        if not isinstance(bound, RBF) or is_sparse(rows):
            return Points(bound, rows)
        rows = np.asarray(rows, dtype=np.float64)
        center = rows.mean(axis=0)
        return Points(bound, rows - center, center)

    @property
    def precomputed(self) -> bool:
        """Whether rows are columns of a matrix that users give."""
        return isinstance(self.kernel, Precomputed)

    def __len__(self) -> int:
        return int(self.rows.shape[0]) if hasattr(self.rows, "shape") else len(self.rows)

    def take(self, chosen: Array) -> Points:
        """Some of the rows."""
        listed = isinstance(self.rows, list)
        return replace(self, rows=[self.rows[i] for i in chosen] if listed else self.rows[chosen])

    def gram(self) -> Array:
        """k of all pairs."""
        with np.errstate(over="ignore", invalid="ignore"):
            prepared = self.kernel.prepare(self.rows)
            return checked(self.kernel, self.kernel.block(prepared, prepared))

    def similarities(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """k(x, x_j) of new rows with all of these, block by block; X as `new_rows` returns it."""
        if self.precomputed:
            yield slice(0, X.shape[0]), np.asarray(X[:, self.rows], dtype=np.float64)
            return
        right = self.kernel.prepare(self.rows)
        n = int(X.shape[0]) if hasattr(X, "shape") else len(X)
        for part in row_parts(n, len(self)):
            yield part, self.kernel.block(self.kernel.prepare(self._seen(X[part])), right)

    def expansion(self, X: Any, beta: Array) -> Array:
        """Σ_j β_j k(x, x_j) of new rows."""
        return np.concatenate([block @ beta for _, block in self.similarities(X)])

    def own(self, X: Any) -> Array:
        """k(x, x) of new rows."""
        return self.kernel.own(self.kernel.prepare(self._seen(X)))

    def _seen(self, X: Any) -> Any:
        """Rows about the center."""
        if self.center is None:
            return X
        return (X.toarray() if is_sparse(X) else X) - self.center


def checked(kernel: Kernel, gram: Array) -> Array:
    """A Gram matrix that a fit can stand on: finite, and positive semidefinite where the kernel does not see to that itself."""
    with np.errstate(over="ignore", invalid="ignore"):
        finite = bool(np.isfinite(gram.sum()))  # one pass proves it; only a suspicious sum is looked at closely
    if not (finite or np.isfinite(gram).all()):
        raise ValueError(f"The kernel {kernel} is not finite on these rows: scale X, or choose another kernel.")
    if not by_construction(kernel):
        check_mercer(gram)
    return gram


@dataclass(frozen=True)
class Sample:
    """What a fit is given: distinct rows, their targets and weights."""

    points: Points
    y: Array
    weight: Array
    which: Array
    """The kind of each row given (of positive weight), a number of `points`."""
    given: Array | None = None
    """The Gram matrix, if it is precomputed."""
    classes: Array | None = None
    dtype: Any = np.float64

    def gram(self) -> Array:
        """k of all pairs of rows."""
        return self.points.gram() if self.given is None else self.given

    @property
    def p(self) -> Array:
        """Weights that sum to one."""
        return np.asarray(self.weight / self.weight.sum())

    def with_targets(self, y: Array) -> Sample:
        """The same rows with other targets."""
        return replace(self, y=y)


def sample_of(
    estimator: Any, kernel: Kernel, X: Any, y: Any, sample_weight: Any, *, labels: bool = False, **options: Any
) -> Sample:
    """Validated rows, targets and weights; with `labels` class numbers, else numbers. Equal rows become one."""
    classes = None
    if _is_matrix(kernel, X):
        if labels:
            rows, y, weight, classes = check_labels(estimator, X, y, sample_weight, **options)
        else:
            rows, y, weight = check_xy(estimator, X, y, sample_weight=sample_weight, **options)
        rows = rows.tocsr() if is_sparse(rows) else rows
        first, which = equal_rows(rows, y)
        points = Points.of(kernel, rows[first])
        weight = np.bincount(which, weights=weight)
        return Sample(points, y[first], weight, which, classes=classes, dtype=rows.dtype)
    # Things and Gram matrices: y and weights pass the gate beside the numbers of the rows.
    things = _things(estimator, kernel, X)
    width = getattr(estimator, "n_features_in_", None)
    numbers = np.arange(len(things), dtype=np.float64)[:, None]
    if labels:
        numbers, y, weight, classes = check_labels(estimator, numbers, y, sample_weight, **options)
    else:
        numbers, y, weight = check_xy(estimator, numbers, y, sample_weight=sample_weight, **options)
    del estimator.n_features_in_
    kept = numbers[:, 0].astype(np.intp)
    which = np.arange(kept.shape[0])
    if isinstance(kernel, Precomputed):
        estimator.n_features_in_ = width
        gram = checked(kernel, things[np.ix_(kept, kept)])
        return Sample(Points(kernel, kept), y, weight, which, gram, classes, things.dtype)
    rows = [things[i] for i in kept]
    return Sample(Points(kernel.bound(rows), rows), y, weight, which, classes=classes)


def raw_rows(sample: Sample) -> Any:
    """The rows of a sample as new rows are given: with their center, or as similarities."""
    points = sample.points
    if sample.given is not None:
        width = int(points.rows.max(initial=0)) + 1
        full = np.zeros((len(points), width))
        full[:, points.rows] = sample.given
        return full
    return points.rows if points.center is None else points.rows + points.center


def new_rows(estimator: Any, kernel: Kernel, X: Any) -> Any:
    """Rows to predict, as `Points` takes them."""
    if _is_matrix(kernel, X):
        rows = check_x(estimator, X, reset=False)
        return rows.tocsr() if is_sparse(rows) else rows
    if isinstance(kernel, Precomputed):
        return check_x(estimator, X, reset=False, accept_sparse=False)
    return _things(estimator, kernel, X)


def _is_matrix(kernel: Kernel, X: Any) -> bool:
    """Whether X holds rows of numbers: always for kernels on numbers, and for others where it has two dimensions."""
    if kernel.takes == "numbers":
        return True
    return not isinstance(kernel, Precomputed) and len(getattr(X, "shape", ())) == 2


def _things(estimator: Any, kernel: Kernel, X: Any) -> Any:
    if isinstance(kernel, Precomputed):
        gram = check_x(estimator, X, reset=True, accept_sparse=False)
        if gram.shape[0] != gram.shape[1]:
            raise ValueError(
                f"kernel='precomputed' needs a square matrix of similarities to fit; X has shape {gram.shape}. "
                "Give kernel(X_train, X_train) to fit, and kernel(X, X_train) to predict."
            )
        return gram
    if isinstance(X, (str, bytes, dict, set)) or not hasattr(X, "__len__"):
        raise TypeError(f"X must be a sequence of things that {kernel} compares; got {type(X).__name__}.")
    if not len(X):
        raise ValueError("X has 0 samples: give at least one.")
    return list(X)
