"""The certificate: how far a fitted model is from the best possible one, and the algebra of such evidence.

worst of several        one-against-the-rest fits are as good as the worst of them
total of several        independent objectives add up, and so do their bounds
withdrawn               the numbers stand, the claim does not: an infimum that nothing attains
in another unit         the objective of a rescaled target
judged                  the numbers stand, another tolerance decides whether they will do
absent                  a method that optimizes nothing as a whole says so, with the objective it reached
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Certificate"]

CONTRADICTION = 1e-6  # relative: a bound above the objective by more is no rounding
EVEN = 1e-15  # relative: numbers so near each other are one


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
    claim : str
        What is the best of what, where that is less than the whole fit: ``"best pruning of this tree"``. Empty when
        the evidence is about the fit as a whole.

    Notes
    -----
    A certificate is a truth value: ``if model.certificate_:`` asks whether it is certified. Numbers that are not finite
    prove nothing, and neither does a bound above the objective it bounds.

    Examples
    --------
    >>> from certifit import Certificate
    >>> c = Certificate("duality gap", objective=2.0, bound=2.0 - 3.1e-7, scale=1.0, tol=1e-6, iterations=12,
    ...                 seconds=0.08)
    >>> print(c)
    Certified: within 3.1e-07 of the optimum, relative; 12 iterations, 0.08 s
    >>> bool(c), bool(c.withdrawn("No finite optimum exists."))
    (True, False)
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
    claim: str = ""

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
        claim: str = "",
    ) -> None:
        gap = objective - bound
        contradiction = -gap > max(tol, CONTRADICTION) * max(abs(scale), abs(objective))
        if gap < 0.0 and not contradiction:
            # Rounding put the bound above its objective: it may be off by as much to the other side.
            gap, bound = -gap, objective + gap
        if gap <= EVEN * abs(objective):
            # A bound above its objective by more than rounding contradicts itself, and so proves nothing.
            gap, relative = 0.0, math.nan if contradiction else 0.0
        elif scale > 0.0:
            relative = gap / scale
        else:  # the best constant is already perfect: any excess is infinitely worse, relatively
            relative = math.inf if gap == gap else math.nan
        values = {
            "kind": kind,
            "objective": float(objective),
            "bound": float(bound),
            "gap": float(gap),
            "relative_gap": float(relative),
            "certified": bool(math.isfinite(objective) and relative <= tol),
            "iterations": int(iterations),
            "seconds": float(seconds),
            "note": note,
            "claim": claim,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)  # the dataclass is frozen

    def __bool__(self) -> bool:
        return self.certified

    @staticmethod
    def exact(
        objective: float,
        note: str,
        *,
        kind: str = "closed form",
        iterations: int = 1,
        seconds: float = 0.0,
        claim: str = "",
    ) -> Certificate:
        """Of a closed form, an enumeration, a witness: the objective is the least one by what was done itself."""
        return Certificate(
            kind,
            objective=objective,
            bound=objective,
            scale=1.0,
            tol=0.0,
            iterations=iterations,
            seconds=seconds,
            note=note,
            claim=claim,
        )

    @staticmethod
    def of(
        found: Any,
        objective: float,
        *,
        scale: float,
        tol: float,
        seconds: float,
        kind: str = "duality gap",
        note: str = "",
    ) -> Certificate:
        """Of an objective that is never negative, at a value that was reached, with the bound of a solver."""
        return Certificate(
            kind,
            objective=objective,
            bound=max(found.bound, 0.0),
            scale=scale,
            tol=tol,
            iterations=found.iterations,
            seconds=seconds,
            note=note,
        )

    @staticmethod
    def absent(
        objective: float,
        note: str,
        *,
        scale: float = 1.0,
        bound: float = 0.0,
        iterations: int = 0,
        seconds: float = 0.0,
    ) -> Certificate:
        """No certificate at all, for a method that optimizes nothing as a whole: the objective it reached, and why."""
        plain = Certificate(
            "none", objective=objective, bound=bound, scale=scale, tol=-1.0, iterations=iterations, seconds=seconds
        )
        return plain._with(certified=False, note=note)

    @staticmethod
    def worst(certificates: Sequence[Certificate], note: str = "") -> Certificate:
        """The certificate of fits that all have to be good: that of the worst one, with the work of all."""
        if len(certificates) == 1:
            return certificates[0]
        worst = max(
            certificates,
            key=lambda c: (not c.certified, c.relative_gap if c.relative_gap == c.relative_gap else math.inf),
        )
        return worst._with(
            iterations=sum(c.iterations for c in certificates),
            seconds=certificates[-1].seconds,
            note=note or f"The worst of {len(certificates)} fits.",
        )

    @staticmethod
    def total(certificates: Sequence[Certificate], *, seconds: float | None = None) -> Certificate:
        """The certificate of the sum of independent objectives: certified when every part is."""
        if len(certificates) == 1 and seconds is None:
            return certificates[0]
        certified = all(c.certified for c in certificates)
        uncertain = sum(not c.certified for c in certificates)
        notes = [f"{uncertain} of {len(certificates)} parts are not certified."] if uncertain else []
        notes += list(dict.fromkeys(c.note for c in certificates if c.note))
        kinds = {c.kind for c in certificates}
        joined = Certificate(
            kinds.pop() if len(kinds) == 1 else "none" if "none" in kinds else "sum of parts",
            objective=sum(c.objective for c in certificates),
            bound=sum(c.bound for c in certificates),
            scale=sum(c.gap / c.relative_gap for c in certificates if 0 < c.relative_gap < math.inf),
            tol=math.inf,
            iterations=sum(c.iterations for c in certificates),
            seconds=max(c.seconds for c in certificates) if seconds is None else seconds,
            note=" ".join(notes),
        )
        return joined if certified else joined._with(certified=False)

    def withdrawn(self, note: str, *, kind: str | None = None) -> Certificate:
        """The same numbers without the claim: zero distance from an infimum that nothing attains is not an optimum."""
        return self._with(certified=False, note=note, relative_gap=math.inf, kind=self.kind if kind is None else kind)

    def judged(self, tol: float) -> Certificate:
        """The same evidence judged by another tolerance of the relative gap."""
        certified = bool(math.isfinite(self.objective) and self.relative_gap <= tol)
        return self if certified == self.certified else self._with(certified=certified)

    def about(self, claim: str) -> Certificate:
        """The same evidence for what it is about: the best of a part of all models."""
        return self._with(claim=claim)

    def rescaled(self, factor: float) -> Certificate:
        """The same evidence with the objective measured in another unit, as far as that unit can be written down."""
        objective = self.objective * factor
        if math.isfinite(self.objective) and not math.isfinite(objective):
            beyond = self._with(objective=objective, bound=-math.inf, gap=math.inf)
            return beyond.withdrawn(f"In the units of y the objective is beyond double precision. {self.note}".strip())
        return self._with(objective=objective, bound=self.bound * factor, gap=self.gap * factor)

    def _with(self, **changes: Any) -> Certificate:
        copy = object.__new__(Certificate)
        for name, value in {**asdict(self), **changes}.items():
            object.__setattr__(copy, name, value)
        return copy

    def as_dict(self) -> dict[str, Any]:
        """The fields as a plain dictionary, for reports and JSON."""
        return asdict(self)

    def __str__(self) -> str:
        work = f"{self.iterations} iteration{'' if self.iterations == 1 else 's'}, {self.seconds:.2g} s"
        note = f" {self.note}" if self.note else ""
        if self.certified:
            what = f", {self.claim}" if self.claim else ""
            distance = f"within {self.relative_gap:.1e} of the optimum, relative"
            return f"Certified{what}: {distance}; {work}{'.' + note if note else ''}"
        if self.kind == "none":
            return f"No certificate: nothing is claimed about the best possible fit; {work}.{note}"
        if math.isfinite(self.relative_gap):
            return f"Not certified: at most {self.relative_gap:.1e} from the optimum, relative; {work}.{note}"
        return f"Not certified: no bound on the distance from the optimum; {work}.{note}"
