"""``sklearn.svm``, as far as Certifit has it."""

from __future__ import annotations

from certifit.sklearn.svm.kernel import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from certifit.sklearn.svm.linear import LinearSVC, LinearSVR

__all__ = ["SVC", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM"]
