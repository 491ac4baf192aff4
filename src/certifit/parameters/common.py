"""The parameters that mean the same on every estimator that has them; ``TOL.but(1e-4)`` is one with another default."""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.parameters.declared import Declared, Fitted, Parameter
from certifit.parameters.domains import Any_, Either, Flag, Folds, Integer, Nothing, Real, Reals, Seed, Threads

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
    "ChosenAlpha",
    "OfColumns",
    "Stopped",
]

ALPHA = Parameter(1.0, Real(0), "Strength of the penalty.")
L1_RATIO = Parameter(0.5, Real(0, 1), 'Share of the absolute value when ``penalty="elasticnet"``.')
ALPHAS = Parameter(None, Either(Reals(0), Real(0), Nothing()), "The alphas themselves.", kind="array or None")
FIT_INTERCEPT = Parameter(True, Flag(), "Whether to fit the unpenalized intercept b.")
TOL = Parameter(1e-6, Real(0, infinite=True), "Wanted relative gap of the certificate.")
MAX_ITER = Parameter(1000, Integer(1), "Most iterations.")
CV = Parameter(
    5,
    Folds(),
    "An integer deals distinct rows into folds by their content, so that copies of a row share a fold and weights act as "
    "repetitions; anything else is scikit-learn's.",
)
ONE_STANDARD_ERROR = Parameter(
    False, Flag(), "Take the simplest model whose error is within one standard error of the least one."
)
CLASS_WEIGHT = Parameter(
    None,
    Any_(
        'dict, "balanced" or None',
        wrong=("no such name", 3, {0: -1.0, 1: 1.0}, {0: np.nan, 1: 1.0}, {0: "a", 1: 1.0}, {7: 1.0}),
    ),
    'Factor of the weights of each class; "balanced" makes all classes weigh the same.',
)
N_JOBS = Parameter(
    None,
    Threads(),
    "Threads of the native kernels; None takes what the process is granted, -1 all. The result does not depend on it.",
)
VERBOSE = Parameter(0, Either(Integer(0), Flag()), "1 shows a progress bar.", kind="int")
RANDOM_STATE = Parameter(None, Seed(), "Seed of what is drawn at random.")
SHUFFLE = Parameter(True, Flag(), "Whether each epoch visits the rows in a new random order.")
MAX_EPOCHS = Parameter(1000, Integer(1), "Most passes over the rows.", was="max_epochs")
VALIDATION_FRACTION = Parameter(
    0.1,
    Real(0, 1, open_low=True, open_high=True),
    "Share of the rows set aside; equal rows are on the same side.",
)
N_ESTIMATORS = Parameter(100, Integer(1), "Number of members.")
LEARNING_RATE = Parameter(1.0, Real(0, open_low=True), "Factor of every term.")
WARM_START = Parameter(False, Flag(), "Whether `fit` goes on from the last fit.")


class OfColumns(Declared):
    """What is known of the columns after a fit, for estimators whose only other attributes are their own."""

    n_features_in_: int = Fitted("int", "Number of columns.")
    feature_names_in_: Array = Fitted(
        "array of shape (n_features,)", "Names of the columns, if X has names that are all strings."
    )


class ChosenAlpha(Declared):
    """What is known of alpha after one of several was chosen."""

    alpha_: float = Fitted("float", "The chosen one of `alphas_`.")
    alphas_: Array = Fitted("array of shape (n_alphas,)", "Those that were tried.")


class Stopped(Declared, kw_only=True):
    """What says when a solver stops, on how many threads it runs and whether it is watched."""

    tol: float = TOL
    max_iter: int = MAX_ITER
    n_jobs: int | None = N_JOBS
    verbose: int = VERBOSE
