"""Parameters that mean the same on every model of neighbors."""

from __future__ import annotations

import math

from certifit.models.neighbors.metric import NAMES
from certifit.parameters import Choice, Either, Function, Given, Integer, Named, Nothing, OneOf, Parameter, Real
from certifit.representation.kernels.base import Kernel

__all__ = ["ALGORITHM", "LEAF_SIZE", "METRIC", "METRIC_PARAMS", "N_NEIGHBORS", "RADIUS", "WEIGHTS", "P"]

N_NEIGHBORS = Parameter(5, Integer(1), "How many of the nearest rows are asked.")
RADIUS = Parameter(1.0, Real(0, infinite=True), "Distance within which `radius_neighbors` looks.")
WEIGHTS = Parameter(
    "uniform",
    Either(Choice("uniform", "distance"), Nothing(), Function()),
    'What a neighbor counts: all the same ("uniform" or None), the inverse of its distance, or a function from an array of '
    "distances to an array of weights of the same shape.",
)
ALGORITHM = OneOf(
    ("auto", "brute", "kd_tree", "ball_tree"),
    "How neighbors are found, with the same result: blocks of matrix products, or a tree (both names mean the k-d tree); "
    '"auto" takes the tree in few columns.',
)
LEAF_SIZE = Parameter(
    30, Integer(1), "Kept for scikit-learn's sake: leaves have the size that suits the native search."
)
P = Parameter(
    2.0,
    Real(0, math.inf, open_low=True, infinite=True),
    'The power of ``metric="minkowski"``; below 1 it is no metric.',
)
METRIC = Parameter(
    "minkowski",
    Either(Choice("minkowski", *NAMES, "precomputed"), Named("certifit.kernels.Kernel", Kernel), Function()),
    'The distance: a name, a kernel (the distance in its feature space), or a function of two rows. "precomputed" takes '
    'distances in place of X (of a sparse matrix, those that are not stored are infinite); "nan_euclidean" takes missing '
    "values.",
)
METRIC_PARAMS = Parameter(
    None,
    Either(Nothing(), Given("dict", wrong=({"no such name": 1}, [1.0]))),
    'Further arguments of a metric that is a function; weights ``"w"`` of the columns for "minkowski", variances ``"V"`` for '
    '"seuclidean", a covariance ``"V"`` or its inverse ``"VI"`` for "mahalanobis".',
)
