"""Which differences between models are real: all pairs, on the same rows, corrected for how many pairs there are.

The rows are the same for every model, so the differences row by row are what varies: a paired test sees differences far
below the width of either model's own interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom
from scipy.stats import t as student

from certifit._types import Array
from certifit.data.gate import check_choice, check_sample_weight
from certifit.evaluation.metrics.inputs import binary_rows, check_labels, check_level, check_vector
from certifit.evaluation.metrics.ranking import placements
from certifit.evaluation.metrics.registry import Metric, resolve_metric
from certifit.evaluation.risk.resamples import critical, generator, resampled_counts, standard_error
from certifit.evaluation.risk.risk import clopper_pearson
from certifit.names import record
from certifit.printable import listing

__all__ = ["Comparison", "Pair", "compare", "compare_metric"]

CORRECTIONS = ("holm", "bonferroni", "none")
FEW = 30  # units up to which Student's p is checked against flipped signs
EXACT_FLIPS = 12  # units up to which all sign patterns are tried
FLIPS = 9999
RESAMPLES = 400
ROUNDED = 1e-12  # of both losses: what is no more than that is rounding of the same answer
RESAMPLES_BY_CALL = 200  # for metrics that must be computed anew in each resample
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@record("ComparedPair")
class Pair:
    """Two models on the same rows.

    Parameters
    ----------
    a, b : str
        Their names; `a` has the better value, or comes first when they are equal.
    difference : float
        Value of `a` minus value of `b`.
    low, high : float
        Interval of the difference, as wide as the correction for many pairs demands.
    p, p_adjusted : float
        Chance of a difference this large between models of equal risk, for this pair alone and among all pairs.
    distinguishable : bool
        Whether `p_adjusted` is below 1 − level; the interval then leaves out 0.

    Notes
    -----
    A pair is a truth value: ``if compare(…).pair("a", "b"):`` asks whether the difference is real.
    """

    a: str
    b: str
    difference: float
    low: float
    high: float
    p: float
    p_adjusted: float
    distinguishable: bool

    def __bool__(self) -> bool:
        return self.distinguishable

    def reversed(self) -> Pair:
        """The same evidence with the models exchanged."""
        return Pair(
            self.b, self.a, -self.difference, -self.high, -self.low, self.p, self.p_adjusted, self.distinguishable
        )


@record("Comparison")
class Comparison:
    """All pairs of models, and what can be said.

    Parameters
    ----------
    names : tuple of str
        Best first.
    values : dict of str to float
        Mean loss, or metric, of each model.
    pairs : tuple of Pair
        In the order of `names`.
    level : float
    correction : str
    lower_is_better : bool
    """

    names: tuple[str, ...]
    values: dict[str, float]
    pairs: tuple[Pair, ...]
    level: float
    correction: str
    lower_is_better: bool

    @property
    def best(self) -> str:
        """The model with the best value."""
        return self.names[0]

    @property
    def tied_with_best(self) -> tuple[str, ...]:
        """The other models that cannot be told apart from the best one."""
        return tuple(pair.b for pair in self.pairs if pair.a == self.best and not pair.distinguishable)

    @property
    def tied(self) -> tuple[str, ...]:
        """The best model and those tied with it."""
        return (self.best, *self.tied_with_best)

    def pair(self, a: str, b: str) -> Pair:
        """The comparison of `a` with `b`; its difference is the value of `a` minus that of `b`."""
        for found in self.pairs:
            if (found.a, found.b) == (a, b):
                return found
            if (found.a, found.b) == (b, a):
                return found.reversed()
        raise KeyError(f"No pair of {a!r} and {b!r}; the models are {', '.join(map(repr, self.names))}.")

    def against_best(self, name: str) -> Pair | None:
        """The comparison of a model with the best one; None for the best itself."""
        return None if name == self.best else self.pair(name, self.best)

    @property
    def text(self) -> str:
        """One plain sentence."""
        return self.describe()

    def describe(self, labels: Mapping[str, str] | None = None) -> str:
        """The sentence, with `labels` in place of names."""
        label = {name: (labels or {}).get(name, name) for name in self.names}
        best, tied, others = label[self.best], self.tied_with_best, len(self.names) - 1
        if others == 0:
            return f"{best} is the only model."
        if not tied:
            return f"{best} is better than {label[self.names[1]] if others == 1 else 'all others'}."
        leaders = self.tied
        in_order = leaders == self.names[: len(leaders)]
        if in_order and not any(p.distinguishable for p in self.pairs if p.a in leaders and p.b in leaders):
            count = NUMBERS[len(leaders)] if len(leaders) < len(NUMBERS) else str(len(leaders))
            return f"The {count if len(tied) == others else 'first ' + count} cannot be told apart."
        listed = [label[name] for name in tied]
        return f"{best} cannot be told apart from {listing(listed)}."

    def as_dict(self) -> dict[str, Any]:
        """The fields, the text and the ties as a plain dictionary, for reports and JSON."""
        return {**asdict(self), "best": self.best, "tied": list(self.tied), "text": self.text}

    def __str__(self) -> str:
        return self.text


class _Evidence(NamedTuple):
    """What one pair shows before the correction; `ends(level)` gives its interval."""

    difference: float
    p: float
    error: float
    df: float
    stretch: float
    discordant: tuple[float, float, float] | None

    def ends(self, level: float) -> tuple[float, float]:
        half = critical(level, self.df) * self.error * self.stretch if self.error > 0.0 else 0.0
        low, high = self.difference - half, self.difference + half
        if self.discordant is not None:
            # Both tests must agree that the models differ, so the interval covers both intervals.
            worse, better, total = self.discordant
            if worse + better > 0.0:
                share = (worse + better) / total
                exact = [(2.0 * end - 1.0) * share for end in clopper_pearson(worse, worse + better, level)]
                low, high = min(low, exact[0]), max(high, exact[1])
            low, high = max(low, -1.0), min(high, 1.0)
        return low, high


def compare(
    losses: Mapping[str, Any],
    *,
    level: float = 0.95,
    correction: str = "holm",
    groups: Any = None,
    sample_weight: Any = None,
    lower_is_better: bool = True,
    random_state: Any = 0,
) -> Comparison:
    """Compare the mean losses of models on the same rows.

    Each pair is judged by Student's test of the differences row by row. With at most 30 rows (or groups) the test that flips
    the signs of the differences must agree; for 0-1 losses McNemar's exact test must agree.

    Parameters
    ----------
    losses : mapping of str to array of shape (n,)
        Losses of each model on the same rows, in the same order.
    level : float, default=0.95
        1 − level bounds the chance that any two equal models are told apart (with a correction).
    correction : {"holm", "bonferroni", "none"}, default="holm"
        For the number of pairs.
    groups : array of shape (n,), optional
        Rows of one group depend on each other (one patient, one day): groups are then the units that vary.
    sample_weight : array of shape (n,), optional
        How often each row counts.
    lower_is_better : bool, default=True
        False when the values are gains.
    random_state : int, default=0
        Seed of the flipped signs.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import compare
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.exponential(size=500)
    >>> found = compare({"forest": noise + 0.2, "ridge": noise, "lasso": noise + 0.01 * rng.normal(size=500)})
    >>> found.text
    'The first two cannot be told apart.'
    >>> bool(found.pair("forest", "ridge")), bool(found.pair("ridge", "lasso"))
    (True, False)
    """
    level = check_level(level)
    names, matrix = _columns(losses)
    weight = check_sample_weight(sample_weight, matrix.shape[0])
    kept = weight > 0
    units = None
    if groups is not None:
        labels = check_labels("groups", groups, matrix.shape[0])
        units = np.unique(labels[kept], return_inverse=True)[1]
    matrix, weight = matrix[kept], weight[kept]
    rng = generator(random_state)
    means = weight @ matrix / weight.sum()
    values = dict(zip(names, means.tolist(), strict=True))
    binary = units is None and bool(((matrix == 0.0) | (matrix == 1.0)).all())
    order = _order(names, values, lower_is_better)
    column = dict(zip(names, matrix.T, strict=True))
    evidence = [
        _mean_evidence(_apart(column[a], column[b]), values[a] - values[b], weight, units, binary, rng)
        for a, b in combinations(order, 2)
    ]
    return _conclude(order, values, evidence, level, correction, lower_is_better)


def compare_metric(
    metric: Any,
    y: Any,
    predictions: Mapping[str, Any],
    *,
    level: float = 0.95,
    correction: str = "holm",
    sample_weight: Any = None,
    random_state: Any = 0,
    classes: Any = None,
) -> Comparison:
    """Compare models by any metric of their predictions for the same rows.

    A metric that is a mean goes to `compare`. The area under the ROC curve uses DeLong's covariance; other metrics the
    standard error over resamples of the rows, the same resamples for all models.

    Parameters
    ----------
    metric : str or Metric
    y : array of shape (n,)
    predictions : mapping of str to array
        What the metric needs, from each model.
    level, correction, sample_weight, random_state
        As in `compare`.
    classes : sequence, optional
        Order of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.evaluation.risk.comparison import compare_metric
    >>> y = np.tile([0, 1], 200)
    >>> noise = np.random.default_rng(0).normal(size=400)
    >>> compare_metric("roc_auc", y, {"good": 2 * y + noise, "chance": noise}).text
    'good is better than chance.'
    """
    metric = resolve_metric(metric)
    level = check_level(level)
    if not isinstance(predictions, Mapping) or not predictions:
        raise ValueError("predictions must be a mapping from the names of models to their predictions, and not empty.")
    n = check_labels("y", y).shape[0]
    for name, prediction in predictions.items():
        shape = np.asarray(prediction).shape
        if shape[:1] != (n,):
            raise ValueError(
                f"predictions[{name!r}] must have one entry for each of the {n} rows of y; got shape {shape}."
            )
    if metric.per_example is not None:
        values = {name: metric.per_example(y, p, classes=classes) for name, p in predictions.items()}
        return compare(
            values,
            level=level,
            correction=correction,
            sample_weight=sample_weight,
            lower_is_better=metric.lower_is_better,
            random_state=random_state,
        )
    weight = check_sample_weight(sample_weight, n)
    kept = weight > 0
    if not kept.all():  # a row of weight zero has no say, not even about which classes there are
        y, weight, sample_weight = np.asarray(y)[kept], weight[kept], weight[kept]
        predictions = {name: np.asarray(p)[kept] for name, p in predictions.items()}
    found = {name: metric(y, p, sample_weight=sample_weight, classes=classes) for name, p in predictions.items()}
    order = _order(list(found), found, metric.lower_is_better)
    if metric.name == "roc_auc":
        covariance = _delong_covariance(y, [predictions[name] for name in order], sample_weight, classes)
    else:
        covariance = _resampled_covariance(
            metric, y, [np.asarray(predictions[name]) for name in order], weight, classes, generator(random_state)
        )
    df = float(weight.sum()) - 1.0
    evidence = []
    for i, j in combinations(range(len(order)), 2):
        difference = float(_apart(np.float64(found[order[i]]), np.float64(found[order[j]])))
        variance = covariance[i, i] + covariance[j, j] - 2.0 * covariance[i, j]
        rounding = 1e-14 * (covariance[i, i] + covariance[j, j])
        error = float(np.sqrt(variance)) if variance > rounding or np.isinf(variance) else 0.0
        evidence.append(_Evidence(difference, _student_p(difference, error, df), error, df, 1.0, None))
    return _conclude(order, found, evidence, level, correction, metric.lower_is_better)


def _columns(losses: Mapping[str, Any]) -> tuple[list[str], Array]:
    if not isinstance(losses, Mapping) or not losses:
        raise ValueError("losses must be a mapping from the names of models to their losses, and not empty.")
    columns, n = [], None
    for name, values in losses.items():
        column = check_vector(f"losses[{name!r}]", values)
        if n is not None and column.shape[0] != n:
            raise ValueError(
                f"All models must be judged on the same rows: losses[{name!r}] has {column.shape[0]} rows, others {n}."
            )
        n = column.shape[0]
        columns.append(column.astype(np.float64))
    return list(losses), np.column_stack(columns)


def _order(names: Sequence[str], values: Mapping[str, float], lower_is_better: bool) -> list[str]:
    return sorted(names, key=lambda name: values[name] if lower_is_better else -values[name])


def _apart(a: Array | np.float64, b: Array | np.float64) -> Array:
    """a − b, and zero everywhere if no difference is more than rounding."""
    d = np.asarray(a - b)
    return np.zeros_like(d) if (np.abs(d) <= ROUNDED * (np.abs(a) + np.abs(b))).all() else d


def _mean_evidence(
    d: Array, difference: float, weight: Array, units: Array | None, binary: bool, rng: np.random.Generator
) -> _Evidence:
    """Student's test of the differences d, and its check for 0-1 losses or few units."""
    total = float(weight.sum())
    if not d.any():  # the same answers: nothing to tell apart
        return _Evidence(0.0, 1.0, 0.0, total - 1.0, 1.0, None)
    error, df = standard_error(d - weight @ d / total, weight, units)
    if df <= 0.0:
        return _Evidence(difference, 1.0, np.inf, 0.0, 1.0, None)
    p = _student_p(difference, error, df)
    if binary:
        worse, better = float(weight @ (d > 0)), float(weight @ (d < 0))
        discordant = worse + better
        # Twice the tail of a fair coin; real-valued counts arise from weights.
        exact = min(1.0, 2.0 * float(binom.cdf(np.floor(min(worse, better) + 1e-9), max(1, round(discordant)), 0.5)))
        return _Evidence(difference, max(p, exact), error, df, 1.0, (worse, better, total))
    if df + 1.0 > FEW:
        return _Evidence(difference, p, error, df, 1.0, None)
    flipped = _flip_p(d, weight, units, rng)
    if flipped <= p:
        return _Evidence(difference, p, error, df, 1.0, None)
    error = error or abs(difference)  # equal differences: only the flipped signs know how sure they are
    quantile = float(student.isf(0.5 * flipped, df)) if flipped < 1.0 else 0.0
    # The interval is stretched until it says what the flipped signs say.
    stretch = min(abs(difference) / (error * quantile), 100.0) if quantile > 0.0 else 100.0
    return _Evidence(difference, flipped, error, df, stretch, None)


