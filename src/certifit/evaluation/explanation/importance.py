"""Permutation importance: how much worse a model gets when one column is shuffled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_real, check_sample_weight
from certifit.data.tabular import TableRows
from certifit.evaluation.metrics.inputs import check_labels, check_level
from certifit.evaluation.metrics.predictions import predictor
from certifit.evaluation.metrics.registry import metric_or_scorer
from certifit.evaluation.risk.influence import influence
from certifit.evaluation.risk.resamples import critical, generator, standard_error
from certifit.names import Plain, record

__all__ = ["Importance", "Importances", "permutation_importance"]


@record("Importance")
class Importance(Plain):
    """How much worse the metric gets without what a column says.

    Parameters
    ----------
    feature : str or int
        Name of the column in a frame, number in an array.
    mean : float
        Worsening of the metric, in its own unit; positive when the column helps, whichever direction is better.
    low, high : float
        Interval over rows and shuffles.
    """

    feature: Any
    mean: float
    low: float
    high: float


class Importances(list[Importance]):
    """The importances, most important first; and scikit-learn's arrays, in the order of the columns."""

    importances: Array
    """Worsening by each shuffle of each column, shape (n_columns, n_repeats)."""

    @property
    def importances_mean(self) -> Array:
        """Mean over the shuffles."""
        return np.asarray(self.importances.mean(axis=1))

    @property
    def importances_std(self) -> Array:
        """Spread over the shuffles."""
        return np.asarray(self.importances.std(axis=1))


def permutation_importance(
    estimator: Any,
    X: Any,
    y: Any,
    metric: Any = None,
    *,
    n_repeats: int = 5,
    columns: Sequence[Any] | None = None,
    random_state: Any = 0,
    max_rows: int | None = None,
    sample_weight: Any = None,
    classes: Any = None,
    level: float = 0.95,
    scoring: Any = None,
    max_samples: Any = 1.0,
    n_jobs: Any = None,
) -> Importances:
    """Worsening of a metric when one column at a time is shuffled among the rows.

    Best on rows the model has not seen: on training rows a column the model merely memorized looks important. Columns that
    say the same thing share their importance, and each may look unimportant.

    Parameters
    ----------
    estimator : fitted estimator, or a function of X
        A function must return what the metric needs.
    X : array, sparse matrix or data frame
        TableRows as the model takes them; frames of any kind narwhals knows.
    y : array of shape (n,)
    metric : str or Metric, optional
        By default what the estimator's `score` measures.
    n_repeats : int, default=5
        Shuffles of each column.
    columns : sequence, optional
        Columns to look at; all by default.
    random_state : int, default=0
        Seed of the shuffles.
    max_rows : int, optional
        Use at most so many rows, drawn at random.
    sample_weight : array of shape (n,), optional
        How often each row counts.
    classes : sequence, optional
        Order of the classes; the estimator's own by default.
    level : float, default=0.95
        Confidence of the intervals.
    scoring, max_samples, n_jobs
        Scikit-learn's names: `scoring` of `metric`, with its names of scorers; `max_samples`, a number or a share, of `max_rows`;
        the answer does not depend on `n_jobs`.

    Returns
    -------
    list of Importance
        Most important first; also with ``importances``, ``importances_mean`` and ``importances_std`` in the order of the
        columns, as scikit-learn's function returns them.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import permutation_importance
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> found = permutation_importance(lambda X: 3 * X[:, 2], X, 3 * X[:, 2], "mae")
    >>> [one.feature for one in found], found[0].low > 0, found[1].mean
    ([2, 0, 1], True, 0.0)
    """
    metric = metric_or_scorer(metric, scoring, estimator)
    level = check_level(level)
    check_real("n_repeats", n_repeats, low=1, integer=True)
    call = predictor(estimator, metric.needs)
    classes = getattr(estimator, "classes_", None) if classes is None else classes
    table, y = TableRows(X), check_labels("y", y)
    if y.shape[0] != table.n:
        raise ValueError(f"X and y must have the same number of rows: X has {table.n}, y has {y.shape[0]}.")
    names = table.names if columns is None else [table.check_name(name) for name in columns]
    rng = generator(random_state)
    weight = check_sample_weight(sample_weight, table.n)
    rows = np.flatnonzero(weight > 0)
    if max_rows is None and max_samples != 1.0:
        check_real("max_samples", max_samples, low=0, open_low=True)
        max_rows = max(2, int(max_samples * table.n) if isinstance(max_samples, float) else int(max_samples))
    if max_rows is not None:
        check_real("max_rows", max_rows, low=2, integer=True)
        if rows.shape[0] > max_rows:
            rows = np.sort(rng.choice(rows, size=max_rows, replace=False))
    y, weight = y[rows], weight[rows]
    sign = 1.0 if metric.lower_is_better else -1.0
    untouched = call(table.take(rows))
    before = metric(y, untouched, sample_weight=weight, classes=classes)
    moved_before, blocks = influence(metric, y, untouched, weight, classes)
    found, every = [], np.zeros((len(names), n_repeats))
    for place, name in enumerate(names):
        worse, moved = np.zeros(n_repeats), np.zeros(rows.shape[0])
        for r in range(n_repeats):
            prediction = call(table.mixed(rows, name, rng.permutation(rows)))
            worse[r] = sign * (metric(y, prediction, sample_weight=weight, classes=classes) - before)
            moved += (influence(metric, y, prediction, weight, classes)[0] - moved_before) / n_repeats
        every[place] = worse
        error, df = standard_error(moved, weight, blocks)
        # TableRows vary, and so do the shuffles of the same rows.
        shuffles = float(worse.var(ddof=1)) / n_repeats if n_repeats > 1 else 0.0
        half = critical(level, df) * float(np.sqrt(error**2 + shuffles)) if df > 0 else np.inf
        found.append(Importance(name, float(worse.mean()), float(worse.mean() - half), float(worse.mean() + half)))
    answer = Importances(sorted(found, key=lambda one: -one.mean))
    answer.importances = every
    return answer
