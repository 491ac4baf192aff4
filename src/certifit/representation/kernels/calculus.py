"""New kernels from old ones: each rule of the calculus is a class that holds its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from certifit._types import Array, is_sparse
from certifit.names import stored
from certifit.parameters import Any_, Integer, Named, Parameter, Real
from certifit.representation.kernels.base import Kernel, n_rows

__all__ = [
    "Constant",
    "Exponential",
    "Mapped",
    "Normalized",
    "OnColumns",
    "PolynomialOf",
    "Power",
    "Product",
    "Scaled",
    "ScaledBy",
    "Sum",
]

PART = Parameter(None, Named("kernel", Kernel), "The kernel.")
FUNCTION = Parameter(None, Any_("callable", wrong=("a", 3)), "The function.")


@stored("ConstantKernel")
class Constant(Kernel):
    """c for every pair: a common feature √c."""

    value: float = Parameter(1.0, Real(0), "The constant.")

    def prepare(self, X: Any) -> Any:
        """Row numbers are enough."""
        return np.zeros(n_rows(X))

    def block(self, left: Any, right: Any) -> Array:
        """The constant."""
        return np.full((left.shape[0], right.shape[0]), float(self.value))

    def own(self, prepared: Any) -> Array:
        """The constant."""
        return np.full(prepared.shape[0], float(self.value))

    def feature_map(self) -> Callable[[Any], Array]:
        """One column of √c."""
        return lambda X: np.full((X.shape[0], 1), np.sqrt(float(self.value)))

    def formula(self) -> str:
        """c."""
        return f"{self.value:g}"


class _Pair(Kernel):
    """Two parts on the same rows."""

    k1: Kernel = PART
    k2: Kernel = PART

    @property
    def takes(self) -> str:  # type: ignore[override]
        """What the parts take; they must agree."""
        kinds = {k.takes for k in (self.k1, self.k2) if not isinstance(k, Constant)}
        named = kinds - {"anything"}
        if len(named) > 1:
            raise ValueError(f"{self} joins kernels on different things: {', '.join(sorted(named))}.")
        return named.pop() if named else kinds.pop() if kinds else "numbers"

    def bound(self, X: Any) -> Kernel:
        """Both parts bound."""
        super().bound(X)
        return type(self)(self.k1.bound(X), self.k2.bound(X))

    def prepare(self, X: Any) -> Any:
        """Rows prepared for each part."""
        return self.k1.prepare(X), self.k2.prepare(X)

    def take(self, prepared: Any, rows: Any) -> Any:
        """Some rows of each."""
        return self.k1.take(prepared[0], rows), self.k2.take(prepared[1], rows)


@stored("SumKernel")
class Sum(_Pair):
    """k₁ + k₂: the features of both, side by side."""

    def block(self, left: Any, right: Any) -> Array:
        """Sum of the blocks."""
        out = self.k1.block(left[0], right[0])
        out += self.k2.block(left[1], right[1])
        return out

    def own(self, prepared: Any) -> Array:
        """Sum of the diagonals."""
        return self.k1.own(prepared[0]) + self.k2.own(prepared[1])

    def feature_map(self) -> Callable[[Any], Array]:
        """Both maps, side by side."""
        one, two = self.k1.feature_map(), self.k2.feature_map()
        return lambda X: np.hstack([one(X), two(X)])

    def formula(self) -> str:
        """k₁ + k₂."""
        return f"{self.k1.formula()} + {self.k2.formula()}"


@stored("ProductKernel")
class Product(_Pair):
    """k₁·k₂: products of a feature of the one with a feature of the other."""

    def block(self, left: Any, right: Any) -> Array:
        """Product of the blocks, entry by entry."""
        out = self.k1.block(left[0], right[0])
        out *= self.k2.block(left[1], right[1])
        return out

    def own(self, prepared: Any) -> Array:
        """Product of the diagonals."""
        return self.k1.own(prepared[0]) * self.k2.own(prepared[1])

    def feature_map(self) -> Callable[[Any], Array]:
        """All products of a column of each."""
        one, two = self.k1.feature_map(), self.k2.feature_map()

        def pairs(X: Any) -> Array:
            a, b = one(X), two(X)
            return np.asarray((a[:, :, None] * b[:, None, :]).reshape(a.shape[0], -1))

        return pairs

    def formula(self) -> str:
        """k₁·k₂."""
        return f"{_bracketed(self.k1)}·{_bracketed(self.k2)}"


class _Of(Kernel):
    """One part on the same rows."""

    k: Kernel = PART

    @property
    def takes(self) -> str:  # type: ignore[override]
        """What the part takes."""
        return self.k.takes

    def bound(self, X: Any) -> Kernel:
        """The part bound."""
        super().bound(X)
        return type(self)(**{**self.get_params(deep=False), "k": self.k.bound(X)})

    def prepare(self, X: Any) -> Any:
        """As the part does."""
        return self.k.prepare(X)

    def take(self, prepared: Any, rows: Any) -> Any:
        """As the part does."""
        return self.k.take(prepared, rows)


@stored("ScaledKernel")
class Scaled(_Of):
    """c·k with c ≥ 0."""

    factor: float = Parameter(1.0, Real(0), "The factor c.")

    def block(self, left: Any, right: Any) -> Array:
        """c times the block."""
        out = self.k.block(left, right)
        out *= float(self.factor)
        return out

    def own(self, prepared: Any) -> Array:
        """c times the diagonal."""
        return float(self.factor) * self.k.own(prepared)

    def feature_map(self) -> Callable[[Any], Array]:
        """√c times the map."""
        phi, root = self.k.feature_map(), float(np.sqrt(self.factor))
        return lambda X: root * phi(X)

    def formula(self) -> str:
        """c·k."""
        return f"{self.factor:g}·{_bracketed(self.k)}"


@stored("PowerKernel")
class Power(_Of):
    """k^p for a whole p ≥ 1."""

    power: int = Parameter(1, Integer(1), "The power p.")

    def block(self, left: Any, right: Any) -> Array:
        """The block's power."""
        out = self.k.block(left, right)
        return np.power(out, self.power, out=out)

    def own(self, prepared: Any) -> Array:
        """The diagonal's power."""
        return self.k.own(prepared) ** self.power

    def feature_map(self) -> Callable[[Any], Array]:
        """All products of p columns."""
        phi, p = self.k.feature_map(), self.power

        def powers(X: Any) -> Array:
            one = phi(X)
            out = one
            for _ in range(p - 1):
                out = (out[:, :, None] * one[:, None, :]).reshape(one.shape[0], -1)
            return np.asarray(out)

        return powers

    def formula(self) -> str:
        """k^p."""
        return f"{_bracketed(self.k)}^{self.power}"


