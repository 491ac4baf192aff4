"""From an interior point of a linear program to a vertex next to it, with the vertex's own multipliers.

The atoms of large D = 1/(s/a + v/(h − a)) are those whose kink is met with a multiplier strictly between
its bounds: the basis. Solving for them exactly turns an approximate solution into an exact one; when the
multipliers of the basis lie in [0, h], the gap is rounding only. Bixby and Saltzman (1994), Recovering an
optimal LP basis from an interior point solution, do the same with simplex pivots in between.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, lstsq, qr

from certifit.optimization.interior_point.atoms import Atoms
from certifit.optimization.interior_point.problem import Array

#: a dense factorization of the basis must stay small beside one iteration
LARGEST = 400


#: multipliers that leave their bounds by more than this share are those of another vertex than the optimal one
OUTSIDE = 1e-6


def vertex(atoms: Atoms, z: Array, a: Array, D: Array, *, strict: bool = True) -> tuple[Array, Array] | None:
    """A vertex and its multipliers; None when there is no basis to find, or (`strict`) when it is not the optimal one."""
    m = atoms.size
    if not np.isfinite(D).all():
        return None
    count = min(atoms.count, 2 * m + 8)
    likely = np.argpartition(D, -count)[-count:] if count < atoms.count else np.arange(atoms.count)
    rows = atoms.rows(likely)
    try:
        # Pivoting by weighted length takes the surest atoms first and skips rows that depend on them.
        order = qr((rows * np.sqrt(D[likely])[:, None]).T, mode="r", pivoting=True, check_finite=False)[1][:m]
        basis, matrix = likely[order], rows[order]
        gap = atoms.rows(basis) @ z - atoms.position[basis]
        moved = z - lstsq(matrix, gap, cond=1e-11, check_finite=False)[0]
        if not np.isfinite(moved).all():
            return None
        e = atoms.forward(moved) - atoms.position
        settled = np.abs(e) > 1e-10
        settled[basis] = False
        b = a.copy()
        b[settled & (e < 0)] = 0.0
        above = settled & (e > 0)
        b[above] = np.where(np.isfinite(atoms.height[above]), atoms.height[above], a[above])
        b[basis] = 0.0
        b[basis] = lstsq(matrix.T, -(atoms.linear + atoms.adjoint(b)), cond=1e-11, check_finite=False)[0]
    except (LinAlgError, ValueError):
        return None
    inside = np.clip(b, 0.0, atoms.height)
    if not np.isfinite(b).all() or (strict and np.abs(inside - b).max() > OUTSIDE * np.abs(inside).max()):
        return None
    return moved, inside
