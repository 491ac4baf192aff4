"""Objectives of small problems in sixty digits, and points that are better than a given one.

    P(w, b) = (1/Σs_i) Σ s_i·loss(y_i, x_i·w + b)  +  alpha·penalty(w)

Every number of a fit is a binary fraction, so that what double precision cannot tell (scores that cancel, sums of numbers
far apart) is computed here as if it were exact. Each loss is a sum of pieces φ(s·f + c) and a linear term, written from the
definitions; `Exact.better` minimizes them by Newton's method after kinks are rounded off, less and less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np

__all__ = ["DIGITS", "Exact"]

DIGITS = 60
ZERO, ONE, HALF, TWO = Decimal(0), Decimal(1), Decimal("0.5"), Decimal(2)
HUGE = Decimal(10) ** 1000
Jet = tuple[Decimal, Decimal, Decimal]
"""A value with its first and its second derivative."""


def square(t: Decimal, mu: Decimal) -> Jet:
    return HALF * t * t, t, ONE


def positive(t: Decimal, mu: Decimal) -> Jet:
    """max(t, 0), rounded off by mu."""
    if not mu:
        return (t, ONE, ZERO) if t > 0 else (ZERO, ZERO, ZERO)
    root = (t * t + mu * mu).sqrt()
    return HALF * (t + root), HALF * (ONE + t / root), HALF * mu * mu / (root * root * root)


def positive_square(t: Decimal, mu: Decimal) -> Jet:
    return (HALF * t * t, t, ONE) if t > 0 else (ZERO, ZERO, ZERO)


def huber(t: Decimal, mu: Decimal) -> Jet:
    """½t² up to 1, |t| − ½ beyond."""
    if abs(t) <= 1:
        return HALF * t * t, t, ONE
    return abs(t) - HALF, ONE.copy_sign(t), ZERO


def positive_huber(t: Decimal, mu: Decimal) -> Jet:
    """½t² from 0 to 2, 2t − 2 beyond."""
    return positive_square(t, mu) if t <= 2 else (TWO * t - TWO, TWO, ZERO)


def exponential(t: Decimal, mu: Decimal) -> Jet:
    e = t.exp() if t < 2000 else HUGE
    return e, e, e


def softplus(t: Decimal, mu: Decimal) -> Jet:
    """ln(1 + e^t)."""
    e = (-abs(t)).exp()
    slope = ONE / (ONE + e) if t > 0 else e / (ONE + e)
    return max(t, ZERO) + (ONE + e).ln(), slope, e / ((ONE + e) * (ONE + e))


@dataclass(frozen=True)
class Piece:
    """factor·φ(sign·f + shift)."""

    shape: Callable[[Decimal, Decimal], Jet]
    factor: Decimal
    sign: Decimal
    shift: Decimal


def entropy(y: Decimal) -> Decimal:
    return y * y.ln() if y > 0 else ZERO


def pieces(loss: Any, y: Decimal) -> tuple[list[Piece], Decimal, Decimal]:
    """The pieces of the loss of one row, the slope of its linear term, and its constant."""
    name, side = loss.name, TWO * y - ONE
    if name == "squared":
        return [Piece(square, ONE, ONE, -y)], ZERO, ZERO
    if name in ("absolute", "relative"):
        size = ONE if name == "absolute" else ONE / abs(y)
        return [Piece(positive, size, ONE, -y), Piece(positive, size, -ONE, y)], ZERO, ZERO
    if name == "quantile":
        q = Decimal(loss.quantile)
        return [Piece(positive, ONE - q, ONE, -y), Piece(positive, q, -ONE, y)], ZERO, ZERO
    if name == "epsilon_insensitive":
        e = Decimal(loss.epsilon)
        return [Piece(positive, ONE, ONE, -y - e), Piece(positive, ONE, -ONE, y - e)], ZERO, ZERO
    if name == "huber":
        unit, bend = Decimal(loss.delta), Decimal(loss.curvature)
        return [Piece(huber, bend * unit * unit, ONE / unit, -y / unit)], ZERO, ZERO
    if name == "poisson":
        return [Piece(exponential, ONE, ONE, ZERO)], -y, entropy(y) - y
    if name == "gamma":
        return [Piece(exponential, y, -ONE, ZERO)], ONE, -ONE - y.ln()
    if name == "logistic":
        return [Piece(softplus, ONE, ONE, ZERO)], -y, entropy(y) + entropy(ONE - y)
    margins = {
        "hinge": (positive, ONE),
        "squared_hinge": (positive_square, ONE),
        "modified_huber": (positive_huber, ONE),
        "exponential": (exponential, ZERO),
        "perceptron": (positive, ZERO),
    }
    shape, shift = margins[name]
    return [Piece(shape, ONE, -side, shift)], ZERO, ZERO


def decimals(values: Any) -> list[Decimal]:
    return [Decimal(float(value)) for value in np.ravel(values)]


class Exact:
    """A problem of few rows and columns, in sixty digits; penalties are Σ l1_j|w_j| + ½ l2_j w_j² + c_j|w_j|^q/q."""

    def __init__(
        self, X: Any, y: Any, weight: Any, loss: Any, penalty: Any, alpha: float, *, fit_intercept: bool = True
    ) -> None:
        self.context = Context(prec=DIGITS, Emax=10**9, Emin=-(10**9))
        with localcontext(self.context):
            n, self.d = X.shape
            self.rows = [[*decimals(row), ONE] if fit_intercept else decimals(row) for row in np.asarray(X)]
            shares = decimals(np.ones(n) if weight is None else weight)
            self.p = [share / sum(shares) for share in shares]
            self.loss = [pieces(loss, target) for target in decimals(y)]
            self.fit_intercept = fit_intercept
            elastic, power = penalty.elastic(self.d), penalty.power(self.d)
            zero, strength = [ZERO] * self.d, Decimal(float(alpha))
            self.l1, self.l2 = (
                (zero, zero) if elastic is None else [[strength * c for c in decimals(one)] for one in elastic]
            )
            self.q = TWO if power is None or elastic is not None else Decimal(float(power[0]))
            self.c = zero if power is None or elastic is not None else [strength * c for c in decimals(power[1])]
            peaks = [max((abs(row[j]) for row in self.rows), default=ONE) or ONE for j in range(self.d)]
            self.units = [ONE / peak for peak in peaks] + [ONE] * int(fit_intercept)

    def objective(self, coef: Any, intercept: Any) -> Decimal:
        """P at a point given in floating point."""
        with localcontext(self.context):
            return self._value([*decimals(coef), *decimals([intercept] if self.fit_intercept else [])])

    def constant(self) -> Decimal:
        """P of the best constant score: the unit of relative gaps."""
        with localcontext(self.context):
            z = [ZERO] * len(self.units)
            return self._descend(z, [len(z) - 1])[1] if self.fit_intercept else self._value(z)

    def better(self, coef: Any, intercept: Any) -> Decimal:
        """The least P that was found, from the given point and from zero."""
        with localcontext(self.context):
            given = [*decimals(coef), *decimals([intercept] if self.fit_intercept else [])]
            every = list(range(len(given)))
            return min(self._descend(start, every)[1] for start in ([ZERO] * len(given), given))

    def _value(self, z: Sequence[Decimal], mu: Decimal = ZERO) -> Decimal:
        return self._jet(z, mu, [])[0]

    def _jet(
        self, z: Sequence[Decimal], mu: Decimal, free: list[int]
    ) -> tuple[Decimal, list[Decimal], list[list[Decimal]]]:
        """P with kinks rounded off by mu, its gradient and its Hessian along the free coordinates."""
        value, k = ZERO, len(free)
        gradient, hessian = [ZERO] * k, [[ZERO] * k for _ in range(k)]
        for row, p, (parts, slope, constant) in zip(self.rows, self.p, self.loss, strict=True):
            f = sum((x * w for x, w in zip(row, z, strict=True)), ZERO)
            first, second = slope, ZERO
            value += p * (slope * f + constant)
            for part in parts:
                v, d1, d2 = part.shape(part.sign * f + part.shift, mu)
                value += p * part.factor * v
                first += part.factor * part.sign * d1
                second += part.factor * part.sign * part.sign * d2
            for a, i in enumerate(free):
                gradient[a] += p * first * row[i]
                bent = p * second * row[i]
                for b, j in enumerate(free[: a + 1]):
                    hessian[a][b] += bent * row[j]
        for j in range(self.d):
            v, d1, d2 = self._penalty(j, z[j], mu * self.units[j])
            value += v
            if j in free:
                gradient[free.index(j)] += d1
                hessian[free.index(j)][free.index(j)] += d2
        for a in range(k):
            for b in range(a):
                hessian[b][a] = hessian[a][b]
        return value, gradient, hessian

    def _penalty(self, j: int, w: Decimal, mu: Decimal) -> Jet:
        value, first, second = HALF * self.l2[j] * w * w, self.l2[j] * w, self.l2[j]
        if self.l1[j]:
            for sign in (ONE, -ONE):
                v, d1, d2 = positive(sign * w, mu)
                value, first, second = value + self.l1[j] * v, first + sign * self.l1[j] * d1, second + self.l1[j] * d2
        if self.c[j] and (w or mu):
            around = w * w + mu * mu
            level = (around.ln() * (self.q / TWO)).exp()
            value += self.c[j] * level / self.q
            first += self.c[j] * level * w / around
            second += self.c[j] * level * (ONE + (self.q - TWO) * w * w / around) / around
        return value, first, second

    def _descend(self, z: Sequence[Decimal], free: list[int]) -> tuple[list[Decimal], Decimal]:
        """Newton's method along the free coordinates while kinks get sharper; the best point on the way."""
        z, size = list(z), max((abs(part.shift) for parts, _, _ in self.loss for part in parts), default=ONE) or ONE
        best, least = z, self._value(z)
        for sharp in range(0, 30, 2):
            mu = size * Decimal(10) ** -sharp
            for _ in range(40):
                value, gradient, hessian = self._jet(z, mu, free)
                step = _solve(hessian, gradient, [self.units[i] for i in free])
                fall = sum((g * s for g, s in zip(gradient, step, strict=True)), ZERO)
                if fall <= abs(value) * Decimal("1e-40"):
                    break
                share = ONE
                while share > Decimal("1e-9"):
                    trial = list(z)
                    for i, s in zip(free, step, strict=True):
                        trial[i] -= share * s
                    if self._value(trial, mu) <= value - share * fall / 10000:
                        break
                    share /= 2
                else:
                    break
                z = trial
            reached = self._value(z)
            if reached < least:
                best, least = z, reached
        return best, least


def _solve(hessian: list[list[Decimal]], gradient: list[Decimal], units: list[Decimal]) -> list[Decimal]:
    """The Newton step; directions without curvature get a little, in the units of the columns."""
    k = len(gradient)
    top = max((hessian[a][a] * units[a] * units[a] for a in range(k)), default=ZERO) or ONE
    A = [
        [hessian[a][b] * units[a] * units[b] + (top * Decimal("1e-35") if a == b else ZERO) for b in range(k)]
        for a in range(k)
    ]
    r = [gradient[a] * units[a] for a in range(k)]
    for a in range(k):
        for b in range(a + 1, k):
            factor = A[b][a] / A[a][a]
            for c in range(a, k):
                A[b][c] -= factor * A[a][c]
            r[b] -= factor * r[a]
    x = [ZERO] * k
    for a in reversed(range(k)):
        x[a] = (r[a] - sum((A[a][c] * x[c] for c in range(a + 1, k)), ZERO)) / A[a][a]
    return [x[a] * units[a] for a in range(k)]
