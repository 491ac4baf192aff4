"""What a loss knows.

A loss ℓ(y, f) compares a target y with a raw score f, or with K of them; it is convex in f and normalized so that its
minimum over f is zero. One subclass, in NumPy, serves linear models with every penalty, kernels, boosting and networks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from certifit._types import Array, Matrix
from certifit.evaluation.losses.terms import TwoSidedHinge
from certifit.parameters.by_value import ByValue

__all__ = ["Fused", "FusedDual", "Loss", "constant_by_slopes", "finite_means", "kernel_form"]

FAR = 1e200  # a score far beyond all data; slopes are read off there


class Fused(NamedTuple):
    """What one native pass over the rows of X tells about a point."""

    risk: float | None
    """Σ p ℓ; None where the pass does not need it."""
    level: Any
    """Σ p ℓ', one for each score."""
    columns: Array
    """Σ p ℓ' x."""
    f: Array
    h: Any
    """The curvature, as from `Loss.slopes`."""
    theta: Callable[[], Array]
    """Makes ℓ' of each row."""


class FusedDual(NamedTuple):
    """The sums of a dual point θ: Σ p ℓ*(θ), Σ p θ and Σ p θ x."""

    conjugate: float
    level: Any
    columns: Array


class Loss(ByValue, ABC):
    """Base class of all losses.

    A smooth loss needs `value`, `derivative` and `second_derivative`; everything else has a numerical default that
    a subclass may replace by a closed form. A piecewise linear loss gives `hinge_terms` instead of a curvature. Fits are
    certified if the class also says ``convex = True``.

    All methods work elementwise on arrays `y` and `f` of the same shape; on K targets, of shape (n, K), the loss of a row is
    the sum of its K losses. A loss whose K scores meet (`coupled`, such as the softmax) takes f of shape (n, K), one target
    a row, and gives `value` and `conjugate` the shape (n,); its `slopes` bring the curvature as an object that multiplies
    changes of the scores.
    """

    name: ClassVar[str] = ""
    """Key in the registry, for ``loss="…"``."""

    task: ClassVar[str] = "regression"
    """``"regression"``; ``"binary"`` when y is 0 or 1 (the positive class); ``"multiclass"`` when it is a class number."""

    kernel: ClassVar[tuple[str, ...]] = ()
    """Its name in native kernels (row by row, networks, trees) and the attributes that are its parameters there; empty: NumPy."""

    convex: bool = False
    """Whether the loss is convex in f, for every target: the ground that certificates stand on. A class says it by itself; one
    that changes the formula of a convex loss has to say it again."""

    unproven: str = ""
    """Why no bound is claimed, where the loss knows the reason better than that nobody declared it convex."""

    trivial: ClassVar[str] = ""
    """Why the minimum of the loss says nothing about the data, where that is so; a fit that ends there claims nothing."""

    metric: ClassVar[str] = ""
    """The metric of probabilities that is this loss, if one is: scores have scales of their own, probabilities do not."""

    coupled: ClassVar[bool] = False
    """Whether the K scores of a row meet in one loss."""

    shift_invariant: ClassVar[bool] = False
    """Whether one number added to all K scores changes nothing."""

    smoothness: float = np.inf
    """Lipschitz constant of the derivative; infinity where there is none."""

    @abstractmethod
    def value(self, y: Array, f: Array) -> Array:
        """ℓ(y, f) ≥ 0."""

    @abstractmethod
    def derivative(self, y: Array, f: Array) -> Array:
        """∂ℓ/∂f, or a subgradient where the loss has a kink."""

    def second_derivative(self, y: Array, f: Array) -> Array:
        """∂²ℓ/∂f²; for a loss that is not `smooth` there is no curvature to use."""
        raise TypeError(f"{type(self).__name__} is piecewise linear and has no second derivative.")

    def slopes(self, y: Array, f: Array) -> tuple[Array, Any]:
        """`derivative` and `second_derivative` (zero where there are only kinks); a loss may share the work of the two."""
        if not self.smooth:
            return self.derivative(y, f), np.zeros_like(f)
        bend = self.second_derivative(y, f)
        # A loss that does not say that it is convex may bend down; its size still leads downhill.
        return self.derivative(y, f), bend if self.convex else np.abs(bend)

    def n_scores(self, y: Array) -> int:
        """K: how many scores the targets ask of a row."""
        return 1 if y.ndim == 1 else int(y.shape[1])

    @property
    def smooth(self) -> bool:
        """Whether Newton's method applies: the loss has a second derivative."""
        return type(self).second_derivative is not Loss.second_derivative

    def hinge_terms(self, y: Array) -> TwoSidedHinge | None:
        """The loss as slope_high·max(f − upper, 0) + slope_low·max(lower − f, 0), if it is piecewise linear."""
        return None

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        """ℓ*(y, u) = sup over f of u·f − ℓ(y, f); infinity outside the domain.

        The default inverts the derivative by a safeguarded Newton iteration from `start`, scores whose derivative
        is near u.
        """
        low, high = self.dual_domain(y)
        inside = (u > low) & (u < high)
        if start is None:
            f, slack = invert_monotone(self, y, np.where(inside, u, 0.0), np.zeros_like(u), inside)
        else:
            f, slack = _invert_near(self, y, u, start, inside)
        with np.errstate(over="ignore", invalid="ignore"):
            # u·f − ℓ(f) + |u − ℓ'(f)|·(distance to the maximizer) is never below the supremum, so
            # certificates hold.
            attained = u * f - self.value(y, f) + slack
        attained = np.where(np.isnan(attained), np.inf, attained)
        edge = (u == low) | (u == high)
        if edge.any():
            attained = np.where(edge, _limit(self, y, u, np.where(u == low, -1.0, 1.0)), attained)
        return np.where(inside | edge, attained, np.inf)

    def dual_domain(self, y: Array) -> tuple[Array, Array]:
        """The interval of slopes the loss can have, per target; the conjugate is finite inside it."""
        with np.errstate(all="ignore"):
            low = self.derivative(y, np.full_like(y, -FAR))
            high = self.derivative(y, np.full_like(y, FAR))
        return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)

    def into_domain(self, y: Array, u: Array) -> Array:
        """The nearest slopes that the loss can have."""
        return np.clip(u, *self.dual_domain(y))

    def optimal_constant(self, y: Array, weight: Array) -> Any:
        """The constant score with the least weighted mean loss; K of them for a coupled loss."""
        p = weight / weight.sum()

        def bend(c: float) -> float:
            return float(p @ self.second_derivative(y, np.full(y.shape, c)))

        return constant_by_slopes(
            lambda c: float(p @ self.derivative(y, np.full(y.shape, c))), bend if self.smooth else None
        )

    def risk(self, y: Array, p: Array, f: Array) -> float:
        """Σ p ℓ(y, f); a loss may find it without a vector of values."""
        return float(p @ self.value(y, f))

    def conjugate_risk(self, y: Array, p: Array, u: Array, start: Array | None = None) -> float:
        """Σ p ℓ*(y, u), likewise."""
        return float(p @ self.conjugate(y, u, start=start))

    def constant_risks(self, y: Array, p: Array, constant: float) -> tuple[float, float]:
        """Σ p ℓ, Σ p = 1, with one constant score for all rows, and with zero; a loss may find them with fewer vectors."""
        at_constant, at_zero = (float(p @ self.value(y, np.full(y.shape, c))) for c in (constant, 0.0))
        return at_constant, at_zero

    def predict(self, f: Array) -> Array:
        """From raw scores to predictions of y (the inverse link)."""
        return f

    def check_target(self, y: Array) -> None:
        """Raise a ValueError that names the first target outside the domain of the loss."""

    def takes(self, y: Array) -> bool:
        """Whether all targets are in the domain of the loss."""
        try:
            self.check_target(y)
        except ValueError:
            return False
        return True

    def fused(self, X: Matrix, y: Array, p: Array, w: Array, b: Any, threads: int) -> Fused | None:
        """Everything at a point in one native pass over X (an array in one piece), where the loss has one."""
        return None

    def fused_dual(self, X: Matrix, y: Array, p: Array, h: Any, shift: Any, threads: int) -> FusedDual | None:
        """The sums of the dual point ℓ' + h·shift in one native pass over X, where the loss has one."""
        return None

    def eased(self, y: Array, f: Array, weight: Array) -> Sequence[Loss]:
        """Losses like this one that are easier to minimize from the scores f, the easiest first; each one's minimum is near."""
        return ()

    def rescaled(self, unit: float) -> tuple[Loss, float] | None:
        """A loss L and a factor c with ℓ(y, f) = c·L(y/unit, f/unit), if the loss is homogeneous."""
        return None


