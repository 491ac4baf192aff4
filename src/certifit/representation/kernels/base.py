"""What a kernel is: a similarity k(x, z) = φ(x)·φ(z) that computes its matrix in blocks, and the calculus that makes new ones.

    2·k,  k₁ + k₂,  k₁·k₂,  k^p,  e^k,  Σ_i a_i k^i (a ≥ 0),  f(x) k(x, z) f(z),  k(φ(x), φ(z)),  k on some columns,  k normalized

Each of these is a kernel when its parts are (SCOPE 4.6); each prints as its formula, is cloned, saved and searched like an
estimator (``kernel__gamma``), and works block by block on matrices that BLAS made, never entry by entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from certifit._types import Array, is_sparse
from certifit.data.sparse import check_sparse
from certifit.parameters import Declared, check_parameters

__all__ = ["Kernel", "n_rows"]


class Kernel(Declared, BaseEstimator):
    """A positive semidefinite similarity of two rows.

    A kernel of one's own gives `block`; one on other things than rows of numbers also says so by `takes` and gives `prepare`.
    """

    takes = "numbers"
    """What X holds: "numbers" (a matrix), "objects" (a sequence of strings, sets, …), "anything" (what a function takes)."""
    positive = True
    """Whether it is positive semidefinite on all rows; where not, that is tested on the rows of a fit."""

    def __call__(self, X: Any, Z: Any = None) -> Array:
        """The Gram matrix k(x_i, z_j), shape (n, m); Z is X by default.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or a sequence of what the kernel takes
        Z : the same of shape (m, d), optional

        Returns
        -------
        array of shape (n, m)
        """
        X = self._checked(X)
        kernel = self.bound(X)
        left = kernel.prepare(X)
        if Z is None:
            gram = kernel.block(left, left)
            return 0.5 * (gram + gram.T)  # rounding of products is not symmetric
        Z = self._checked(Z, "Z")
        if self.takes == "numbers" and X.shape[1] != Z.shape[1]:
            raise ValueError(f"Z must have as many columns as X; got {Z.shape[1]} and {X.shape[1]}.")
        return kernel.block(left, kernel.prepare(Z))

    def _checked(self, X: Any, name: str = "X") -> Any:
        """What the user gives, as rows where the kernel compares rows of numbers."""
        check_sparse(X, name)
        if self.takes != "numbers" or is_sparse(X):
            return X
        try:
            rows = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be a matrix of numbers for the kernel {self}. [{error}]") from error
        if rows.ndim != 2:
            raise ValueError(f"{name} must be a matrix, one row for each point; got shape {rows.shape}.")
        if not np.isfinite(rows).all():
            raise ValueError(f"{name} contains NaN or infinity.")
        return rows

    def diagonal(self, X: Any) -> Array:
        """k(x_i, x_i), shape (n,)."""
        X = self._checked(X)
        kernel = self.bound(X)
        return kernel.own(kernel.prepare(X))

    def bound(self, X: Any) -> Kernel:
        """The kernel with every parameter that depends on the data set to a number, such as ``gamma="scale"``."""
        check_parameters(self)
        return self

    def prepare(self, X: Any) -> Any:
        """X as `block` takes it; what can be computed once for all blocks is."""
        # Products of single precision end at 1e38, and lose half of the digits of distances.
        return X.astype(np.float64, copy=False) if is_sparse(X) else np.asarray(X, dtype=np.float64)

    def take(self, prepared: Any, rows: Any) -> Any:
        """Some rows of what `prepare` returned."""
        return prepared[rows]

    def block(self, left: Any, right: Any) -> Array:
        """k of all pairs of prepared rows, shape (n, m); a fresh array."""
        raise TypeError(f"{type(self).__name__} must compute its block.")

    def own(self, prepared: Any) -> Array:
        """k(x, x) of prepared rows."""
        raise TypeError(f"{type(self).__name__} must compute its diagonal.")

    def feature_map(self) -> Callable[[Any], Array]:
        """φ with k(x, z) = φ(x)·φ(z), where it has finitely many columns.

        Returns
        -------
        callable
            From X of shape (n, d) to φ(X) of shape (n, D).
        """
        raise ValueError(f"{self} has no feature map with finitely many columns.")

    def formula(self) -> str:
        """The kernel as mathematics."""
        raise TypeError(f"{type(self).__name__} must print its formula.")

    def __str__(self) -> str:
        return self.formula()

    # the calculus; the classes are in `calculus`, which imports this module

    def __add__(self, other: Any) -> Kernel:
        from certifit.representation.kernels.calculus import Constant, Sum

        return Sum(self, other if isinstance(other, Kernel) else Constant(_number(other)))

    __radd__ = __add__

    def __mul__(self, other: Any) -> Kernel:
        from certifit.representation.kernels.calculus import Product, Scaled

        return Product(self, other) if isinstance(other, Kernel) else Scaled(self, _number(other))

    __rmul__ = __mul__

    def __pow__(self, power: int) -> Kernel:
        from certifit.representation.kernels.calculus import Power

        return Power(self, power)

    def exp(self) -> Kernel:
        """e^k, a kernel since it is a power series with positive coefficients."""
        from certifit.representation.kernels.calculus import Exponential

        return Exponential(self)

    def polynomial(self, coefficients: Sequence[float]) -> Kernel:
        """Σ_i coefficients[i]·k^i with coefficients ≥ 0."""
        from certifit.representation.kernels.calculus import PolynomialOf

        return PolynomialOf(self, tuple(float(c) for c in coefficients))

    def map(self, function: Callable[[Any], Any]) -> Kernel:
        """k(φ(x), φ(z)) for a function φ of a matrix that works row by row."""
        from certifit.representation.kernels.calculus import Mapped

        return Mapped(self, function)

    def scaled_by(self, function: Callable[[Any], Array]) -> Kernel:
        """f(x)·k(x, z)·f(z) for a function f from a matrix to one number a row."""
        from certifit.representation.kernels.calculus import ScaledBy

        return ScaledBy(self, function)

    def on(self, columns: Any) -> Kernel:
        """k of some columns, by number or slice."""
        from certifit.representation.kernels.calculus import OnColumns

        return OnColumns(self, columns)

    def normalized(self) -> Kernel:
        """k(x, z)/√(k(x, x)·k(z, z)): every row has length one in feature space."""
        from certifit.representation.kernels.calculus import Normalized

        return Normalized(self)


def n_rows(X: Any) -> int:
    """How many rows or things X holds."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _number(value: Any) -> float:
    if isinstance(value, (bool, str)) or not np.isscalar(value):
        raise TypeError(f"A kernel is scaled by or added to a number or a kernel; got {value!r}.")
    return float(value)  # type: ignore[arg-type]
