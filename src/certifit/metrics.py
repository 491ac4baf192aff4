"""Public module of the metrics: ``from certifit.metrics import log_loss``."""

from certifit.evaluation.metrics import clusters as _clusters
from certifit.evaluation.metrics import registry as _registry
from certifit.evaluation.metrics.clusters import *  # noqa: F403
from certifit.evaluation.metrics.registry import *  # noqa: F403

__all__: list[str] = []
__all__ += _clusters.__all__
__all__ += _registry.__all__
