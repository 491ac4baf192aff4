"""How good a tagger is, and whether another one is better: all intervals resample whole sentences.

Every measure is a ratio of sums over sentences, r = Σ a_i / Σ b_i: positions that are right, by positions; twice the
right spans, by those predicted and those there. A sentence moves it by (a_i − r·b_i)/mean(b), which gives the
acceleration of the bootstrap interval, and which makes a paired comparison of two taggers a comparison of means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_choice, check_real, check_sample_weight
from certifit.evaluation.metrics.inputs import check_level
from certifit.evaluation.risk.comparison import Comparison, compare
from certifit.evaluation.risk.resamples import acceleration_of, bca_ends, generator, resampled_counts
from certifit.evaluation.sequences.spans import has_spans, spans

__all__ = ["Estimate", "LabelScore", "SequenceReport", "compare_sequences", "sequence_report"]

METRICS = ("accuracy", "sequence_accuracy", "span_f1")


@dataclass(frozen=True)
class Estimate:
    """A value with the ends of its interval; NaN where nothing can be measured."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


@dataclass(frozen=True)
class LabelScore:
    """Precision, recall and F1 of a label or of a kind of span, and how many there are."""

    precision: Estimate
    recall: Estimate
    f1: Estimate
    support: float


@dataclass(frozen=True)
class SequenceReport:
    """What `sequence_report` found.

    Parameters
    ----------
    accuracy : Estimate
        Share of positions with the right label.
    sequence_accuracy : Estimate
        Share of sequences without an error.
    labels : dict of str to LabelScore
    spans : dict of str to LabelScore
        By kind, and ``"all"`` for all kinds together (a kind of that name is ``"kind all"``); empty for labels that mark no
        spans.
    confusion : array of shape (n_labels, n_labels)
        Positions with an actual label (row) and a predicted one (column).
    names : tuple
        The labels, in the order of the rows.
    n_sequences, n_positions : float
    level : float
    """

    accuracy: Estimate
    sequence_accuracy: Estimate
    labels: dict[Any, LabelScore]
    spans: dict[str, LabelScore]
    confusion: Array
    names: tuple[Any, ...]
    n_sequences: float
    n_positions: float
    level: float

    @property
    def span_f1(self) -> Estimate | None:
        """F1 of all spans; None where there are none."""
        return self.spans["all"].f1 if self.spans else None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; what is not a number becomes None."""
        plain = asdict(self)
        plain["confusion"] = self.confusion.tolist()
        plain["labels"] = {str(name): score for name, score in plain["labels"].items()}
        return dict(_plain(plain))

    def __str__(self) -> str:
        width = max((len(str(name)) for name in (*self.labels, *self.spans)), default=5) + 2
        lines = [
            f"{'accuracy':<{width}} {self.accuracy} of {self.n_positions:,.0f} positions",
            f"{'sequences':<{width}} {self.sequence_accuracy} of {self.n_sequences:,.0f} sequences",
            f"{'':<{width}} precision  recall  f1 [interval]            support",
        ]
        for title, table in (("labels", self.labels), ("spans", self.spans)):
            if table:
                lines.append(f"{title}:")
            for name, s in table.items():
                lines.append(
                    f"{name!s:<{width}} {s.precision.value:9.4f}  {s.recall.value:.4f}  {s.f1}  {s.support:,.0f}"
                )
        return "\n".join(lines)


def sequence_report(
    y: Sequence[Sequence[Any]],
    prediction: Sequence[Sequence[Any]],
    *,
    sample_weight: Any = None,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: Any = 0,
) -> SequenceReport:
    """Accuracy, scores of labels and spans, and the confusion of labels, with intervals that resample sequences.

    Parameters
    ----------
    y, prediction : lists of lists of labels
        Of the same sequences.
    sample_weight : array of shape (n_sequences,), optional
        How often each sequence counts.
    level : float, default=0.95
        Of the intervals.
    n_resamples : int, default=1000
        Resamples behind the intervals.
    random_state : int, default=0
        Of the resamples.

    Examples
    --------
    >>> from certifit import sequence_report
    >>> y = [["B-PER", "I-PER", "O"], ["O", "B-LOC"]] * 20
    >>> found = sequence_report(y, [["B-PER", "I-PER", "O"], ["O", "O"]] * 20)
    >>> found.accuracy.value, found.span_f1.value.__round__(3), found.spans["LOC"].recall.value
    (0.8, 0.667, 0.0)
    """
    check_level(level)
    check_real("n_resamples", n_resamples, low=10, integer=True)
    sums = _Sums(y, prediction)
    weight = check_sample_weight(sample_weight, sums.n)
    ratios = sums.ratios()
    estimates = _estimates(
        np.column_stack([a for a, _ in ratios]),
        np.column_stack([b for _, b in ratios]),
        weight,
        level,
        int(n_resamples),
        random_state,
    )
    taken = iter(estimates)
    accuracy, whole = next(taken), next(taken)
    labels = {
        name: LabelScore(next(taken), next(taken), next(taken), float(weight @ sums.actual[:, k]))
        for k, name in enumerate(sums.names)
    }
    kinds = {
        kind: LabelScore(next(taken), next(taken), next(taken), float(weight @ there))
        for kind, (_, _, there) in sums.spans.items()
    }
    return SequenceReport(
        accuracy,
        whole,
        labels,
        kinds,
        sums.confusion(weight),
        tuple(sums.names),
        float(weight.sum()),
        float(weight @ sums.lengths),
        float(level),
    )


def compare_sequences(
    y: Sequence[Sequence[Any]],
    predictions: Mapping[str, Sequence[Sequence[Any]]],
    *,
    metric: str = "accuracy",
    level: float = 0.95,
    correction: str = "holm",
    sample_weight: Any = None,
    random_state: Any = 0,
) -> Comparison:
    """Compare taggers on the same sequences, by paired tests whose units are the sequences.

    Parameters
    ----------
    y : list of lists of labels
    predictions : mapping of str to list of lists of labels
        What each tagger said.
    metric : {"accuracy", "sequence_accuracy", "span_f1"}, default="accuracy"
    level, correction, sample_weight, random_state
        As in `certifit.compare`.

    Examples
    --------
    >>> from certifit import compare_sequences
    >>> y = [["a", "b"], ["b", "b", "a"]] * 30
    >>> compare_sequences(y, {"perfect": y, "constant": [["b"] * len(labels) for labels in y]}).text
    'perfect is better than constant.'
    """
    check_choice("metric", metric, METRICS)
    if not isinstance(predictions, Mapping) or not predictions:
        raise ValueError("predictions must be a mapping from the names of taggers to their labels, and not empty.")
    moved = {}
    for name, prediction in predictions.items():
        sums = _Sums(y, prediction, f"predictions[{name!r}]")
        weight = check_sample_weight(sample_weight, sums.n)
        a, b = sums.ratio(metric)
        total = float(weight @ b)
        if total == 0.0:
            raise ValueError(
                f"metric={metric!r} needs spans, but y and {name!r} have none in sequences of positive weight."
            )
        ratio = float(weight @ a) / total
        # Means of these are the ratios, and their spread is that of the ratios.
        moved[name] = ratio + (a - ratio * b) * (float(weight.sum()) / total)
    return compare(
        moved,
        level=level,
        correction=correction,
        sample_weight=sample_weight,
        lower_is_better=False,
        random_state=random_state,
    )


class _Sums:
    """What every sentence adds to the measures."""

    def __init__(self, y: Any, prediction: Any, name: str = "prediction") -> None:
        actual, predicted = _checked(y, "y"), _checked(prediction, name)
        if len(actual) != len(predicted):
            raise ValueError(
                f"y has {len(actual)} sequences, {name} has {len(predicted)}: they must be of the same sequences."
            )
        for i, (a, b) in enumerate(zip(actual, predicted, strict=True)):
            if len(a) != len(b):
                raise ValueError(f"y[{i}] has {len(a)} labels, {name}[{i}] has {len(b)}: they must match.")
        self.n = len(actual)
        self.lengths = np.array([len(labels) for labels in actual], dtype=np.float64)
        flat_a = [label for labels in actual for label in labels]
        flat_b = [label for labels in predicted for label in labels]
        try:
            known = set(flat_a) | set(flat_b)
        except TypeError as error:
            raise TypeError(
                f"y and {name} must hold one label (text or a number) for each position [{error}]."
            ) from error
        self.names = sorted(known, key=lambda label: (type(label).__name__, label))
        index = {label: k for k, label in enumerate(self.names)}
        K = len(self.names)
        self._a, self._b = np.array([index[x] for x in flat_a]), np.array([index[x] for x in flat_b])
        self._sentence = np.repeat(np.arange(self.n), self.lengths.astype(np.int64))
        right = self._a == self._b
        self.right = np.bincount(self._sentence, weights=right, minlength=self.n)
        self.hit = self._table(self._a[right], self._sentence[right], K)
        self.actual, self.predicted = self._table(self._a, self._sentence, K), self._table(self._b, self._sentence, K)
        self.spans: dict[str, tuple[Array, Array, Array]] = {}
        if has_spans(flat_a) and has_spans([*flat_b, "B-x"]):
            self.spans = _span_sums(actual, predicted)

    def _table(self, label: Array, sentence: Array, K: int) -> Array:
        return np.bincount(sentence * K + label, minlength=self.n * K).reshape(self.n, K).astype(np.float64)

    def confusion(self, weight: Array) -> Array:
        """Weighted positions by actual and predicted label."""
        K = len(self.names)
        return np.bincount(self._a * K + self._b, weights=weight[self._sentence], minlength=K * K).reshape(K, K)

    def ratio(self, metric: str) -> tuple[Array, Array]:
        """Numerator and denominator of a measure, sentence by sentence."""
        if metric == "accuracy":
            return self.right, self.lengths
        if metric == "sequence_accuracy":
            return (self.right == self.lengths).astype(np.float64), np.ones(self.n)
        if not self.spans:
            raise ValueError("metric='span_f1' needs labels that mark spans, such as B-PER, I-PER and O.")
        hit, predicted, there = self.spans["all"]
        return 2.0 * hit, predicted + there

    def ratios(self) -> list[tuple[Array, Array]]:
        """All measures of the report, in its order."""
        found = [self.ratio("accuracy"), self.ratio("sequence_accuracy")]
        groups = [(self.hit[:, k], self.predicted[:, k], self.actual[:, k]) for k in range(len(self.names))]
        for hit, predicted, there in [*groups, *self.spans.values()]:
            found += [(hit, predicted), (hit, there), (2.0 * hit, predicted + there)]
        return found


def _span_sums(actual: list[list[Any]], predicted: list[list[Any]]) -> dict[str, tuple[Array, Array, Array]]:
    """Right, predicted and actual spans of each sentence, by kind and together."""
    there, said = [set(spans(labels)) for labels in actual], [set(spans(labels)) for labels in predicted]
    kinds = sorted({kind for some in (*there, *said) for kind, _, _ in some})

    def counts(sets: list[set[tuple[str, int, int]]], kind: str) -> Array:
        return np.array([sum(1 for span in some if kind in ("", span[0])) for some in sets], dtype=np.float64)

    both = [a & b for a, b in zip(there, said, strict=True)]
    names = {"": "all", "all": "kind all"}
    return {
        names.get(kind, kind): (counts(both, kind), counts(said, kind), counts(there, kind)) for kind in ("", *kinds)
    }


def _checked(sequences: Any, name: str) -> list[list[Any]]:
    if isinstance(sequences, (str, bytes)) or not hasattr(sequences, "__len__") or len(sequences) == 0:
        raise ValueError(f"{name} must be a list of sequences of labels, and not empty; got {sequences!r:.60}.")
    found = []
    for i, labels in enumerate(sequences):
        if isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__") or len(labels) == 0:
            raise ValueError(f"{name}[{i}] must be a list of labels, and not empty; got {labels!r:.60}.")
        found.append(labels.tolist() if isinstance(labels, np.ndarray) else list(labels))
    return found


def _estimates(a: Array, b: Array, weight: Array, level: float, n_resamples: int, random_state: Any) -> list[Estimate]:
    """The ratios of the columns with bias-corrected and accelerated bootstrap intervals over the rows."""
    stacked = np.hstack([a, b])
    sums = np.concatenate(
        [counts @ stacked for counts in resampled_counts(weight, n_resamples, generator(random_state))]
    )
    total, found = weight @ stacked, []
    m = a.shape[1]
    for k in range(m):
        if total[m + k] == 0.0:
            found.append(Estimate(np.nan, np.nan, np.nan))
            continue
        value = float(total[k] / total[m + k])
        drawn = sums[:, [k, m + k]]
        drawn = drawn[drawn[:, 1] > 0]
        acceleration = acceleration_of(a[:, k] - value * b[:, k], weight)
        low, high = bca_ends(drawn[:, 0] / drawn[:, 1], value, level, acceleration, float(weight.sum()))
        found.append(Estimate(value, max(low, 0.0), min(high, 1.0)))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value
