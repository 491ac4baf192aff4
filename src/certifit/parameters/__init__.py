"""A parameter declared once: name, type, default, domain and text in one line of its class.

    class Ridge(Declared, BaseEstimator):
        '''Least squares with an L2 penalty.'''

        alpha: float = Parameter(1.0, Real(0), "Strength of the penalty.")
        fit_intercept: bool = FIT_INTERCEPT
        tol: float = TOL.but(1e-4)

        coef_: Array = Fitted("array of shape (n_features,)", "Coefficients.")

From the declaration come the constructor (with a signature that scikit-learn, editors and type checkers read), the
"Parameters" and "Attributes" sections of the docstring, the check at the start of `fit` (the gate of `certifit.data.gate`
calls `check_parameters`), and the values that the contract tests try and must see refused.

`declared` is the mechanism, `domains` the values a parameter may have, `common` the parameters that mean the same everywhere.
"""

from __future__ import annotations

from certifit.parameters.common import (
    ALPHA,
    ALPHAS,
    CLASS_WEIGHT,
    CV,
    FIT_INTERCEPT,
    L1_RATIO,
    LEARNING_RATE,
    MAX_EPOCHS,
    MAX_ITER,
    N_ESTIMATORS,
    N_JOBS,
    ONE_STANDARD_ERROR,
    RANDOM_STATE,
    SHUFFLE,
    TOL,
    VALIDATION_FRACTION,
    VERBOSE,
    WARM_START,
    OfColumns,
    Stopped,
)
from certifit.parameters.declared import Declared, Fitted, Parameter, check_parameters, parameters_of
from certifit.parameters.domains import (
    Any_,
    Choice,
    Domain,
    Either,
    Flag,
    Folds,
    Function,
    Given,
    Integer,
    Learner,
    Named,
    Nothing,
    Real,
    Reals,
    Seed,
    Threads,
)

__all__ = [
    "ALPHA",
    "ALPHAS",
    "CLASS_WEIGHT",
    "CV",
    "FIT_INTERCEPT",
    "L1_RATIO",
    "LEARNING_RATE",
    "MAX_EPOCHS",
    "MAX_ITER",
    "N_ESTIMATORS",
    "N_JOBS",
    "ONE_STANDARD_ERROR",
    "RANDOM_STATE",
    "SHUFFLE",
    "TOL",
    "VALIDATION_FRACTION",
    "VERBOSE",
    "WARM_START",
    "Any_",
    "Choice",
    "Declared",
    "Domain",
    "Either",
    "Fitted",
    "Flag",
    "Folds",
    "Function",
    "Given",
    "Integer",
    "Learner",
    "Named",
    "Nothing",
    "OfColumns",
    "Parameter",
    "Real",
    "Reals",
    "Seed",
    "Stopped",
    "Threads",
    "check_parameters",
    "parameters_of",
]
