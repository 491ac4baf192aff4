"""The certificate: how far a fitted model is from the best possible one."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Certificate"]


@dataclass(frozen=True)
class Certificate:
    """Evidence about the optimality of a fit.

    Parameters
    ----------
    kind : str
        How the bound was obtained: ``"closed form"``, ``"duality gap"``, ``"linear program"``,
        ``"strong convexity"``, ``"none"``, …
    objective : float
        The value reached: weighted mean loss plus alpha times the penalty.
    bound : float
        A proven lower bound of the optimal value (``-inf`` when none is known).
    gap : float
        ``objective - bound``, never negative: the fit is at most this far above the optimum.
    relative_gap : float
        ``gap`` divided by the objective of the best constant model. `tol` of every estimator is the wanted
        `relative_gap`.
    certified : bool
        Whether `relative_gap` is within the tolerance that was asked for.
    iterations : int
        Iterations of the solver.
    seconds : float
        Wall-clock time of the fit.
    note : str
        What else a reader should know, for example that no finite optimum exists.

    Examples
    --------
    >>> from certifit import Certificate
    >>> c = Certificate("duality gap", objective=2.0, bound=2.0 - 3.1e-7, scale=1.0, tol=1e-6, iterations=12,
    ...                 seconds=0.08)
    >>> print(c)
    Certified: within 3.1e-07 of the optimum, relative; 12 iterations, 0.08 s
    """

    kind: str
    objective: float
    bound: float
    gap: float
    relative_gap: float
    certified: bool
    iterations: int
    seconds: float
    note: str

    def __init__(
        self,
        kind: str,
        *,
        objective: float,
        bound: float,
        scale: float,
        tol: float,
        iterations: int = 0,
        seconds: float = 0.0,
        note: str = "",
    ) -> None:
        gap = max(0.0, objective - bound)
        if gap == 0.0:
            relative = 0.0
        elif scale > 0.0:
            relative = gap / scale
        else:  # the best constant is already perfect: any excess is infinitely worse, relatively
            relative = math.inf
        values = {
            "kind": kind,
            "objective": float(objective),
            "bound": float(bound),
            "gap": float(gap),
            "relative_gap": float(relative),
            "certified": bool(relative <= tol),
            "iterations": int(iterations),
            "seconds": float(seconds),
            "note": note,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)  # the dataclass is frozen

    def rescaled(self, factor: float) -> Certificate:
        """The same evidence with the objective measured in another unit."""
        copy = object.__new__(Certificate)
        for name, value in asdict(self).items():
            scaled = value * factor if name in ("objective", "bound", "gap") else value
            object.__setattr__(copy, name, scaled)
        return copy

    def as_dict(self) -> dict[str, Any]:
        """The fields as a plain dictionary, for reports and JSON."""
        return asdict(self)

    def __str__(self) -> str:
        work = f"{self.iterations} iteration{'' if self.iterations == 1 else 's'}, {self.seconds:.2g} s"
        note = f" {self.note}" if self.note else ""
        if self.certified:
            distance = f"within {self.relative_gap:.1e} of the optimum, relative"
            return f"Certified: {distance}; {work}{'.' + note if note else ''}"
        if math.isfinite(self.relative_gap):
            return f"Not certified: at most {self.relative_gap:.1e} from the optimum, relative; {work}.{note}"
        return f"Not certified: no bound on the distance from the optimum; {work}.{note}"