def _invert_near(loss: Loss, y: Array, u: Array, start: Array, active: Array) -> tuple[Array, Array]:
    """`invert_monotone` from scores that are close already: plain Newton steps, and the safeguards where they fail."""
    f = np.where(active, start, 0.0)
    with np.errstate(all="ignore"):
        for _ in range(5):
            excess, h = loss.derivative(y, f) - u, loss.second_derivative(y, f)
            move = excess / h
            settled = np.abs(move) <= 1e-15 * np.abs(f)
            if settled[active].all():
                break
            new = np.where(active & ~settled, f - move, f)
            if (np.abs(move)[active] <= 1e-12 * np.maximum(np.abs(f), 1.0)[active]).all():
                settled = np.ones_like(active)  # one more step of a quadratic iteration would not show
                break
            f = new
        slack, closed = _enclosed(loss, y, u, f, np.abs(excess), h)
        rest = active & ~(closed & settled)
    if rest.any():
        f[rest], slack[rest] = invert_monotone(
            loss, y[rest], u[rest], start[rest], np.ones(int(rest.sum()), dtype=bool)
        )
    return f, np.where(active, slack, 0.0)


def _enclosed(loss: Loss, y: Array, u: Array, f: Array, excess: Array, h: Array) -> tuple[Array, Array]:
    """|u − ℓ'(y, f)| times a distance within which the slopes show the solution to lie, and whether they do."""
    near = 4e-16 * np.maximum(np.abs(f), 1e-300) + 2.0 * excess / h
    closed = (loss.derivative(y, f - near) <= u) & (loss.derivative(y, f + near) >= u)
    open_ = np.flatnonzero(~closed)
    for _ in range(6):  # so close to the solution, rounding of the slopes can hide their order: look from farther away
        if open_.size == 0:
            break
        near[open_] = 30.0 * near[open_] + 1e-16 * np.abs(u[open_])
        a, b, c, d = y[open_], f[open_], near[open_], u[open_]
        closed[open_] = (loss.derivative(a, b - c) <= d) & (loss.derivative(a, b + c) >= d)
        open_ = open_[~closed[open_]]
    return np.where(excess != 0, excess * near, 0.0), closed


