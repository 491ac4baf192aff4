"""What every estimator shares: a fit that leaves a certificate."""

from __future__ import annotations

import inspect
import warnings

from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from certifit.certificate import Certificate

__all__ = ["CertifiedEstimator", "ConvergenceWarning"]


class CertifiedEstimator(BaseEstimator):
    """An estimator whose fit leaves a `certificate_`."""

    certificate_: Certificate

    def _certify(self, certificate: Certificate) -> None:
        """Keep the certificate; a fit that stopped short says so once, with the gap it reached."""
        self.certificate_ = certificate
        if not certificate.certified and certificate.kind != "none":
            warnings.warn(f"{type(self).__name__}: {certificate}", ConvergenceWarning, stacklevel=_caller())


def _caller() -> int:
    """Stack level of the first frame outside this package, so that a warning points at the user's line."""
    level, frame = 1, inspect.currentframe()
    frame = frame.f_back if frame is not None else None
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "certifit":
        frame, level = frame.f_back, level + 1
    return level
