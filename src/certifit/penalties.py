"""Public module of the penalties and constraints: ``from certifit.penalties import L1, Box``."""

from certifit.evaluation.penalties import *  # noqa: F403
from certifit.evaluation.penalties import __all__ as __all__