def _student_p(difference: float, error: float, df: float) -> float:
    if difference == 0.0 or df <= 0.0:
        return 1.0
    return float(2.0 * student.sf(abs(difference) / error, df)) if error > 0.0 else 0.0


def _flip_p(d: Array, weight: Array, units: Array | None, rng: np.random.Generator) -> float:
    """Share of the sign patterns whose sum is as far from zero: all of them for few units, a draw of them otherwise."""
    if units is not None:
        sums = np.bincount(units, weights=weight * d)
    elif np.array_equal(weight, np.round(weight)):
        sums = np.repeat(d, weight.astype(np.intp))
    else:
        sums = weight * d
    m, observed = sums.shape[0], abs(float(sums.sum()))
    if m <= EXACT_FLIPS:
        signs = 1.0 - 2.0 * ((np.arange(2**m)[:, None] >> np.arange(m)) & 1)
        return float(np.mean(np.abs(signs @ sums) >= observed * (1.0 - 1e-12)))
    signs = rng.choice(np.array([-1.0, 1.0]), size=(FLIPS, m))
    return float((1 + np.sum(np.abs(signs @ sums) >= observed * (1.0 - 1e-12))) / (FLIPS + 1))


def _conclude(
    order: Sequence[str],
    values: Mapping[str, float],
    evidence: Sequence[_Evidence],
    level: float,
    correction: str,
    lower_is_better: bool,
) -> Comparison:
    """Correct the p-values for their number, and give each interval the level its pair was judged at."""
    check_choice("correction", correction, CORRECTIONS)
    m, alpha = len(evidence), 1.0 - level
    p = np.array([e.p for e in evidence])
    factor = np.ones(m) if correction == "none" else np.full(m, float(m))
    adjusted = np.minimum(p * factor, 1.0)
    if correction == "holm" and m:
        ranks = np.argsort(p, kind="stable")
        steps = np.maximum.accumulate(p[ranks] * np.arange(m, 0, -1))
        adjusted[ranks] = np.minimum(steps, 1.0)
        rejected = int(np.sum(steps < alpha))
        # A pair that was told apart is judged at its own step; all others at the step where the procedure stopped.
        factor[ranks] = np.maximum(np.arange(m, 0, -1), m - rejected)
    pairs = []
    for (a, b), e, k, corrected in zip(combinations(order, 2), evidence, factor, adjusted, strict=True):
        low, high = e.ends(1.0 - alpha / k)
        pairs.append(Pair(a, b, e.difference, low, high, e.p, float(corrected), bool(corrected < alpha)))
    ranked = {name: float(values[name]) for name in order}
    return Comparison(tuple(order), ranked, tuple(pairs), level, correction, lower_is_better)


