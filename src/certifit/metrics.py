"""Public module of the metrics: ``from certifit.metrics import log_loss``."""

from certifit.evaluation.metrics import *  # noqa: F403
from certifit.evaluation.metrics import __all__ as __all__
