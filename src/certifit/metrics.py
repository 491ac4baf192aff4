"""Public module of the metrics: ``from certifit.metrics import log_loss``."""

from certifit.evaluation.metrics import clusters as _clusters
from certifit.evaluation.metrics import labels as _labels
from certifit.evaluation.metrics import probabilities as _probabilities
from certifit.evaluation.metrics import ranking as _ranking
from certifit.evaluation.metrics import registry as _registry
from certifit.evaluation.metrics import values as _values
from certifit.evaluation.metrics.clusters import *  # noqa: F403
from certifit.evaluation.metrics.labels import *  # noqa: F403
from certifit.evaluation.metrics.probabilities import *  # noqa: F403
from certifit.evaluation.metrics.ranking import *  # noqa: F403
from certifit.evaluation.metrics.registry import *  # noqa: F403
from certifit.evaluation.metrics.values import *  # noqa: F403

__all__: list[str] = []
__all__ += _clusters.__all__
__all__ += _labels.__all__
__all__ += _probabilities.__all__
__all__ += _ranking.__all__
__all__ += _registry.__all__
__all__ += _values.__all__
