"""Kernels on discrete things: strings and sets.

spectrum      Σ_s count_s(x)·count_s(z) over all strings s of n letters (or n words)
sets          |x ∩ z|           Jaccard |x ∩ z| / |x ∪ z|           2^|x ∩ z|, the number of common subsets
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit._types import Array
from certifit.parameters import Choice, Integer, OneOf, Parameter
from certifit.representation.kernels.base import Kernel

__all__ = ["Sets", "Spectrum"]


class _Counted(Kernel):
    """Things as counts of their parts; the matrix of counts is sparse, and its products are the kernel."""

    takes = "objects"

    def _parts(self, thing: Any) -> Counter[Any]:
        raise TypeError(f"{type(self).__name__} must say what its parts are.")

    def prepare(self, X: Any) -> list[Counter[Any]]:
        """Counts of each thing."""
        if isinstance(X, (str, bytes)):
            raise TypeError("X must be a sequence of things, one for each row; got a single string.")
        return [self._parts(thing) for thing in X]

    def take(self, prepared: Any, rows: Any) -> Any:
        """Some of the things."""
        if isinstance(rows, slice):
            return prepared[rows]
        chosen = np.asarray(rows)
        return [prepared[i] for i in (np.flatnonzero(chosen) if chosen.dtype == bool else chosen)]

    def block(self, left: Any, right: Any) -> Array:
        """One sparse product over the parts that both sides know."""
        number: dict[Any, int] = {}
        for counts in left:
            for part in counts:
                number.setdefault(part, len(number))
        a, b = _matrix(left, number), _matrix(right, number)
        return np.asarray((a @ b.T).todense(), dtype=np.float64)

    def own(self, prepared: Any) -> Array:
        """Sums of squared counts."""
        return np.array([float(sum(count * count for count in counts.values())) for counts in prepared])


class Spectrum(_Counted):
    """Strings by their substrings of n letters, or their runs of n words.

    Examples
    --------
    >>> from certifit.kernels import Spectrum
    >>> Spectrum(n=2)(["abab", "baba", "xyz"])
    array([[5., 4., 0.],
           [4., 5., 0.],
           [0., 0., 2.]])
    """

    n: int = Parameter(3, Integer(1), "Letters (or words) of a part.")
    unit: str = OneOf(("letter", "word"), "What parts are made of.")
    up_to: bool = Parameter(False, Choice(True, False), "Whether shorter parts count as well.")

    def _parts(self, thing: Any) -> Counter[Any]:
        if not isinstance(thing, str):
            raise TypeError(f"Spectrum takes strings; got {thing!r} of type {type(thing).__name__}.")
        items: Any = thing if self.unit == "letter" else thing.split()
        lengths = range(1, self.n + 1) if self.up_to else (self.n,)
        return Counter(tuple(items[i : i + k]) for k in lengths for i in range(len(items) - k + 1))

    def formula(self) -> str:
        """Common substrings."""
        return f"common {'≤' if self.up_to else ''}{self.n}-{self.unit} parts of x, z"


class Sets(_Counted):
    """Sets by what they have in common: the number of elements, its share (Jaccard), or the number of common subsets.

    Examples
    --------
    >>> from certifit.kernels import Sets
    >>> Sets()([{1, 2}, {2, 3, 4}])
    array([[2., 1.],
           [1., 3.]])
    """

    kind: str = OneOf(("common", "jaccard", "subsets"), "Which of the three.")

    def _parts(self, thing: Any) -> Counter[Any]:
        if isinstance(thing, (str, bytes)) or not isinstance(thing, Iterable):
            raise TypeError(f"Sets takes sets or sequences of elements; got {thing!r} of type {type(thing).__name__}.")
        return Counter(set(thing))

    def block(self, left: Any, right: Any) -> Array:
        """From the numbers of common elements."""
        common = super().block(left, right)
        if self.kind == "common":
            return common
        if self.kind == "subsets":
            return np.exp2(common)
        sizes = [np.array([float(len(counts)) for counts in side]) for side in (left, right)]
        union = sizes[0][:, None] + sizes[1] - common
        return np.divide(common, union, out=np.ones_like(common), where=union > 0)  # two empty sets are equal

    def own(self, prepared: Any) -> Array:
        """Of each set with itself."""
        size = np.array([float(len(counts)) for counts in prepared])
        return {"common": size, "subsets": np.exp2(size), "jaccard": np.ones_like(size)}[self.kind]

    def formula(self) -> str:
        """|x ∩ z| and the like."""
        return {"common": "|x ∩ z|", "jaccard": "|x ∩ z|/|x ∪ z|", "subsets": "2^|x ∩ z|"}[self.kind]


def _matrix(things: Any, number: dict[Any, int]) -> Any:
    rows, columns, values = [], [], []
    for i, counts in enumerate(things):
        for part, count in counts.items():
            j = number.get(part)
            if j is not None:
                rows.append(i)
                columns.append(j)
                values.append(float(count))
    return sp.csr_array((values, (rows, columns)), shape=(len(things), len(number)))
