"""How predictions are scored: one metric for the contest, and the form of prediction each metric wants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit._types import Array
from certifit.evaluation.decisions.costs import CostMatrix, least_costly
from certifit.evaluation.decisions.thresholds import Costs
from certifit.evaluation.metrics.registry import METRICS, Metric, cost_metric, metrics_for

__all__ = ["Scoring", "scoring_for"]

DEFAULT = {"binary": "log_loss", "multiclass": "log_loss", "regression": "rmse"}
COST = "cost"


@dataclass(frozen=True)
class Scoring:
    """The metric of a contest, applied to class probabilities (n, K) or values (n,)."""

    metric: Metric
    task: str
    n_classes: int
    costs: Costs | CostMatrix | None = None

    @property
    def threshold(self) -> float | None:
        """Probability of the positive class from which it is said, for two classes.

        It follows from the costs (one half without), never from rows: every page, score and file has this one.
        """
        if self.n_classes != 2:
            return None
        return self.costs.threshold if isinstance(self.costs, Costs) else 0.5

    @property
    def matrix(self) -> Array | None:
        """Costs of saying each class (columns) when another is true (rows), for more than two classes."""
        return self.costs.matrix if isinstance(self.costs, CostMatrix) else None

    @property
    def classes(self) -> Array | None:
        """The class codes."""
        return np.arange(self.n_classes) if self.n_classes else None

    def metrics(self) -> list[Metric]:
        """All metrics of the task, the contest's own first."""
        known = [
            metric for metric in metrics_for(self.task) if metric.name != "tpr"
        ]  # for two classes it is the recall
        if self.costs is not None:
            known = [cost_metric(self.costs.matrix), *known]
        return [self.metric, *(m for m in known if m.name != self.metric.name)]

    def view(self, predicted: Array, metric: Metric | None = None) -> Array:
        """The form of the prediction that a metric wants."""
        needs = (metric or self.metric).needs
        if not self.n_classes:
            return predicted
        if needs == "probability":
            p = np.clip(predicted.astype(np.float64), 0.0, 1.0)
            return np.asarray(p / p.sum(axis=1, keepdims=True))
        if needs == "score":
            return np.asarray(predicted[:, 1] if self.n_classes == 2 else predicted)
        return self.labels(predicted)

    def labels(self, predicted: Array) -> Array:
        """Codes of the classes that are said."""
        if self.threshold is not None:
            return np.asarray(predicted[:, 1] >= self.threshold).astype(np.intp)
        if self.matrix is not None:
            return least_costly(predicted, self.matrix)
        return np.asarray(np.argmax(predicted, axis=1))

    def score(self, y: Array, predicted: Array, metric: Metric | None = None) -> float:
        """Value of the metric."""
        metric = metric or self.metric
        return float(metric(y, self.view(predicted, metric), classes=self.classes))

    def losses(self, y: Array, predicted: Array) -> Array:
        """Loss of each row, the smaller the better: the metric's own where it is a mean, else log loss or squared error."""
        metric = self.metric
        if metric.per_example is None:
            metric = METRICS["mse" if self.task == "regression" else "log_loss"]
        losses = np.asarray(metric.losses(y, self.view(predicted, metric), classes=self.classes))
        return losses if metric.lower_is_better else -losses

    def cost(self, score: float) -> float:
        """The score as something to be small."""
        return score if self.metric.lower_is_better else -score


def scoring_for(task: str, metric: str | None, n_classes: int, costs: Costs | CostMatrix | None) -> Scoring:
    """The scoring of a task: log loss for classes and root mean squared error for numbers unless a metric is named."""
    if metric is None:
        return Scoring(METRICS[DEFAULT[task]], task, n_classes, costs)
    if metric == COST:
        if costs is None:
            raise ValueError(
                "metric='cost' needs the costs of the errors: give cost='fp=1,fn=5', or a table of costs for more classes."
            )
        return Scoring(cost_metric(costs.matrix), task, n_classes, costs)
    names = [m.name for m in metrics_for(task)]
    if metric not in names:
        raise ValueError(f"metric must be one of {', '.join(names)} for a {task} task; got {metric!r}.")
    return Scoring(METRICS[metric], task, n_classes, costs)
