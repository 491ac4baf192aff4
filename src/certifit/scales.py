"""Conversions between Certifit's alpha and other libraries' scales."""

from __future__ import annotations

import numpy as np

from certifit.data.gate import check_real

__all__ = ["C_from_alpha", "alpha_from_C"]


def alpha_from_C(C: float, n: float) -> float:  # noqa: N802 - C is the name other libraries use
    """Alpha of ``mean loss + alpha·½‖w‖²`` that equals ``C·sum of losses + ½‖w‖²`` on n rows.

    Parameters
    ----------
    C : float
        Inverse strength of LIBLINEAR, LIBSVM and scikit-learn's classifiers.
    n : float
        Number of rows (the sum of the weights).

    Examples
    --------
    >>> from certifit import alpha_from_C
    >>> alpha_from_C(C=10.0, n=100)
    0.001
    """
    check_real("C", C, low=0, open_low=True)
    check_real("n", n, low=0, open_low=True, high=np.inf, open_high=True)
    return 1.0 / (C * n)


def C_from_alpha(alpha: float, n: float) -> float:  # noqa: N802 - C is the name other libraries use
    """The reverse of `alpha_from_C`.

    Examples
    --------
    >>> from certifit import C_from_alpha
    >>> C_from_alpha(alpha=0.001, n=100)
    10.0
    """
    return alpha_from_C(alpha, n)