def invert_monotone(loss: Loss, y: Array, u: Array, f: Array, active: Array) -> tuple[Array, Array]:
    """Scores with ℓ'(y, f) = u, by Newton steps that fall back to bisection; where not active, f.

    The second array bounds |u − ℓ'(y, f)| times the distance from f to the solution: what the concave
    function u·f − ℓ(y, f) can still gain. It is infinite where no solution was enclosed.
    """
    low, high = np.full_like(f, -np.inf), np.full_like(f, np.inf)
    step = np.ones_like(f)
    with np.errstate(all="ignore"):
        for _ in range(200):
            excess = np.where(active, loss.derivative(y, f) - u, 0.0)
            low, high = np.where(excess <= 0, f, low), np.where(excess >= 0, f, high)
            newton = f - excess / loss.second_derivative(y, f)
            # Without a bracket on one side the trial doubles its way outwards; with one, it halves the bracket.
            outwards = np.where(excess < 0, f + step, f - step)
            bracketed = np.isfinite(low) & np.isfinite(high)
            inside = np.isfinite(newton) & (newton > low) & (newton < high)
            inside &= bracketed | (np.abs(newton - f) <= step)
            fallback = np.where(bracketed, 0.5 * (low + high), outwards)
            step = np.where(bracketed | inside, step, 2.0 * step)
            new = np.where(excess == 0, f, np.where(inside, newton, fallback))
            moved = np.abs(new - f) > 4e-16 * np.maximum(np.abs(new), 1e-300)
            f = np.where(active, new, f)
            if not (moved & active).any():
                break
        # A Newton iteration can converge from one side and leave the other end of the bracket far away:
        # twice the last step, if the slopes confirm it, closes the bracket.
        excess = np.abs(loss.derivative(y, f) - u)
        slack, closed = _enclosed(loss, y, u, f, excess, loss.second_derivative(y, f))
        slack = np.where(closed, slack, np.where(excess != 0, excess * np.maximum(high - f, f - low), 0.0))
        slack = np.where(active, slack, 0.0)
    return f, np.where(np.isnan(slack), np.inf, slack)


