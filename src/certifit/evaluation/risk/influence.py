"""How much each row moves a metric: the deviations from which every standard error follows.

A mean moves by a row's own deviation; a function of means by its gradient along it; the area under the ROC curve by the row's
placement among the other class; anything else by what leaving out a block of rows changes (a block jackknife).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.evaluation.metrics.inputs import binary_rows
from certifit.evaluation.metrics.ranking import placements
from certifit.evaluation.metrics.registry import Metric
from certifit.evaluation.risk.resamples import influence_of_means

__all__ = ["influence"]

BLOCKS = 20


def influence(
    metric: Metric, y: Any, prediction: Any, weight: Array, classes: Any = None
) -> tuple[Array, Array | None]:
    """The influence of each row, shape (n,), and the blocks that vary together (None: single rows).

    The standard error of the metric is that of the mean of the influences. Weights must be positive.
    """
    y, prediction = np.asarray(y), np.asarray(prediction)
    if metric.per_example is not None:
        values = metric.per_example(y, prediction, classes=classes)
        return values - weight @ values / weight.sum(), None
    if metric.statistics is not None and metric.combine is not None:
        return influence_of_means(metric.statistics(y, prediction, classes=classes), weight, metric.combine), None
    if metric.name == "roc_auc":
        positive, score, _ = binary_rows(y, prediction, None, classes)
        area, placed = placements(positive, score, weight)
        share = np.where(positive, weight[positive].sum(), weight[~positive].sum()) / weight.sum()
        return (placed - area) / share, None
    return _by_blocks(metric, y, prediction, weight, classes)


def _by_blocks(metric: Metric, y: Array, prediction: Array, weight: Array, classes: Any) -> tuple[Array, Array]:
    n = y.shape[0]
    # Every class in every block: rows are dealt in the order of y.
    blocks = np.empty(n, dtype=np.intp)
    blocks[np.argsort(y, kind="stable")] = np.arange(n) % min(BLOCKS, n)
    count = int(blocks.max()) + 1
    whole = metric(y, prediction, sample_weight=weight, classes=classes)
    moved = np.zeros(n)
    for block in range(count if count > 1 else 0):
        inside = blocks == block
        try:
            rest = metric(y, prediction, sample_weight=np.where(inside, 0.0, weight), classes=classes)
        except ValueError:  # the only row of a class is in this block: its influence cannot be seen
            continue
        moved[inside] = (whole - rest) * (count - 1) / count * weight.sum() / weight[inside].sum()
    return moved, blocks
