"""Public module of the kernels: ``from certifit.kernels import RBF``."""

from certifit.representation.kernels import *  # noqa: F403
from certifit.representation.kernels import __all__ as __all__