def _limit(loss: Loss, y: Array, u: Array, side: Array) -> Array:
    """The supremum of u·f − ℓ(y, f) where u is the slope of the loss at infinity on the given side.

    The gain rises towards infinity; it is followed on f = ±1, ±2, ±4, … until it rises no more, or, when it
    does not settle before rounding hides it, is taken to be infinite.
    """
    best, settled = np.full(u.shape, -np.inf), np.zeros(u.shape, dtype=bool)
    with np.errstate(all="ignore"):
        for k in range(50):
            f = side * 2.0**k
            gain = u * f - loss.value(y, f)
            rounding = 1e-15 * (np.abs(u * f) + np.abs(gain))
            flat = (np.abs(loss.derivative(y, f) - u) * np.abs(f) <= rounding) & (gain <= best + rounding)
            best = np.where(settled, best, np.fmax(best, gain))
            settled |= flat
            if settled.all():
                break
    return np.where(settled, best, np.inf)


def constant_by_slopes(slope: Callable[[float], float], bend: Callable[[float], float] | None) -> float:
    """The best constant score from its mean derivative, which is non-decreasing, and its mean curvature, if there is one."""

    def rises(c: float) -> bool:
        with np.errstate(all="ignore"):
            at = slope(c)
        # Overflows of both signs cancel to NaN: come back towards zero.
        return c > 0 if np.isnan(at) else at > 0

    if (
        bend is not None
    ):  # a few Newton steps find it, if they settle between two neighbours with slopes of opposite sign
        c = 0.0
        for _ in range(25):
            with np.errstate(all="ignore"):
                step = float(np.divide(slope(c), bend(c)))
            if not np.isfinite(step):
                break
            c -= step
            if abs(step) <= 1e-15 * abs(c):
                near = 4e-15 * max(abs(c), 1e-300)
                if not rises(c - near) and rises(c + near):
                    return c
                break
    # The magnitude of the answer is unknown, so the bisection is by magnitude: 64 steps cover all floating
    # point numbers, because as integers they are in the same order.
    low, high = _order(-FAR), _order(FAR)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rises(_number(middle)) else (middle, high)
    return _number(low)


def finite_means(means: Callable[[Array], Array], f: Array) -> Array:
    """The means of scores, and the largest number for scores whose mean is beyond all of them: a mean is a number.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.evaluation.losses.base import finite_means
    >>> finite_means(np.exp, np.array([0.0, 1e4]))
    array([1.00000000e+000, 1.79769313e+308])
    """
    with np.errstate(over="ignore"):
        found = np.asarray(means(f))
    return np.minimum(found, np.finfo(found.dtype).max)


def _order(x: float) -> int:
    bits = int(np.float64(abs(x)).view(np.int64))
    return bits if x >= 0 else -bits


def _number(order: int) -> float:
    size = float(np.int64(abs(order)).view(np.float64))
    return size if order >= 0 else -size


def kernel_form(loss: Loss) -> tuple[Any, ...]:
    """The name of a loss in the native kernels and its parameters there; empty where it has none.

    The class itself must say so: a subclass may change the formula, and then runs in NumPy.
    """
    name, *parameters = vars(type(loss)).get("kernel") or ("",)
    return (name, *(float(getattr(loss, parameter)) for parameter in parameters)) if name else ()
