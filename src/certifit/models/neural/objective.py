"""The target side of a network: units in which it is learned, and the loss as the native trainer takes it.

A network learns f = unit·(offset + net(x)). The offset is the best constant and the unit the spread of y, where the loss has a
meaning in any unit, so that neither a far target nor a large one costs digits of single precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import certifit._native.network as native
from certifit._types import Array
from certifit.evaluation.losses import Loss
from certifit.evaluation.losses.base import kernel_form
from certifit.models.neural.layers import rounded

__all__ = ["Target"]

HIGHEST = 700.0  # of a score on the scale of a logarithm: e^700 is about the largest number there is


@dataclass(frozen=True, eq=False)
class Target:
    """Targets in the unit of the network.

    ``loss(y, f) = factor · inner(y/unit, f/unit)``.
    """

    loss: Loss
    inner: Loss
    y: Array
    weight: Array
    unit: float
    factor: float
    offset: Array
    """Of each score, in units."""

    @classmethod
    def of(cls, loss: Loss, y: Array, weight: Array, standardize: bool = True) -> Target:
        """The unit and offset of these targets; without `standardize` they are taken as they are."""
        if not standardize:
            return cls.in_units(loss, y, weight, 1.0, np.zeros(loss.n_scores(y)))
        scales = not loss.coupled and loss.rescaled(1.0) is not None
        made = cls.in_units(loss, y, weight, _unit(y, weight) if scales else 1.0, np.zeros(loss.n_scores(y)))
        # Of the offset a few digits will do, the bias learns the rest; so the order of a sum does not matter.
        return made if loss.coupled else replace(made, offset=np.rint(made.constant * 2.0**30) * 2.0**-30)

    @classmethod
    def in_units(cls, loss: Loss, y: Array, weight: Array, unit: float, offset: Array) -> Target:
        """Targets in a given unit; other than 1 only for losses that have a meaning in any."""
        inner, factor = loss, 1.0
        if unit != 1.0 and (scaled := loss.rescaled(unit)) is not None:
            inner, factor = scaled
        return cls(loss, inner, y / unit if unit != 1.0 else y, weight, unit, factor, offset)

    def again(self, y: Array, weight: Array) -> Target:
        """Other targets in the same units."""
        return replace(self, y=y / self.unit if self.unit != 1.0 else y, weight=weight)

    @property
    def n_scores(self) -> int:
        """K."""
        return int(self.offset.shape[0])

    @property
    def constant(self) -> Array:
        """The best constant scores."""
        columns = [self.y] if self.inner.coupled or self.y.ndim == 1 else list(self.y.T)
        with np.errstate(all="ignore"):
            found = np.concatenate([np.atleast_1d(self.inner.optimal_constant(y, self.weight)) for y in columns])
        return np.asarray(np.clip(found, -HIGHEST, HIGHEST) if self.inner.rescaled(1.0) is None else found)

    def mean(self, scores: Array) -> float:
        """The weighted mean loss of scores in units, shape (n, K)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.average(self._values(slice(None), scores), weights=self.weight))

    @property
    def scale(self) -> float:
        """The mean loss of the best constant."""
        return self.mean(np.broadcast_to(self.constant, (self.y.shape[0], self.n_scores)))

    def _shaped(self, scores: Array) -> Array:
        return scores[:, 0] if self.y.ndim == 1 and not self.inner.coupled else scores

    def plain(self) -> Array:
        """The targets as the native trainer reads them, (n, columns) in double precision."""
        y = np.asarray(self.y, dtype=np.float64)
        return np.ascontiguousarray(y if y.ndim == 2 else y[:, None])

    def native(self) -> Any:
        """The loss as the native trainer takes it: a formula it knows, or a function of the scores of a batch."""
        if self.form:
            name, a, c, *_ = (*self.form, 0.0, 0.0)
            return native.loss(name, a, c, self.offset)
        return native.loss(self.function(), self.offset)

    @property
    def form(self) -> tuple[Any, ...]:
        """The formula by which trainers know the loss, and its parameters; empty: they ask a function. K scores that meet go with
        the number of a class, not with probabilities.
        """
        return () if self.inner.coupled and self.y.ndim == 2 else kernel_form(self.inner)

    def function(self) -> Callable[[Array, Array, Array], float]:
        """The summed loss of rows at scores in units, whose slopes it writes."""

        def evaluate(rows: Array, scores: Array, slopes: Array) -> float:
            values, slopes[...] = self.at(rows, scores)
            return float(values.sum())

        return evaluate

    def at(self, rows: Any, scores: Array) -> tuple[Array, Array]:
        """The loss of each of some rows at scores in units, and its slopes there, shape (n, K)."""
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = np.asarray(self.inner.derivative(self.y[rows], self._shaped(scores)))
        return self._values(rows, scores), slopes.reshape(scores.shape)

    def _values(self, rows: Any, scores: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            value = np.asarray(self.inner.value(self.y[rows], self._shaped(scores)))
        return value if value.ndim == 1 else np.asarray(value.sum(axis=1))


def _unit(y: Array, weight: Array) -> float:
    """The spread of the targets, or their size where they do not vary; to nine digits, whatever the order of the sums."""
    size = float(np.abs(y).max(initial=0.0))
    if size == 0.0:
        return 1.0
    near = y / size
    variance = np.average((near - np.average(near, axis=0, weights=weight)) ** 2, axis=0, weights=weight)
    spread = float(np.sqrt(np.max(variance)))
    return float(rounded(np.array(size * (spread if spread > 1e-12 else 1.0)), 30))
