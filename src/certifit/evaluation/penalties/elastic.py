"""No penalty, L2, L1 and the elastic net: Σ_j l1_j|w_j| + ½ l2_j w_j²."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_real
from certifit.evaluation.penalties.base import Penalty, shrink


class ElasticFamily(Penalty):
    """Everything follows from the two strengths of each coefficient."""

    def elastic(self, d: int) -> tuple[Array, Array]:
        raise TypeError(f"{type(self).__name__} must define elastic.")

    def each(self, w: Array) -> Array:
        l1, l2 = self.elastic(w.shape[-1])
        return l1 * np.abs(w) + 0.5 * l2 * w * w

    def prox(self, z: Array, step: float | Array) -> Array:
        l1, l2 = self.elastic(z.shape[-1])
        return shrink(z, step * l1) / (1.0 + step * l2)

    def argmax(self, v: Array) -> Array:
        l1, l2 = self.elastic(v.shape[-1])
        excess = shrink(v, l1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(excess == 0.0, 0.0, excess / l2)

    def subdifferential(self, w: Array) -> tuple[Array, Array]:
        l1, l2 = self.elastic(w.shape[-1])
        sign = np.sign(w)
        return np.where(sign > 0, l1, -l1) + l2 * w, np.where(sign < 0, -l1, l1) + l2 * w

    def rescaled(self, unit: Array) -> Penalty:
        l1, l2 = self.elastic(unit.shape[0])
        return Strengths(l1 / unit, l2 / (unit * unit))


class Strengths(ElasticFamily):
    """The elastic family given by its two strength vectors; what rescaling and solvers produce."""

    def __init__(self, l1: Array, l2: Array) -> None:
        super().__init__()
        self.l1, self.l2 = np.asarray(l1, dtype=np.float64), np.asarray(l2, dtype=np.float64)

    def elastic(self, d: int) -> tuple[Array, Array]:
        return self.l1, self.l2


class NoPenalty(ElasticFamily):
    """Ω(w) = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.penalties import NoPenalty
    >>> NoPenalty().value(np.array([3.0, -4.0]))
    0.0
    """

    name = "none"

    def __init__(self) -> None:
        super().__init__()

    def elastic(self, d: int) -> tuple[Array, Array]:
        return np.zeros(d), np.zeros(d)


class L2(ElasticFamily):
    """Ω(w) = ½ Σ_j weights_j·w_j² (ridge; with weights the asymmetric form).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.penalties import L2
    >>> L2().value(np.array([3.0, -4.0]))
    12.5
    >>> L2(weights=[1.0, 0.0]).value(np.array([3.0, -4.0]))
    4.5
    """

    name = "l2"

    def elastic(self, d: int) -> tuple[Array, Array]:
        return np.zeros(d), self.strength(d)


class L1(ElasticFamily):
    """Ω(w) = Σ_j weights_j·|w_j| (lasso; with weights the adaptive lasso).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.penalties import L1
    >>> L1().value(np.array([3.0, -4.0])), L1().prox(np.array([3.0, 0.5]), 1.0)
    (7.0, array([2., 0.]))
    """

    name = "l1"

    def elastic(self, d: int) -> tuple[Array, Array]:
        return self.strength(d), np.zeros(d)


class ElasticNet(ElasticFamily):
    """Ω(w) = Σ_j weights_j·(l1_ratio·|w_j| + (1 − l1_ratio)·½w_j²).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.penalties import ElasticNet
    >>> ElasticNet(l1_ratio=0.5).value(np.array([3.0, -4.0]))
    9.75
    """

    name = "elasticnet"

    def __init__(self, l1_ratio: float = 0.5, weights: Any = None) -> None:
        super().__init__(weights)
        self.l1_ratio = float(check_real("l1_ratio", l1_ratio, low=0, high=1))

    def elastic(self, d: int) -> tuple[Array, Array]:
        c = self.strength(d)
        return self.l1_ratio * c, (1.0 - self.l1_ratio) * c
