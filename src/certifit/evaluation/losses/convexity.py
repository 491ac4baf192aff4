"""Whether a loss is convex: what its class declares, and what its numbers say.

A lower bound of the objective rests on one inequality for each row: the loss lies nowhere below its tangent at the score f,

    ℓ(y, t) ≥ ℓ(y, f) + ℓ'(y, f)·(t − f)        for every t,

which holds for a convex loss whose derivative is that of its value. The losses of this package are proven so; one of the user's
own is taken at its word (``convex = True`` in its class) and then held to it: at the scores of the fit, near them and far away,
and between them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.evaluation.losses.base import Loss

__all__ = ["contradiction", "declares_convexity", "doubt", "is_own"]

FORMULA = (
    "value",
    "derivative",
    "second_derivative",
    "slopes",
    "hinge_terms",
    "conjugate",
    "dual_domain",
    "into_domain",
    "fused",
    "fused_dual",
)
ROWS = 1024  # of the fit that are looked at
STEPS = np.concatenate([np.geomspace(1e-6, 1e3, 19), [0.25, 0.5, 0.75, 1.5, 2.5]])  # in units of the spread of scores
LINE = 129  # scores along which the slopes of a few rows are followed
ROUNDING = 1e-9  # what an inequality may miss, relative to its terms


def is_own(loss: Loss) -> bool:
    """Whether the formula of the loss was written outside this package."""
    for cls in type(loss).__mro__:
        if any(name in vars(cls) for name in FORMULA):
            return cls.__module__.partition(".")[0] != "certifit"
    return True


def declares_convexity(loss: Loss) -> bool:
    """Whether the class that wrote the formula, or one below it, says ``convex = True``.

    A subclass that changes the formula of a convex loss does not inherit the word of the loss it changed.

    Examples
    --------
    >>> from certifit.losses import Squared
    >>> class Bumpy(Squared):
    ...     def value(self, y, f):
    ...         return super().value(y, f) + 1.0 - np.cos(3.0 * (f - y))
    >>> declares_convexity(Squared()), declares_convexity(Bumpy())
    (True, False)
    """
    if "convex" in vars(loss):
        return bool(loss.convex)
    for cls in type(loss).__mro__:
        if "convex" in vars(cls):
            return bool(loss.convex)
        if any(name in vars(cls) for name in FORMULA):
            return False
    return False


def doubt(loss: Loss, y: Array, f: Array) -> str:
    """Why no bound is claimed for a fit with the scores f; empty where there is no reason to doubt."""
    if not declares_convexity(loss):
        return loss.unproven or (
            f"{type(loss).__name__} does not declare its convexity, without which no bound holds: write `convex = True` in the "
            "class if it is convex in f (certifit.losses.check tells what speaks against it)."
        )
    if not is_own(loss):
        return ""
    found = contradiction(loss, y, f)
    return f"{type(loss).__name__} declares that it is convex, but {found}." if found else ""


def contradiction(loss: Loss, y: Array, f: Array) -> str:
    """What in the numbers of a loss contradicts its convexity, at the scores f and around them; empty if nothing does.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Squared
    >>> class Bumpy(Squared):
    ...     convex = True
    ...     def value(self, y, f):
    ...         return super().value(y, f) + 3.0 * (1.0 - np.cos(3.0 * (f - y)))
    ...     def derivative(self, y, f):
    ...         return super().derivative(y, f) + 9.0 * np.sin(3.0 * (f - y))
    ...     def second_derivative(self, y, f):
    ...         return 1.0 + 27.0 * np.cos(3.0 * (f - y))
    >>> contradiction(Squared(), np.zeros(3), np.arange(3.0))
    ''
    >>> contradiction(Bumpy(), np.zeros(3), np.arange(3.0))
    'its second derivative is negative: -25.7 at y = 0, f = 1'
    """
    rows = _some(y.shape[0], ROWS)
    y, f = y[rows], f[rows]
    with np.errstate(all="ignore"):
        spread = float(np.ptp(f)) + (0.0 if loss.task == "multiclass" else float(np.std(y)))
        spread = spread if np.isfinite(spread) and spread > 0 else 1.0
        looks = (_terms, _tangents, _line, _conjugates)
        return _at(loss, y, f) or next((found for look in looks if (found := look(loss, y, f, spread))), "")


def _some(n: int, most: int) -> Array:
    """Rows spread evenly over all of them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))


def _at(loss: Loss, y: Array, f: Array) -> str:
    """The scores of the fit themselves."""
    value = loss.value(y, f)
    if not np.isfinite(value).all():
        return f"its value is {_worst(y, f, value, ~np.isfinite(value))}"
    if (value < -ROUNDING).any():
        return f"its value is below zero: {_worst(y, f, value, value < -ROUNDING)}"
    if not loss.smooth or loss.coupled:
        return ""
    bend = loss.second_derivative(y, f)
    size = float(np.abs(bend).max(initial=0.0))
    if (bend < -ROUNDING * size).any():
        return f"its second derivative is negative: {_worst(y, f, bend, bend < -ROUNDING * size)}"
    return ""


