"""Kernels on rows of numbers.

linear        x·z                          polynomial    (γ x·z + c)^p
RBF           exp(−γ‖x − z‖²)              Laplacian     exp(−γ‖x − z‖₁)
quadratic     xᵀ A z,  A ≥ 0               precomputed   a matrix of the user's
sigmoid       tanh(γ x·z + c), an inner product on some rows only
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import comb, factorial
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from certifit._types import Array, Matrix, is_sparse
from certifit.parameters import Any_, Choice, Either, Integer, Nothing, Parameter, Real
from certifit.representation.kernels.base import Kernel, n_rows

__all__ = [
    "RBF",
    "Custom",
    "Laplacian",
    "Linear",
    "Mahalanobis",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "scaled_gamma",
    "squared_distances",
]

SAMPLE = 1000  # rows whose distances give the median
GAMMA = Parameter(
    "scale",
    Either(Choice("scale", "median", "auto"), Real(0, open_low=True)),
    'Inverse width: a number, "scale" for 1/(d·variance of X), "median" for 1/(2·median squared distance), "auto" for 1/d.',
)


FACTOR = Parameter(
    "scale",
    Either(Choice("scale", "auto"), Real(0, open_low=True)),
    'Factor of x·z: a number, "scale" for 1/(d·variance of X), "auto" for 1/d.',
)


class MeasuredRows(NamedTuple):
    """Rows with their squared lengths, about a common center so that distances do not cancel."""

    X: Matrix
    square: Array

    def __getitem__(self, rows: Any) -> Any:  # type: ignore[override]
        return MeasuredRows(self.X[rows], self.square[rows])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return (int(self.X.shape[0]), int(self.X.shape[1]))


def squared_lengths(X: Matrix) -> Array:
    """‖x‖² of each row."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X)


def products(left: Matrix, right: Matrix) -> Array:
    """x·z of all pairs, dense."""
    if left is right and not is_sparse(left) and left.shape[1] < left.shape[0]:
        right = left.copy()  # NumPy halves the product of a matrix with itself, and pays more to write the other half
    found = left @ right.T
    return np.asarray(found.todense() if is_sparse(found) else found, dtype=np.float64)


def squared_distances(left: Any, right: Any) -> Array:
    """‖x − z‖² of all pairs of prepared rows, by one product."""
    out = products(left.X, right.X)
    out *= -2.0
    out += left.square[:, None]
    out += right.square
    np.maximum(out, 0.0, out=out)
    if (
        left is right
    ):  # not only up to rounding: pivots among equal k(x, x) are to be the same for dense and sparse rows
        np.fill_diagonal(out, 0.0)
    return out


