"""When a bound may be believed.

A certificate is withheld, with the reason, where the fit itself speaks against it:

- the loss is the user's own and does not declare its convexity, or its numbers at the scores of the fit contradict it;
- the bound lies above the objective that was reached, by more than rounding;
- the coefficients do not satisfy the constraint;
- the fit ended in a minimum that the loss has on any data.
"""

from __future__ import annotations

import numpy as np

from certifit.certificate import Certificate
from certifit.evaluation.losses.convexity import declares_convexity, doubt, is_own
from certifit.optimization.objective.problem import Problem, Solution

__all__ = ["admitted", "is_trusted"]

INFEASIBLE = 1e-6  # relative: what a coefficient may violate its constraint by


def is_trusted(problem: Problem) -> bool:
    """Whether the loss is one of the package, proven convex."""
    return declares_convexity(problem.loss) and not is_own(problem.loss)


def admitted(problem: Problem, solution: Solution, certificate: Certificate) -> Certificate:
    """The certificate, or none with the reason."""
    reason = _infeasible(problem, solution)
    if problem.loss.trivial and not np.any(solution.coef):
        reason = reason or problem.loss.trivial
    if not (reason or is_trusted(problem)):
        with np.errstate(all="ignore"):
            parts = problem.at(solution.coef, solution.intercept, exact=True).parts
        reason = next((found for part in parts if (found := doubt(problem.loss, part.block.y, part.f))), "")
        excess = certificate.bound - certificate.objective
        if not reason and excess > 1e-6 * abs(certificate.objective):
            reason = (
                f"The bound of {type(problem.loss).__name__} exceeds the value that was reached: it cannot be convex."
            )
    if not reason:
        return certificate
    if not (certificate.certified or problem.loss.unproven):  # without a bound no solver knows how far it is
        reason += " The solver stopped short of its own tolerance."
    return Certificate.absent(
        certificate.objective,
        f"{reason} {certificate.note}".strip(),
        scale=problem.scale,
        bound=-np.inf,
        iterations=certificate.iterations,
        seconds=certificate.seconds,
    )


def _infeasible(problem: Problem, solution: Solution) -> str:
    """Why the coefficients are no point of the constraint; each is measured by itself, whatever the others' size."""
    constraint, w = problem.regularizer.constraint, solution.coef
    if constraint is None:
        return ""
    off = np.abs(constraint.project(w) - w)
    if (off <= INFEASIBLE * np.maximum(np.abs(w), np.abs(constraint.project(w)))).all():
        return ""
    j = int(np.argmax(off))
    return f"The coefficient {w.ravel()[j]:.3g} of column {j % w.shape[-1]} violates the constraint {constraint!r}."
