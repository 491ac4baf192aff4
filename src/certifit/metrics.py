"""Public module of the metrics: ``from certifit.metrics import log_loss``."""

from certifit.evaluation.metrics.registry import *  # noqa: F403
from certifit.evaluation.metrics.registry import __all__ as __all__