class Linear(Kernel):
    """x·z.

    Examples
    --------
    >>> from certifit.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def block(self, left: Any, right: Any) -> Array:
        """One product."""
        return products(left, right)

    def own(self, prepared: Any) -> Array:
        """‖x‖²."""
        return squared_lengths(prepared)

    def feature_map(self) -> Callable[[Any], Array]:
        """The rows themselves."""
        return lambda X: np.asarray(X.todense() if is_sparse(X) else X, dtype=np.float64)

    def formula(self) -> str:
        """x·z."""
        return "x·z"


class Polynomial(Kernel):
    """(gamma·x·z + offset)^degree; degree 2 is the quadratic kernel.

    Examples
    --------
    >>> from certifit.kernels import Polynomial
    >>> Polynomial(degree=2, gamma=1.0)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    degree: int = Parameter(2, Integer(1), "The power.")
    gamma: Any = FACTOR
    offset: float = Parameter(
        1.0,
        Real(),
        "Added before the power: 0 keeps monomials of the full degree alone; below 0 it is an inner product on some rows only.",
    )

    @property
    def positive(self) -> bool:  # type: ignore[override]
        """Whether all coefficients of its power are positive."""
        return bool(self.offset >= 0)

    def bound(self, X: Any) -> Kernel:
        """Gamma as a number."""
        super().bound(X)
        return Polynomial(self.degree, _gamma(self.gamma, X), self.offset)

    def block(self, left: Any, right: Any) -> Array:
        """A product, and its power in place."""
        out = products(left, right)
        out *= self.gamma
        out += self.offset
        return _power(out, self.degree)

    def own(self, prepared: Any) -> Array:
        """(γ‖x‖² + c)^p."""
        return _power(self.gamma * squared_lengths(prepared) + self.offset, self.degree)

    def feature_map(self) -> Callable[[Any], Array]:
        """All monomials up to the degree, each with the root of its coefficient."""
        if isinstance(self.gamma, str):
            raise ValueError(
                f"gamma={self.gamma!r} depends on the data: give a number, or take kernel.bound(X).feature_map()."
            )
        if not self.positive:
            raise ValueError(f"offset={self.offset:g} makes some monomials negative: no feature map has them.")
        p, gamma, offset = self.degree, float(self.gamma), float(self.offset)

        def monomials(X: Any) -> Array:
            rows = np.asarray(X.todense() if is_sparse(X) else X, dtype=np.float64)
            columns = []
            for k in range(p + 1):
                level = comb(p, k) * gamma**k * offset ** (p - k)
                if level == 0.0:
                    continue
                for chosen in itertools.combinations_with_replacement(range(rows.shape[1]), k):
                    repeats = [len(list(group)) for _, group in itertools.groupby(chosen)]
                    ways = factorial(k)
                    for count in repeats:
                        ways //= factorial(count)
                    columns.append(np.sqrt(level * ways) * rows[:, list(chosen)].prod(axis=1))
            return np.column_stack(columns)

        return monomials

    def formula(self) -> str:
        """(γ x·z + c)^p."""
        gamma = "γ " if isinstance(self.gamma, str) else "" if self.gamma == 1.0 else f"{self.gamma:g} "
        offset = f" + {self.offset:g}" if self.offset else ""
        return f"({gamma}x·z{offset})^{self.degree}"


class Sigmoid(Kernel):
    """tanh(gamma·x·z + offset), the first layer of a neural network; no inner product on most rows, and then nothing is proven.

    Examples
    --------
    >>> from certifit.kernels import Sigmoid
    >>> Sigmoid(gamma=0.5)([[1.0, 0.0]], [[1.0, 2.0]]).round(4)
    array([[0.4621]])
    """

    positive = False

    gamma: Any = FACTOR
    offset: float = Parameter(0.0, Real(), "Added to the products.")

    def bound(self, X: Any) -> Kernel:
        """Gamma as a number."""
        super().bound(X)
        return Sigmoid(_gamma(self.gamma, X), self.offset)

    def block(self, left: Any, right: Any) -> Array:
        """A product, and its hyperbolic tangent in place."""
        out = products(left, right)
        out *= self.gamma
        out += self.offset
        return np.tanh(out, out=out)

    def own(self, prepared: Any) -> Array:
        """tanh(γ‖x‖² + c)."""
        return np.tanh(self.gamma * squared_lengths(prepared) + self.offset)

    def formula(self) -> str:
        """tanh(γ x·z + c)."""
        gamma = "γ" if isinstance(self.gamma, str) else f"{self.gamma:g}"
        return f"tanh({gamma} x·z{f' + {self.offset:g}' if self.offset else ''})"


