"""Cholesky's factor with the condition it shows, by the LAPACK that is fastest for its size."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from certifit._types import Array
from certifit.threads import n_threads, one_blas_thread

ONE_THREAD = 1000  # columns up to which one thread of SciPy's LAPACK factors as fast as NumPy's, which makes copies


def cholesky_condition(H: Array) -> tuple[Array, float]:
    """Upper Cholesky factor and estimated condition of a symmetric matrix; infinite if not definite."""
    H = H.T if H.flags.c_contiguous else H
    norm = float(lapack.dlange("1", H)) if H.size else 0.0  # type: ignore[call-arg]  # its stub wants none
    if H.shape[0] <= ONE_THREAD or n_threads(None) == 1:
        with one_blas_thread():
            R, failed = lapack.dpotrf(H)
    else:
        try:
            # NumPy's LAPACK on purpose: SciPy brings a second BLAS, whose idle threads slow the next product.
            R, failed = np.asarray(np.linalg.cholesky(H).T), 0
        except np.linalg.LinAlgError:
            failed = 1
    if failed:
        return H, np.inf
    if not np.isfinite(norm):
        return R, np.inf
    rcond = float(lapack.dpocon(R, norm)[0])
    return R, 1.0 / rcond if rcond > 0 else np.inf