def _terms(loss: Loss, y: Array, f: Array, spread: float) -> str:
    """A piecewise linear loss is solved by its terms: they must be the loss."""
    terms = None if loss.coupled or loss.smooth else loss.hinge_terms(y)
    if terms is None:
        return ""
    for step in (0.0, spread, -spread):
        t = f + step
        above = np.where(np.asarray(terms.slope_high) > 0, np.maximum(t - terms.upper, 0.0), 0.0)
        below = np.where(np.asarray(terms.slope_low) > 0, np.maximum(terms.lower - t, 0.0), 0.0)
        told, value = terms.slope_high * above + terms.slope_low * below, loss.value(y, t)
        wrong = np.abs(told - value) > ROUNDING * (np.abs(told) + np.abs(value) + spread)
        if wrong.any():
            return f"its value is not what its hinge_terms say: {_worst(y, t, value, wrong)}"
    return ""


def _tangents(loss: Loss, y: Array, f: Array, spread: float) -> str:
    """No value below the tangent at the score of a row, near it and far from it."""
    value, slope = loss.value(y, f), loss.derivative(y, f)
    for way in _directions(loss, f):
        for step in STEPS:
            move = step * spread * way
            there = loss.value(y, f + move)
            rise = (slope * move).sum(axis=-1) if loss.coupled else slope * move
            terms = np.abs(value) + np.abs(there) + np.abs(rise)
            below = there - value - rise < -ROUNDING * (terms + 1e-3 * np.abs(value).mean())
            if below.any():
                return (
                    f"its value falls below its tangent, or its derivative is not that of its value: at {step * spread:.3g} "
                    f"from the score of a row {_worst(y, f, there, below)}"
                )
    return ""


def _directions(loss: Loss, f: Array) -> list[Any]:
    """Both ways; for K scores that meet, along each of them and along a few mixtures."""
    if not loss.coupled:
        return [1.0, -1.0]
    mixed = np.random.default_rng(0).normal(size=(4, f.shape[1]))
    return [sign * way for way in (*np.eye(f.shape[1])[:8], *mixed) for sign in (1.0, -1.0)]


def _line(loss: Loss, y: Array, f: Array, spread: float) -> str:
    """Slopes that never fall and values that follow them, along the scores that the fit has seen, for a few targets."""
    if loss.coupled:
        return ""
    if y.ndim == 2:  # several targets a row: each column is a loss of its own
        return next((found for k in range(y.shape[1]) if (found := _line(loss, y[:, k], f[:, k], spread))), "")
    few = y[_some(y.shape[0], 32)]
    line = np.linspace(float(f.min()) - spread, float(f.max()) + spread, LINE)
    targets, scores = np.repeat(few, LINE), np.tile(line, few.shape[0])
    value = loss.value(targets, scores).reshape(-1, LINE)
    slope = loss.derivative(targets, scores).reshape(-1, LINE)
    if not (np.isfinite(value).all() and np.isfinite(slope).all()):
        return ""  # far from the scores of the fit a loss may overflow
    size = np.abs(slope).max(axis=1, keepdims=True)
    falls = np.diff(slope, axis=1) < -ROUNDING * size
    if falls.any():
        i, k = np.argwhere(falls)[0]
        return (
            f"its slope falls from {slope[i, k]:.3g} at f = {line[k]:.3g} to {slope[i, k + 1]:.3g} at f = {line[k + 1]:.3g} "
            f"(y = {few[i]:.3g})"
        )
    rise, wide = np.diff(value, axis=1), float(line[1] - line[0])
    slack = ROUNDING * (np.abs(value).max(axis=1, keepdims=True) + size * wide)
    off = (rise < slope[:, :-1] * wide - slack) | (rise > slope[:, 1:] * wide + slack)
    if off.any():
        i, k = np.argwhere(off)[0]
        return (
            f"its value rises by {rise[i, k]:.3g} from f = {line[k]:.3g} to {line[k + 1]:.3g} (y = {few[i]:.3g}), where its "
            f"derivative says {slope[i, k] * wide:.3g} to {slope[i, k + 1] * wide:.3g}"
        )
    return ""


def _conjugates(loss: Loss, y: Array, f: Array, spread: float) -> str:
    """A conjugate of one's own is at least what Fenchel and Young say: ℓ*(y, u) ≥ u·f − ℓ(y, f) for the slope u at f."""
    if type(loss).conjugate is Loss.conjugate or loss.coupled:
        return ""
    for step in (0.0, 0.3 * spread, -0.3 * spread):
        t = f + step
        u, value = loss.derivative(y, t), loss.value(y, t)
        told, least = loss.conjugate(y, u, start=t), u * t - value
        terms = np.abs(told) + np.abs(u * t) + np.abs(value)
        below = told < least - ROUNDING * (terms + 1e-3 * terms[np.isfinite(terms)].mean())
        if below.any():
            return f"its conjugate is too small: {_worst(y, u, told, below).replace('f =', 'u =')}"
    return ""


def _worst(y: Array, f: Array, shown: Array, wrong: Array) -> str:
    """The first place in words."""
    place = tuple(np.argwhere(wrong)[0])
    row = place[0]
    target = y[place] if y.ndim == shown.ndim else y[row]
    score = f[place] if f.ndim == shown.ndim else f[row]
    return f"{shown[place]:.3g} at y = {_short(target)}, f = {_short(score)}"


def _short(x: Any) -> str:
    return f"{float(x):.3g}" if np.ndim(x) == 0 else np.array2string(np.asarray(x), precision=3, threshold=5)
