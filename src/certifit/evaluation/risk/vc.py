"""The Vapnik-Chervonenkis bound: how far test error can exceed training error, for every distribution.

E_out ≤ E_in + Ω,   Ω = √( (8/n)·ln( 4((2n)^d + 1)/δ ) )      with probability at least 1 − δ
"""

from __future__ import annotations

import numpy as np

from certifit.data.gate import check_real

__all__ = ["vc_bound", "vc_dimension_linear", "vc_sample_size"]


def vc_bound(n: float, d_vc: int, delta: float = 0.05) -> float:
    """Ω: with probability 1 − delta no hypothesis errs more often than its training error plus this.

    Parameters
    ----------
    n : int
        Training rows.
    d_vc : int
        VC dimension of the hypothesis space.
    delta : float in (0, 1), default=0.05
        Chance that the bound fails.

    Examples
    --------
    >>> from certifit import vc_bound
    >>> round(vc_bound(10_000, d_vc=3), 4)
    0.1651
    """
    check_real("n", n, low=1)
    check_real("d_vc", d_vc, low=0, integer=True)
    check_real("delta", delta, low=0, high=1, open_low=True, open_high=True)
    # ln((2n)^d + 1) without overflow.
    growth = np.logaddexp(d_vc * np.log(2.0 * n), 0.0)
    return float(np.sqrt(8.0 / n * (np.log(4.0 / delta) + growth)))


def vc_sample_size(gap: float, d_vc: int, delta: float = 0.05) -> int:
    """The least number of training rows for which `vc_bound` is at most `gap`.

    Parameters
    ----------
    gap : float > 0
        Wanted Ω.
    d_vc, delta
        As in `vc_bound`.

    Examples
    --------
    >>> from certifit import vc_bound, vc_sample_size
    >>> n = vc_sample_size(0.1, d_vc=3, delta=0.1)
    >>> n, vc_bound(n, 3, 0.1) <= 0.1 < vc_bound(n - 1, 3, 0.1)
    (29300, True)
    """
    check_real("gap", gap, low=1e-7, high=1e6)
    low, high = 0, 1
    while vc_bound(high, d_vc, delta) > gap:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if vc_bound(middle, d_vc, delta) > gap else (low, middle)
    return high


def vc_dimension_linear(d: int) -> int:
    """VC dimension of linear classifiers with an intercept on d features: d + 1.

    Examples
    --------
    >>> from certifit import vc_dimension_linear
    >>> vc_dimension_linear(2)
    3
    """
    return int(check_real("d", d, low=0, integer=True)) + 1