def _delong_covariance(y: Any, scores: Sequence[Any], sample_weight: Any, classes: Any) -> Array:
    """Covariance of the areas under the ROC curves of several scores (DeLong, DeLong and Clarke-Pearson 1988)."""
    placed = []
    for score in scores:
        positive, checked, weight = binary_rows(y, score, sample_weight, classes)
        area, places = placements(positive, checked, weight)
        placed.append(places - area)
    table = np.column_stack(placed)
    total = np.zeros((table.shape[1],) * 2)
    for side in (positive, ~positive):
        size = float(weight[side].sum())
        if size <= 1.0:
            return np.diag(np.full(total.shape[0], np.inf))
        total += (table[side] * weight[side, None]).T @ table[side] / (size * (size - 1.0))
    return total


def _resampled_covariance(
    metric: Metric, y: Any, predictions: Sequence[Array], weight: Array, classes: Any, rng: np.random.Generator
) -> Array:
    """Covariance of a metric of several predictions over resamples of the rows."""
    y = np.asarray(y)
    found: list[Array] = []
    if metric.statistics is not None and metric.combine is not None:
        tables = [metric.statistics(y, p, classes=classes) for p in predictions]
        for counts in resampled_counts(weight, RESAMPLES, rng):
            totals = counts.sum(axis=1)[:, None]
            found.extend(np.column_stack([metric.combine(counts @ table / totals) for table in tables]))
    else:
        for counts in resampled_counts(weight, RESAMPLES_BY_CALL, rng):
            for count in counts:
                try:
                    values = [metric(y, p, sample_weight=count, classes=classes) for p in predictions]
                except ValueError:  # a resample of one class only has no value and says nothing
                    continue
                found.append(np.array(values))
    if len(found) < RESAMPLES_BY_CALL // 2:
        return np.diag(np.full(len(predictions), np.inf))
    n = float(weight.sum())
    return np.atleast_2d(np.cov(np.array(found), rowvar=False)) * (n / max(n - 1.0, 1.0))
