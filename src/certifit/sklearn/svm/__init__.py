"""``sklearn.svm``, as far as Certifit has it."""

from __future__ import annotations

from certifit.sklearn.svm.linear import LinearSVC, LinearSVR

__all__ = ["LinearSVC", "LinearSVR"]
