"""Fits of many rows, and of many more columns than rows: solvers for such data meet what is wrong with small data too.

Sizes end where plain data of that size is fitted, and asked about, in a few seconds.
"""

from __future__ import annotations

import numpy as np
from tests.contract.discovery import ESTIMATORS
from tests.fuzz.fits import drawn
from tests.fuzz.mutation import chosen

__all__ = ["code"]

TALL = ([700, 2_000, 5_000, 20_000], [1, 2, 5, 12])
SQUARE = ([500], [1, 2, 5, 12])
WIDE = ([2, 5, 20, 60], [500, 1_000, 5_000])
CUBE = ([2, 5, 20, 60], [500])
SQUARES = ("kernel", "hierarchy", "embedding", "dissimilarity", "local", "medoids")
"""Modules of methods whose time or memory grows with the square of the rows, or faster."""
CUBES = ("subset", "bayes.regression", "discriminant", "polynomial", "elimination", "density")
"""Of methods that need eigenvalues of a matrix as large as the columns are many, products of all columns, or a fit for each."""


def code(rng: np.random.Generator) -> str:
    """A case as of `fits`, tall or wide."""
    cls = chosen(rng, ESTIMATORS)
    tall = SQUARE if any(word in cls.__module__ for word in SQUARES) else TALL
    wide = CUBE if any(word in cls.__module__ for word in CUBES) else WIDE
    rows, columns = chosen(rng, [tall, wide])
    return drawn(rng, cls, chosen(rng, rows), chosen(rng, columns))