@stored("ExponentialKernel")
class Exponential(_Of):
    """e^k."""

    def block(self, left: Any, right: Any) -> Array:
        """e to the block."""
        out = self.k.block(left, right)
        return np.exp(out, out=out)

    def own(self, prepared: Any) -> Array:
        """e to the diagonal."""
        return np.exp(self.k.own(prepared))

    def formula(self) -> str:
        """exp(k)."""
        return f"exp({self.k.formula()})"


@stored("PolynomialOfKernel")
class PolynomialOf(_Of):
    """Σ_i a_i k^i with a_i ≥ 0."""

    coefficients: Any = Parameter((0.0, 1.0), Any_("sequence of float ≥ 0", wrong=("a", (-1.0,), ())), "a_0, a_1, ….")

    def _check(self) -> None:
        a = np.asarray(self.coefficients, dtype=np.float64)
        if a.ndim != 1 or not a.size or not (np.isfinite(a).all() and (a >= 0).all()):
            raise ValueError(
                f"coefficients must be finite numbers >= 0, else the result need not be a kernel; got {self.coefficients!r}."
            )

    def bound(self, X: Any) -> Kernel:
        """Check the coefficients."""
        self._check()
        return super().bound(X)

    def _value(self, base: Array) -> Array:
        out = np.full_like(base, float(self.coefficients[-1]))  # Horner
        for a in reversed(self.coefficients[:-1]):
            out *= base
            out += float(a)
        return out

    def block(self, left: Any, right: Any) -> Array:
        """The polynomial of the block."""
        return self._value(self.k.block(left, right))

    def own(self, prepared: Any) -> Array:
        """The polynomial of the diagonal."""
        return self._value(self.k.own(prepared))

    def feature_map(self) -> Callable[[Any], Array]:
        """The maps of the powers, side by side."""
        self._check()
        terms = [(Power(self.k, i) if i else Constant(1.0), float(a)) for i, a in enumerate(self.coefficients) if a]
        maps = [Scaled(term, a).feature_map() for term, a in terms]
        return lambda X: np.hstack([np.empty((n_rows(X), 0)), *(phi(X) for phi in maps)])

    def formula(self) -> str:
        """a₀ + a₁k + …"""
        inner = _bracketed(self.k)
        terms = [
            f"{a:g}" if i == 0 else f"{'' if a == 1 else f'{a:g}·'}{inner}{'' if i == 1 else f'^{i}'}"
            for i, a in enumerate(self.coefficients)
            if a
        ]
        return " + ".join(terms) or "0"


class _OfMade(_Of):
    """The part on something that is made of each row."""

    def _made(self, X: Any) -> Any:
        raise TypeError(f"{type(self).__name__} must say what it makes of the rows.")

    def bound(self, X: Any) -> Kernel:
        """The part bound to what is made of X."""
        return type(self)(**{**self.get_params(deep=False), "k": self.k.bound(self._made(X))})

    def prepare(self, X: Any) -> Any:
        """What is made of X, prepared."""
        return self.k.prepare(self._made(X))

    def block(self, left: Any, right: Any) -> Array:
        """The part's block."""
        return self.k.block(left, right)

    def own(self, prepared: Any) -> Array:
        """The part's diagonal."""
        return self.k.own(prepared)

    def feature_map(self) -> Callable[[Any], Array]:
        """The part's map of what is made of X."""
        phi = self.k.feature_map()
        return lambda X: phi(self._made(X))