class RBF(Kernel):
    """exp(−gamma·‖x − z‖²), the Gaussian kernel; ``sigma`` gives gamma = 1/(2·sigma²).

    Examples
    --------
    >>> from certifit.kernels import RBF
    >>> RBF(gamma=0.5)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    gamma: Any = GAMMA
    sigma: float | None = Parameter(None, Either(Nothing(), Real(0, open_low=True)), "Width, instead of `gamma`.")

    def bound(self, X: Any) -> Kernel:
        """Gamma as a number."""
        super().bound(X)
        return RBF(0.5 / float(self.sigma) / float(self.sigma) if self.sigma is not None else _gamma(self.gamma, X))

    def prepare(self, X: Any) -> Any:
        """Rows with their squared lengths."""
        rows = super().prepare(X)
        return MeasuredRows(rows, squared_lengths(rows))

    def block(self, left: Any, right: Any) -> Array:
        """A product for the distances, and one exponential."""
        out = squared_distances(left, right)
        out *= -self.gamma
        return np.exp(out, out=out)

    def own(self, prepared: Any) -> Array:
        """Ones."""
        return np.ones(prepared.X.shape[0])

    def formula(self) -> str:
        """exp(−γ‖x − z‖²)."""
        if self.sigma is not None:
            return f"exp(−‖x − z‖²/(2·{self.sigma:g}²))"
        return f"exp(−{'γ' if isinstance(self.gamma, str) else format(self.gamma, 'g')}‖x − z‖²)"


class Laplacian(Kernel):
    """exp(−gamma·‖x − z‖₁).

    Examples
    --------
    >>> from certifit.kernels import Laplacian
    >>> Laplacian(gamma=1.0)([[0.0], [1.0], [3.0]])[0].round(4)
    array([1.    , 0.3679, 0.0498])
    """

    gamma: Any = GAMMA

    def bound(self, X: Any) -> Kernel:
        """Gamma as a number."""
        super().bound(X)
        return Laplacian(_gamma(self.gamma, X))

    def prepare(self, X: Any) -> Any:
        """Dense rows: sums of absolute differences have no shortcut through zeros."""
        return np.asarray(X.todense() if is_sparse(X) else X, dtype=np.float64)

    def block(self, left: Any, right: Any) -> Array:
        """City-block distances, and one exponential."""
        out = cdist(left, right, "cityblock")
        out *= -self.gamma
        return np.exp(out, out=out)

    def own(self, prepared: Any) -> Array:
        """Ones."""
        return np.ones(prepared.shape[0])

    def formula(self) -> str:
        """exp(−γ‖x − z‖₁)."""
        return f"exp(−{'γ' if isinstance(self.gamma, str) else format(self.gamma, 'g')}‖x − z‖₁)"


class Mahalanobis(Kernel):
    """xᵀ A z for a symmetric positive semidefinite A: an inner product in other units.

    With A the inverse of a covariance matrix, distances are those of Mahalanobis.

    Examples
    --------
    >>> from certifit.kernels import Mahalanobis
    >>> Mahalanobis([[2.0, 0.0], [0.0, 1.0]])([[1.0, 1.0]], [[1.0, 3.0]])
    array([[5.]])
    """

    A: Any = Parameter(
        None, Any_("array of shape (d, d)", wrong=("a", [[1.0, 2.0]], [[-1.0]])), "The matrix; None is the identity."
    )

    def _root(self, d: int) -> Array:
        if self.A is None:
            return np.eye(d)
        try:
            A = np.asarray(self.A, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"A must be a matrix of numbers; got {self.A!r}.") from error
        if A.shape != (d, d) or not np.isfinite(A).all() or not np.allclose(A, A.T):
            raise ValueError(f"A must be a finite symmetric matrix of shape ({d}, {d}); got shape {A.shape}.")
        values, vectors = np.linalg.eigh(0.5 * (A + A.T))
        if values.min(initial=0.0) < -1e-10 * max(float(np.abs(values).max(initial=0.0)), 1e-300):
            raise ValueError(f"A must be positive semidefinite; its smallest eigenvalue is {values.min():.3g}.")
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    def prepare(self, X: Any) -> Any:
        """The rows times a root of A: the kernel is linear then."""
        rows = super().prepare(X)
        return np.asarray(rows @ self._root(rows.shape[1]))

    def block(self, left: Any, right: Any) -> Array:
        """One product."""
        return products(left, right)

    def own(self, prepared: Any) -> Array:
        """xᵀAx."""
        return squared_lengths(prepared)

    def feature_map(self) -> Callable[[Any], Array]:
        """The rows times a root of A."""
        return self.prepare

    def formula(self) -> str:
        """xᵀAz."""
        return "xᵀAz"


class Precomputed(Kernel):
    """X *is* the Gram matrix: rows to be judged against the rows of the fit.

    A fit takes the similarities of all pairs of its rows, a prediction those of new rows to the rows of the fit.

    Examples
    --------
    >>> from certifit.kernels import Precomputed
    >>> Precomputed()([[1.0, 0.5], [0.5, 1.0]]).shape
    (2, 2)
    """

    takes = "gram"
    positive = False

    def __call__(self, X: Any, Z: Any = None) -> Array:
        """The matrix as it is."""
        return np.asarray(X, dtype=np.float64)

    def diagonal(self, X: Any) -> Array:
        """Its diagonal."""
        return np.diagonal(np.asarray(X, dtype=np.float64)).copy()

    def formula(self) -> str:
        """K[i, j]."""
        return "K[i, j]"


class Custom(Kernel):
    """A Python function of two matrices, or of two single rows, as a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.kernels import Custom
    >>> Custom(lambda x, z: float(np.minimum(x, z).sum()), pairwise=True)([[1.0, 5.0]], [[2.0, 3.0]])
    array([[4.]])
    """

    takes = "anything"
    positive = False

    function: Any = Parameter(
        None, Any_("callable", wrong=("a", 3, None)), "k(X, Z) of two matrices, or k(x, z) of two things."
    )
    pairwise: bool = Parameter(
        False, Choice(True, False), "Whether the function takes single things, not whole matrices."
    )

    def bound(self, X: Any) -> Kernel:
        """Check that there is a function."""
        if not callable(self.function):
            raise TypeError(
                f"function must be a function of two matrices (or two rows, with pairwise=True); got {self.function!r}."
            )
        return super().bound(X)

    def prepare(self, X: Any) -> Any:
        """As given."""
        return list(X) if self.pairwise and not hasattr(X, "shape") else X if is_sparse(X) else np.asarray(X)

    def take(self, prepared: Any, rows: Any) -> Any:
        """Some of the things."""
        if isinstance(prepared, list):
            return prepared[rows] if isinstance(rows, slice) else [prepared[i] for i in rows]
        return prepared[rows]

    def block(self, left: Any, right: Any) -> Array:
        """The function's answer, checked."""
        n, m = n_rows(left), n_rows(right)
        if self.pairwise:
            return np.array([[float(self.function(x, z)) for z in right] for x in left]).reshape(n, m)
        found = self.function(left, right)
        found = np.array(found.toarray() if is_sparse(found) else found, dtype=np.float64)
        if found.shape != (n, m):
            raise ValueError(f"the kernel function returned shape {found.shape} for {n} and {m} rows.")
        return found

    def own(self, prepared: Any) -> Array:
        """k(x, x), one at a time."""
        return np.array(
            [
                self.block(self.take(prepared, slice(i, i + 1)), self.take(prepared, slice(i, i + 1)))[0, 0]
                for i in range(n_rows(prepared))
            ]
        )

    def formula(self) -> str:
        """The function's name."""
        return f"{getattr(self.function, '__name__', 'k')}(x, z)"


