"""What local models share: rows in blocks that lie together, how wide a neighborhood is, and the choice of that width.

    w_i(x) = s_i · K(‖x_i − x‖/h)        K(r) = exp(−½r²), or (1 − r³)³ within r < 1

h is a number, or reaches as far as a given fraction of the rows, or is the one of least leave-one-out error among fifteen
that halve every second time, from twice the spread of the rows.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

import certifit._native.local as _native
import certifit._native.neighbors as _neighbors
from certifit._types import Array
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.names import record
from certifit.parameters import N_JOBS, Choice, Declared, Either, Fitted, Integer, OneOf, Parameter, Real
from certifit.parameters.methods import ROWS
from certifit.threads import n_threads

__all__ = ["BaseLocal", "Blocks", "LocalShape"]

STEPS = 15  # widths tried
EQUAL = 1e-12  # errors that differ by so little, in units of the error of a constant, are the same
MOST_TERMS = 500  # of a local polynomial
PAIRS = 2e7
FRACTIONS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.17, 0.12, 0.08, 0.05, 0.03)

UNSCALED = ROWS[:-1] + "; columns of different units want a scaler before them."


class LocalShape(Declared, takes={"fit.X": UNSCALED, "X": ROWS}):
    """The parameters of a neighborhood, and what is known of it after a fit."""

    kernel: str = OneOf(
        ("gaussian", "tricube"),
        "Weights by distance in widths: exp(−½r²), or (1 − r³)³ within one width and nothing beyond.",
    )
    bandwidth: Any = Parameter(
        "loo",
        Either(Real(0, open_low=True), Choice("loo", "nearest")),
        'The width: a number in units of X, "loo" for the one of least leave-one-out error, or "nearest" for the distance within '
        "which a fraction of the rows lies.",
    )
    fraction: Any = Parameter(
        0.5,
        Either(Real(0, 1, open_low=True), Choice("loo")),
        'Share of the rows of ``bandwidth="nearest"``; "loo" takes the one of least leave-one-out error.',
    )
    degree: int = Parameter(1, Integer(0, 2), "Degree of the local polynomial: a constant, a plane, a quadric.")
    n_jobs: int | None = N_JOBS

    n_features_in_: int = Fitted("int", "Number of columns.")
    bandwidth_: float | None = Fitted("float or None", 'The width; None for ``bandwidth="nearest"``.')
    fraction_: float | None = Fitted("float or None", 'The share of the rows, for ``bandwidth="nearest"``.')
    candidates_: Array = Fitted("array", "Widths (or fractions) that were tried, if one was chosen.")
    loo_errors_: Array = Fitted("array", "Their errors on rows left out: mean squares, or log losses of classes.")


@record("LocalBlocks")
class Blocks:
    """Rows in an order that keeps near ones together, in units of their own."""

    X: Array
    """In units of `unit`, a power of two."""
    y: Array
    s: Array
    """Weights in units of `copy`, their mean."""
    unit: float
    copy: float

    @staticmethod
    def of(X: Array, y: Array, weight: Array, threads: int) -> Blocks:
        """Sort by the one column, or by the cells of a k-d tree."""
        peak = float(np.abs(X).max(initial=0.0))
        unit = 2.0 ** min(math.frexp(peak)[1], 1023) if peak > 0 else 1.0  # the largest power that is a number
        scaled = np.ascontiguousarray(X / unit, dtype=np.float64)
        one = scaled.shape[1] == 1
        order = np.argsort(scaled[:, 0], kind="stable") if one else _neighbors.build(scaled, threads)[0]
        copy = float(weight.mean())
        return Blocks(scaled[order], y[order], weight[order] / copy, unit, copy)

    def table(self) -> Any:
        """As the native kernels take them; the last block is filled up with rows of weight zero."""
        (n, d), size = self.X.shape, _native.ROWS
        blocks = -(-n // size)
        fill = blocks * size - n

        def cut(values: Array) -> Array:
            return np.ascontiguousarray(values.reshape(blocks, size, -1).transpose(0, 2, 1))

        X = cut(np.concatenate([self.X, np.broadcast_to(self.X[-1], (fill, d))]))
        y = cut(np.concatenate([self.y, np.zeros((fill, self.y.shape[1]))]))
        s = np.concatenate([self.s, np.zeros(fill)]).reshape(blocks, size)
        alike = bool((self.s == self.s[0]).all())
        low, high = np.ascontiguousarray(X.min(axis=2)), np.ascontiguousarray(X.max(axis=2))
        return _native.Table(X, y, s, low, high, n, alike)

    def queries(self, X: Array) -> Array:
        """Queries in the unit of the rows."""
        return np.ascontiguousarray(X / self.unit, dtype=np.float64)

    def spread(self) -> float:
        """Root of the mean squared distance from the mean."""
        center = np.average(self.X, axis=0, weights=self.s)
        return math.sqrt(float(np.average(((self.X - center) ** 2).sum(axis=1), weights=self.s))) or 1.0

    def some(self, pairs: float = PAIRS, least: int = 300) -> Array:
        """Numbers of rows, evenly spread, that are looked at where all would take too long: as many as so many pairs allow."""
        n = self.X.shape[0]
        most = int(np.clip(pairs / n, least, 2000))
        return np.arange(n) if n <= most else np.linspace(0, n - 1, most).round().astype(np.intp)


class BaseLocal(CertifiedEstimator):
    """What local models do alike: take a width, or choose one."""

    kernel: str
    bandwidth: Any
    fraction: Any
    degree: int
    n_jobs: int | None
    bandwidth_: float | None
    fraction_: float | None
    candidates_: Array
    loo_errors_: Array
    _blocks: Blocks

    def _lens(self, width: float | None, fraction: float | None) -> Any:
        """A neighborhood of this width, or of this fraction of the rows."""
        inner = 0.0 if width is None else width / self._blocks.unit
        if width is not None and not inner > 0.0:
            raise ValueError(
                f"bandwidth must be comparable to the rows of X; got {width!r} for rows of magnitude {self._blocks.unit:.0e}."
            )
        return _native.Lens(self.kernel, self.degree, inner, fraction or 1.0)

    def _check_terms(self, d: int) -> None:
        """Every point solves a system of as many unknowns as the local polynomial has terms."""
        terms = (d + 1) * (d + 2) // 2
        if self.degree == 2 and terms > MOST_TERMS:
            raise ValueError(
                f"degree=2 in {d} columns makes {terms:,} terms for every point, more than {MOST_TERMS:,}: select columns "
                "first, or take degree=1."
            )

    def _settle(self, started: float, nothing: str, constant: float, unit: float = 1.0) -> None:
        """Take the width that is given, or the one of the least leave-one-out error; errors are counted in squares of a unit."""
        for name in ("candidates_", "loo_errors_"):
            if hasattr(self, name):
                delattr(self, name)
        nearest = self.bandwidth == "nearest"
        given = self.fraction if nearest else self.bandwidth
        if given != "loo":
            self.bandwidth_, self.fraction_ = (None, float(given)) if nearest else (float(given), None)
            self._certify(Certificate.absent(0.0, nothing, seconds=time.perf_counter() - started))
            return
        blocks = self._blocks
        widest = 2.0 * blocks.spread() * blocks.unit * (2.5 if self.kernel == "tricube" else 1.0)
        self.candidates_ = np.array(FRACTIONS) if nearest else widest * 2.0 ** (-0.5 * np.arange(STEPS))
        errors = [self._error(*((None, one) if nearest else (one, None))) for one in self.candidates_.tolist()]
        with np.errstate(over="ignore", under="ignore"):
            self.loo_errors_ = np.array(errors) * unit * unit
        least = min(errors)
        # Of equals the widest, which varies least; what differs by rounding is equal.
        best = int(np.flatnonzero(np.array(errors) <= least + EQUAL * constant)[0])
        chosen = float(self.candidates_[best])
        self.bandwidth_, self.fraction_ = (None, chosen) if nearest else (chosen, None)
        tried = f"{self.candidates_.shape[0]} {'fractions' if nearest else 'bandwidths'}"
        self._certify(
            Certificate(
                "enumeration",
                objective=errors[best],
                bound=least,
                scale=constant,
                tol=EQUAL,
                iterations=self.candidates_.shape[0],
                seconds=time.perf_counter() - started,
                note=nothing,
                claim=f"least leave-one-out error of {tried}",
            ).rescaled(unit * unit)
        )

    def _error(self, width: float | None, fraction: float | None) -> float:
        """The leave-one-out error of a neighborhood."""
        raise TypeError(f"{type(self).__name__} must say what an error is.")

    def _threads(self) -> int:
        return n_threads(self.n_jobs)