@stored("MappedKernel")
class Mapped(_OfMade):
    """k(φ(x), φ(z))."""

    function: Any = FUNCTION

    def _made(self, X: Any) -> Any:
        found = self.function(X)
        n, m = n_rows(X), n_rows(found)
        if n != m:
            raise ValueError(f"map: the function made {m} rows of {n}; it must work row by row.")
        return found

    @property
    def takes(self) -> str:  # type: ignore[override]
        """Whatever the function takes."""
        return "anything"

    def formula(self) -> str:
        """K of φ."""
        name = getattr(self.function, "__name__", "φ")
        name = "φ" if name == "<lambda>" else name
        return f"[{self.k.formula()}] of {name}(x), {name}(z)"


class _Between(_Of):
    """The part between a factor of each row: rows are prepared as (what the part makes of them, their factors)."""

    def take(self, prepared: Any, rows: Any) -> Any:
        """Some rows and their factors."""
        return self.k.take(prepared[0], rows), prepared[1][rows]

    def block(self, left: Any, right: Any) -> Array:
        """The block between the factors."""
        out = self.k.block(left[0], right[0])
        out *= left[1][:, None]
        out *= right[1]
        return out


@stored("ScaledByKernel")
class ScaledBy(_Between):
    """f(x)·k(x, z)·f(z)."""

    function: Any = FUNCTION

    def prepare(self, X: Any) -> Any:
        """Rows and their factors."""
        factor = np.asarray(self.function(X), dtype=np.float64).ravel()
        n = n_rows(X)
        if factor.shape != (n,):
            raise ValueError(
                f"scaled_by: the function made {factor.shape[0]} numbers of {n} rows; it must give one a row."
            )
        return self.k.prepare(X), factor

    def own(self, prepared: Any) -> Array:
        """The diagonal times the squares."""
        return self.k.own(prepared[0]) * prepared[1] ** 2

    def feature_map(self) -> Callable[[Any], Array]:
        """The part's map times f."""
        phi = self.k.feature_map()
        return lambda X: phi(X) * np.asarray(self.function(X), dtype=np.float64).reshape(-1, 1)

    def formula(self) -> str:
        """f(x)·k·f(z)."""
        name = getattr(self.function, "__name__", "f")
        name = "f" if name == "<lambda>" else name
        return f"{name}(x)·{_bracketed(self.k)}·{name}(z)"


@stored("OnColumnsKernel")
class OnColumns(_OfMade):
    """k of some columns."""

    columns: Any = Parameter(None, Any_("int, slice or sequence of int", wrong=("a", [1.5], [])), "The columns.")

    def _made(self, X: Any) -> Any:
        rows: Any = X if is_sparse(X) else np.asarray(X)
        chosen = [self.columns] if isinstance(self.columns, (int, np.integer)) else self.columns
        if not isinstance(chosen, slice):
            listed = np.asarray(chosen)
            if listed.dtype.kind not in "iu" or listed.ndim != 1 or not listed.size:
                raise ValueError(f"columns must be numbers of columns or a slice; got {self.columns!r}.")
            if listed.min() < -rows.shape[1] or listed.max() >= rows.shape[1]:
                raise ValueError(f"columns names column {int(listed.max())}, but X has {rows.shape[1]} columns.")
        return rows[:, chosen]

    def formula(self) -> str:
        """K on columns."""
        return f"[{self.k.formula()}] on {_shown(self.columns)}"


@stored("NormalizedKernel")
class Normalized(_Between):
    """k(x, z)/√(k(x, x)·k(z, z))."""

    def prepare(self, X: Any) -> Any:
        """Rows and the inverses of their lengths."""
        prepared = self.k.prepare(X)
        length = np.sqrt(np.maximum(self.k.own(prepared), 0.0))
        # A row of length zero is similar to nothing, itself included.
        return prepared, np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)

    def own(self, prepared: Any) -> Array:
        """Ones, and zero for rows of length zero."""
        return (prepared[1] > 0).astype(np.float64)

    def feature_map(self) -> Callable[[Any], Array]:
        """The part's map at length one."""
        phi = self.k.feature_map()

        def unit(X: Any) -> Array:
            rows = phi(X)
            length = np.linalg.norm(rows, axis=1, keepdims=True)
            return np.asarray(np.divide(rows, length, out=np.zeros_like(rows), where=length > 0))

        return unit

    def formula(self) -> str:
        """The cosine of k."""
        return f"cos[{self.k.formula()}]"


def _bracketed(kernel: Kernel) -> str:
    text = kernel.formula()
    return f"({text})" if isinstance(kernel, (Sum, PolynomialOf, Scaled)) or text == "x·z" else text


def _shown(columns: Any) -> str:
    if isinstance(columns, slice):
        return f"columns {columns.start or 0}:{'' if columns.stop is None else columns.stop}"
    return f"columns {list(np.atleast_1d(np.asarray(columns)).tolist())}"