def _power(values: Array, degree: int) -> Array:
    """values^degree in place, by squaring: powers of negative numbers are exact, and faster than the general one."""
    result: Array | None = None
    square = values
    while degree:
        if degree & 1:
            result = square.copy() if result is None else np.multiply(result, square, out=result)
        degree >>= 1
        if degree:
            square = square * square
    assert result is not None
    return result


def scaled_gamma(X: Any, weight: Array) -> float:
    """1/(d·variance of all entries), each row counted as often as its weight says: what ``gamma="scale"`` means."""
    share = weight / weight.sum()
    d = X.shape[1]
    double: Any = X.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = (share @ double).sum() / d
        if is_sparse(double):
            variance = float((share @ double.multiply(double).tocsr()).sum() / d - mean * mean)
        else:
            variance = float((share @ (double - mean) ** 2).sum()) / d
    if not np.isfinite(variance):
        raise ValueError(
            "gamma='scale' needs the variance of X, which is more than a double can hold: divide X by its largest value."
        )
    return 1.0 / (d * variance) if variance > 0 and np.isfinite(1.0 / (d * variance)) else 1.0


def _gamma(gamma: Any, X: Any) -> float:
    if not isinstance(gamma, str):
        return float(gamma)
    rows: Any = X.astype(np.float64, copy=False) if is_sparse(X) else np.asarray(X, dtype=np.float64)
    n, d = rows.shape
    if gamma == "auto":
        return 1.0 / d
    if gamma == "scale":
        return scaled_gamma(rows, np.full(n, 1.0 / n))
    # Every so-many-th row: the median of distances needs no draw, and so no seed.
    part = rows[:: max(1, n // SAMPLE)]
    prepared = MeasuredRows(part, squared_lengths(part))
    distance = squared_distances(prepared, prepared)
    above = distance[np.triu_indices(distance.shape[0], 1)]
    median = float(np.median(above[above > 0])) if (above > 0).any() else 0.0
    return 0.5 / median if median > 0 else 1.0
