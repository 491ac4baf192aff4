"""Penalties and constraints: one file each family, and one line here to enrol a member everywhere."""

from __future__ import annotations

from typing import Any

from certifit.evaluation.constraints.convex import Box, Constraint, L1Ball, L2Ball, NonNegative
from certifit.evaluation.penalties.base import Penalty, soft_threshold
from certifit.evaluation.penalties.elastic import L1, L2, ElasticNet, NoPenalty
from certifit.evaluation.penalties.power import Lq
from certifit.evaluation.penalties.rows import RowNorms

PENALTIES: dict[str, type[Penalty]] = {penalty.name: penalty for penalty in (NoPenalty, L2, L1, ElasticNet, Lq)}
CONSTRAINTS: dict[str, type[Constraint]] = {
    constraint.name: constraint for constraint in (NonNegative, Box, L1Ball, L2Ball)
}

__all__ = [
    "CONSTRAINTS",
    "PENALTIES",
    "Constraint",
    "Penalty",
    "RowNorms",
    "resolve_constraint",
    "resolve_penalty",
    "soft_threshold",
    *sorted(part.__name__ for part in (*PENALTIES.values(), *CONSTRAINTS.values())),
]


def resolve_penalty(penalty: Any, **options: Any) -> Penalty:
    """A penalty object from a registered name, None (no penalty), or a penalty object."""
    if isinstance(penalty, Penalty):
        return penalty
    name = "none" if penalty is None else penalty
    if isinstance(name, str) and name in PENALTIES:
        return PENALTIES[name](**options)
    names = ", ".join(repr(name) for name in PENALTIES)
    raise ValueError(
        f"penalty must be None, one of {names}, or an instance of certifit.penalties.Penalty; got {penalty!r}."
    )


def resolve_constraint(constraint: Any) -> Constraint | None:
    """A constraint object from None, a name that needs no argument, or a constraint object."""
    if constraint is None or isinstance(constraint, Constraint):
        return constraint
    if constraint == NonNegative.name:
        return NonNegative()
    raise ValueError(
        f"constraint must be None, {NonNegative.name!r}, or an instance of Box, NonNegative, L1Ball or L2Ball from "
        f"certifit.penalties; got {constraint!r}."
    )
