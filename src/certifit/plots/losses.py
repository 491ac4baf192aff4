"""Losses as curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from certifit.axes import axes_of, drawn
from certifit.evaluation.losses import LOSSES, resolve_loss
from certifit.plots.frame import color, framed

__all__ = ["plot_losses"]


@drawn
def plot_losses(losses: Sequence[Any] | None = None, ax: Any = None, *, reach: float = 3.0) -> Any:
    """Losses of classes over the margin y·f, or losses of values over the residual f − y.

    Parameters
    ----------
    losses : sequence of str or Loss, optional
        All of one task; those of two classes by default.
    reach : float, default=3.0
        From minus this to this.

    Examples
    --------
    >>> from certifit.plots import plot_losses
    >>> ax = plot_losses(["hinge", "logistic"])
    >>> ax.get_xlabel(), [line.get_label() for line in ax.lines]
    ('margin y·f', ['hinge', 'logistic'])
    """
    chosen = [name for name, kind in LOSSES.items() if kind.task == "binary"] if losses is None else list(losses)
    found = [resolve_loss(loss) for loss in chosen]
    tasks = {loss.task for loss in found}
    if len(tasks) != 1:
        raise ValueError(f"losses must be of one task to share an axis; got {sorted(tasks)}.")
    binary = tasks == {"binary"}
    at = np.linspace(-reach, reach, 601)
    ax = axes_of(ax)
    for k, (given, loss) in enumerate(zip(chosen, found, strict=True)):
        # A target of 1 is the side +1; a target of values must lie where every loss takes it.
        y = np.ones_like(at)
        values = loss.value(y, at if binary else y + at)
        label = given if isinstance(given, str) else str(loss)
        ax.plot(at, values, color=color(k), ls=("-", "--", ":")[k // 8 % 3], label=label)
    return framed(ax, xlabel="margin y·f" if binary else "residual f − y", ylabel="loss", ylim=(0, reach + 0.5))
