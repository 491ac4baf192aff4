"""Constraints: boxes and balls."""

# The penalties list the constraints, and constraints build on a penalty: whoever comes first, the penalties are read first.
import certifit.evaluation.penalties  # noqa: F401
