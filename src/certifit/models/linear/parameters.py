"""The parameters that linear models share beyond those of ``certifit.parameters``."""

from __future__ import annotations

from typing import Any

from certifit.evaluation.losses import ALIASES, LOSSES, Loss
from certifit.evaluation.penalties import PENALTIES, Constraint, Penalty
from certifit.parameters import (
    ALPHAS,
    CV,
    FIT_INTERCEPT,
    ONE_STANDARD_ERROR,
    TOL,
    Any_,
    ChosenAlpha,
    Declared,
    Either,
    Flag,
    Integer,
    Named,
    Nothing,
    Parameter,
    Real,
    Stopped,
)
from certifit.parameters.methods import weights

__all__ = [
    "CONSTRAINT",
    "EPS",
    "LOSS",
    "N_ALPHAS",
    "OF_A_MAXIMUM",
    "PENALTY",
    "POSITIVE",
    "SOLVER",
    "ChosenByFolds",
    "Grid",
    "OnFolds",
]

LOSS = Parameter(
    "squared",
    Named("certifit.losses.Loss", Loss, (*LOSSES, *ALIASES)),
    "A name from ``certifit.losses.LOSSES``, or scikit-learn's for it, or a loss object, also one of your own.",
)
PENALTY = Parameter(
    "l2",
    Either(Nothing(), Named("certifit.penalties.Penalty", Penalty, PENALTIES)),
    "A name from ``certifit.penalties.PENALTIES`` or a penalty object; None is no penalty.",
    kind="str, Penalty or None",
)
CONSTRAINT = Parameter(
    None,
    Either(
        Nothing(), Named("Box, NonNegative, L1Ball or L2Ball from certifit.penalties", Constraint, ("non_negative",))
    ),
    "``Box``, ``NonNegative``, ``L1Ball`` or ``L2Ball`` from ``certifit.penalties``.",
    kind='Constraint, "non_negative" or None',
)
POSITIVE = Parameter(False, Flag(), "Whether coefficients must be non-negative.")
# Which solvers there are depends on loss, penalty and constraint: the dispatcher judges, before any data is read.
SOLVER = Parameter(
    "auto",
    Any_("str or GradientDescent", wrong=("no such solver", 3, None)),
    "A name from ``certifit.optimization.objective.dispatch.SOLVERS``; the choice made is in `solver_`.",
)
N_ALPHAS = Parameter(100, Integer(1), "Length of the path.")
EPS = Parameter(1e-3, Real(0, 1, open_low=True), "Smallest alpha divided by the largest.")
OF_A_MAXIMUM = weights("A weight of 0 drops a row; a maximum does not count repetitions.")


class Grid(Declared, kw_only=True):
    """The alphas that are tried, and the fits of each."""

    n_alphas: int = N_ALPHAS
    eps: float = EPS
    alphas: Any = ALPHAS
    fit_intercept: bool = FIT_INTERCEPT


class OnFolds(Declared, kw_only=True):
    """The folds that judge them."""

    cv: Any = CV


class ChosenByFolds(ChosenAlpha, Stopped, kw_only=True):
    """When each of many fits stops, and which of the models that are as good as the best is taken."""

    tol: float = TOL.but(text="Wanted relative gap of every fit.")
    one_standard_error: bool = ONE_STANDARD_ERROR
