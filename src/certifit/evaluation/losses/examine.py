"""A loss of one's own, examined: what an author wants to know before a fit does.

    ℓ(y, f) ≥ 0 with minimum 0 in f,    ℓ' and ℓ'' its derivatives,    ℓ'' ≥ 0 if it says that it is convex,

elementwise, in floating point, without touching its arguments. `check` tries all of it on targets and scores of ordinary and of
large size and says in plain sentences what it found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.evaluation.losses.base import Loss
from certifit.evaluation.losses.convexity import contradiction, declares_convexity, is_own

__all__ = ["LossReport", "check", "check_loss"]

SCORES = np.concatenate([-np.geomspace(30.0, 0.1, 12), [0.0], np.geomspace(0.1, 30.0, 12)])
TARGETS: dict[str, tuple[Array, ...]] = {
    "regression": (
        np.array([-7.3, -1.0, -0.2, 0.0, 0.4, 1.0, 5.1]),
        np.array([0.0, 0.3, 1.0, 2.0, 7.0]),
        np.array([0.2, 1.0, 3.0, 8.0]),
        np.array([0.1, 0.5, 0.9]),
    ),
    "binary": (np.array([0.0, 1.0]),),
    "multiclass": (np.array([0, 1, 2, 1]),),
}
"""Targets of each task; the first ones that the loss accepts are tried."""


@dataclass(frozen=True)
class LossReport:
    """What `check` found; true when it found nothing.

    Parameters
    ----------
    loss : str
        The loss, as it prints.
    findings : tuple of str
        Plain sentences, each about one fault.
    """

    loss: str
    findings: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        if not self.findings:
            return f"{self.loss}: nothing wrong was found; fits with it will be certified."
        return "\n".join([f"{self.loss}:", *(f"- {finding}" for finding in self.findings)])


def check(loss: Loss, y: Any = None) -> LossReport:
    """Examine a loss of your own.

    Parameters
    ----------
    loss : Loss
        An instance.
    y : array of shape (n,), optional
        Targets to try; by default some that the task of the loss suggests and its `check_target` accepts.

    Returns
    -------
    LossReport
        A truth value with `findings`: wrong shapes and types, derivatives that are not those of the value, a convexity that is
        not declared or not there, a minimum that is not zero, NaN, closed forms that contradict the value.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Loss, check
    >>> class Quartic(Loss):
    ...     convex = True
    ...     def value(self, y, f):
    ...         return (f - y) ** 4
    ...     def derivative(self, y, f):
    ...         return 4 * (f - y) ** 3
    ...     def second_derivative(self, y, f):
    ...         return 3 * (f - y) ** 2
    >>> print(check(Quartic()))
    Quartic():
    - second_derivative is not the slope of derivative: at y = -7.3, f = -30 it is 1.55e+03, and differences give 6.18e+03.
    """
    if not isinstance(loss, Loss):
        raise TypeError(f"loss must be an instance of certifit.losses.Loss; got {loss!r}.")
    try:
        named = repr(loss)
    except Exception as error:  # whatever the author's constructor does is a finding
        return LossReport(
            type(loss).__name__, (f"get_params fails ({error}): keep constructor arguments as attributes.",)
        )
    targets = _targets(loss, y)
    if targets is None:
        return LossReport(named, ("check_target refuses all targets that were tried: give some as y.",))
    target, score = _grid(loss, targets)
    broken = _returns(loss, target, score)
    if broken:  # nothing else can be judged
        return LossReport(named, tuple(broken))
    looks: list[Callable[[Loss, Array, Array], str]] = [
        _derivative,
        _second_derivative,
        _convexity,
        _minimum,
        _rescaled,
    ]
    with np.errstate(all="ignore"):
        return LossReport(named, tuple(found for look in looks if (found := look(loss, target, score))))


def check_loss(loss: Loss, y: Array) -> None:
    """Raise unless the targets are in the domain of the loss, and its methods return what solvers can add up."""
    loss.check_target(y)
    if not is_own(loss):
        return
    few = np.resize(y, (3, *y.shape[1:]))
    scores = np.zeros((3, loss.n_scores(y))) if loss.coupled else np.zeros(few.shape)
    broken = _returns(loss, few, scores, finite=False)
    if broken:
        raise ValueError(f"{type(loss).__name__} cannot be fitted: {broken[0]} certifit.losses.check examines a loss.")


def _targets(loss: Loss, y: Any) -> Array | None:
    if y is None:
        return next((targets for targets in TARGETS[loss.task] if loss.takes(targets)), None)
    given = np.asarray(y)
    loss.check_target(given)
    return given


def _grid(loss: Loss, targets: Array) -> tuple[Array, Array]:
    """Every target with every score; scores of several classes are drawn."""
    if loss.coupled:
        rows = np.resize(targets, (60, *targets.shape[1:]))
        return rows, 3.0 * np.random.default_rng(0).normal(size=(60, loss.n_scores(targets)))
    return np.repeat(targets, SCORES.shape[0]), np.tile(SCORES, targets.shape[0])


def _methods(loss: Loss) -> list[str]:
    return ["value", "derivative", *(["second_derivative"] if loss.smooth else [])]


def _returns(loss: Loss, y: Array, f: Array, *, finite: bool = True) -> list[str]:
    """Shapes, types, finiteness where it is wanted, and arguments left alone."""
    findings = []
    for name in _methods(loss):
        wanted = y.shape[:1] if loss.coupled and name == "value" else f.shape
        before = y.copy(), f.copy()
        try:
            with np.errstate(all="ignore"):
                found = getattr(loss, name)(y, f)
        except Exception as error:  # whatever the author's code raises is a finding
            findings.append(f"{name} raises {type(error).__name__}: {error}.")
            continue
        shape = np.shape(found)
        if shape != wanted:
            what = "a single number" if shape == () else f"an array of shape {shape}"
            findings.append(f"{name} returns {what} for y and f of shape {wanted}: it must work elementwise.")
        elif not isinstance(found, np.ndarray) or found.dtype.kind != "f":
            kind = found.dtype if isinstance(found, np.ndarray) else type(found).__name__
            findings.append(f"{name} returns {kind} instead of an array of floating point numbers.")
        elif finite and not np.isfinite(found).all():
            place = tuple(np.argwhere(~np.isfinite(found))[0])
            findings.append(f"{name} is {found[place]} at y = {y[place[0]]:.3g}, f = {_of(f, place[0])}.")
        if not (np.array_equal(y, before[0]) and np.array_equal(f, before[1])):
            findings.append(f"{name} changes its arguments in place: work on copies.")
            y[...], f[...] = before
    return findings


def _of(f: Array, row: Any) -> str:
    return np.array2string(np.asarray(f[row]), precision=3)


def _slope_of(
    function: Callable[[Array, Array], Array], told: Callable[[Array, Array], Array], y: Array, f: Array
) -> Any:
    """Central differences, the derivative told, and where they disagree although the derivative is steady there."""
    step = 1e-5 * (1.0 + np.abs(f))
    above, below = f + step, f - step
    differences = (function(y, above) - function(y, below)) / (above - below)
    around = np.stack([told(y, below), told(y, f), told(y, above)])
    low, high = around.min(axis=0), around.max(axis=0)  # at a kink, everything between the slopes beside it
    noise = 1e-10 * (np.abs(function(y, above)) + np.abs(function(y, below))) / (above - below)
    slack = 1e-4 * (np.abs(low) + np.abs(high)) + 1e-6 + noise
    return differences, around[1], (differences < low - slack) | (differences > high + slack)


def _told(name: str, of: str, found: Any, y: Array, f: Array) -> str:
    differences, told, wrong = found
    if not wrong.any():
        return ""
    i = int(np.flatnonzero(wrong)[0])
    return (
        f"{name} is not the slope of {of}: at y = {y[i]:.3g}, f = {f[i]:.3g} it is {told[i]:.3g}, and differences give "
        f"{differences[i]:.3g}."
    )


def _derivative(loss: Loss, y: Array, f: Array) -> str:
    if not loss.coupled:
        return _told("derivative", "value", _slope_of(loss.value, loss.derivative, y, f), y, f)
    step, told = 1e-5, loss.derivative(y, f)
    for k in range(f.shape[1]):
        move = step * np.eye(f.shape[1])[k]
        differences = (loss.value(y, f + move) - loss.value(y, f - move)) / (2.0 * step)
        wrong = np.abs(differences - told[:, k]) > 1e-4 * (1.0 + np.abs(told[:, k]))
        if wrong.mean() > 0.1:  # a kink may lie between a few of the scores
            i = int(np.flatnonzero(wrong)[0])
            return (
                f"derivative is not the slope of value: for score {k} of f = {_of(f, i)} it is {told[i, k]:.3g}, and "
                f"differences give {differences[i]:.3g}."
            )
    return ""


def _second_derivative(loss: Loss, y: Array, f: Array) -> str:
    if loss.coupled or not loss.smooth:
        return ""
    return _told("second_derivative", "derivative", _slope_of(loss.derivative, loss.second_derivative, y, f), y, f)


def _convexity(loss: Loss, y: Array, f: Array) -> str:
    found = contradiction(loss, y, f)
    if declares_convexity(loss):
        return f"The class declares that it is convex, but {found}." if found else ""
    if found:
        return f"It is not convex, and fits will have no certificate: {found}."
    return "Convexity is not declared, and fits will have no certificate: write `convex = True` in the class if it is proven."


def _minimum(loss: Loss, y: Array, f: Array) -> str:
    """The least value over f is zero, or approached far away."""
    if loss.coupled:
        return ""
    for target in np.unique(y):
        best = loss.optimal_constant(np.array([target]), np.ones(1))
        scores = np.concatenate([SCORES, [best], -np.geomspace(1e2, 1e8, 13), np.geomspace(1e2, 1e8, 13)])
        scores = np.concatenate([scores, target + np.linspace(-1.0, 1.0, 201)])
        values = loss.value(np.full(scores.shape, target), scores)
        values = values[np.isfinite(values)]
        least, typical = float(values.min(initial=np.inf)), float(np.median(np.abs(values)))
        if least < -1e-9 * (1.0 + typical):
            return f"value is negative, {least:.3g}, for y = {target:.3g}: its minimum over f must be zero."
        if least > 1e-6 * (1.0 + typical):
            return f"The least value over f is {least:.3g} for y = {target:.3g}, not zero: subtract it."
    return ""


def _rescaled(loss: Loss, y: Array, f: Array) -> str:
    """ℓ(y, f) = c·L(y/u, f/u)."""
    found = loss.rescaled(4.0)
    if found is None:
        return ""
    other, factor = found
    value, told = loss.value(y, f), factor * other.value(y / 4.0, f / 4.0)
    wrong = np.abs(told - value) > 1e-9 * (1.0 + np.abs(value))
    if not wrong.any():
        return ""
    i = int(np.flatnonzero(wrong)[0])
    return f"rescaled(4.0) gives {told[i]:.3g} instead of {value[i]:.3g} at y = {y[i]:.3g}, f = {f[i]:.3g}."
