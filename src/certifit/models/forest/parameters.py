"""The parameters that forests and bagging share."""

from __future__ import annotations

from certifit.parameters import N_ESTIMATORS, RANDOM_STATE, Either, Flag, Integer, Parameter, Real

__all__ = ["BOOTSTRAP", "DRAWS", "OOB_SCORE", "SHARE", "TREES"]

SHARE = Either(Integer(1), Real(0, 1, open_low=True))
"""A number of rows or columns, or a share of them."""
TREES = N_ESTIMATORS.but(text="Number of trees.")
BOOTSTRAP = Parameter(True, Flag(), "Whether rows are drawn with replacement.")
OOB_SCORE = Parameter(False, Flag(), "Whether to compute the out-of-bag estimates.")
DRAWS = RANDOM_STATE.but(text="Seed of all draws.")
