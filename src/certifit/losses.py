"""Public module of the losses: ``from certifit.losses import Huber``."""

from certifit.evaluation.losses import *  # noqa: F403
from certifit.evaluation.losses import __all__ as __all__
