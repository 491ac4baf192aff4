"""What a contest's winner promises of single predictions: intervals and sets that hold the truth as often as they say.

Scores are those of training rows, by models of the search that had not seen them: |y − f(x)|, or for classes the probability of
all classes that are likelier than the true one. If new rows come from where these came from, a new row's score is like
one of them, and so its truth lies within their quantile. The sealed rows measure how often it did.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.contest.numbers import number, percent
from certifit.data.gate import check_real
from certifit.evaluation.risk.risk import clopper_pearson
from certifit.models.reductions.conformal import adaptive_scores, conformal_quantile
from certifit.names import stored

__all__ = ["Promise"]

MOST = 10_000  # scores that a file keeps
SHOWN = (0.5, 0.8, 0.9, 0.95)  # levels of the report


@stored("Promise")
@dataclass(frozen=True, eq=False)
class Promise:
    """Scores that a new row's score is compared with."""

    scores: Array
    """Of training rows, ascending."""
    sealed: Array
    """Of the sealed rows, ascending; zero for a row whose true class was the likeliest, which every set holds."""
    rows: int
    """How many training rows there were."""

    @classmethod
    def of(cls, left_out: Array, y: Array, predicted: Array, truth: Array) -> Promise:
        """From predictions for training rows by models that had not seen them, and those for the sealed rows."""
        if left_out.ndim == 1:
            scores, sealed = np.abs(y - left_out), np.abs(truth - predicted)
        else:
            scores, sealed = _of_the_truth(left_out, y), _of_the_truth(predicted, truth)
        return cls(_thinned(scores), _thinned(sealed), int(y.shape[0]))

    def quantile(self, level: Any) -> float:
        """What scores of new rows do not exceed with probability `level`; ∞ where there are too few."""
        level = float(check_real("interval", level, low=0, high=1, open_low=True, open_high=True))
        return float(conformal_quantile(self.scores, np.ones(self.scores.shape[0]), level))

    def intervals(self, predicted: Array, level: Any) -> Array:
        """Lower and upper ends for predicted values, shape (n, 2)."""
        half = self.quantile(level)
        return np.column_stack([predicted - half, predicted + half])

    def sets(self, predicted: Array, level: Any) -> Array:
        """Which classes are in the set of each row, shape (n, K): the likeliest ones, at least one."""
        return np.asarray(adaptive_scores(predicted) <= self.quantile(level) + 1e-12)

    def coverage(self, level: Any) -> tuple[float, float, float]:
        """Share of the sealed rows whose truth was inside, and its 95 % interval."""
        inside, n = float((self.sealed <= self.quantile(level) + 1e-12).sum()), float(self.sealed.shape[0])
        return inside / n, *clopper_pearson(inside, n)

    def sentence(self, level: Any, classes: bool) -> str:
        """What is promised at a level, under what assumption, and what was measured."""
        share, low, high = self.coverage(level)
        what = "sets of labels hold" if classes else f"prediction ± {number(self.quantile(level))} holds"
        return (
            f"{what} the truth of {100 * float(level):g} % of new rows, if these come from where the table's rows came from; "
            f"of the sealed rows {percent(share)} (between {percent(low)} and {percent(high)} with 95 % confidence)"
        )

    def as_dict(self, predicted: Array) -> dict[str, Any]:
        """For the record: coverage on the sealed rows, and how wide it was bought, at a few levels."""
        classes = predicted.ndim == 2
        levels, text = [], self.sentence(0.9, classes)
        for level in SHOWN:
            share, low, high = self.coverage(level)
            size = float(self.sets(predicted, level).sum(axis=1).mean()) if classes else 2.0 * self.quantile(level)
            levels.append({"level": level, "coverage": share, "low": low, "high": high, "size": size})
        return {
            "kind": "set" if classes else "interval",
            "rows": self.rows,
            "sealed": int(self.sealed.shape[0]),
            "levels": levels,
            "text": f"{text[0].upper()}{text[1:]}.",
        }


def _of_the_truth(p: Array, codes: Array) -> Array:
    return np.asarray(adaptive_scores(p)[np.arange(codes.shape[0]), codes])


def _thinned(scores: Array) -> Array:
    """Ascending; of very many, the largest of each of equally large parts, so that quantiles err to the safe side."""
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    n = ordered.shape[0]
    return ordered if n <= MOST else ordered[np.ceil(np.linspace(n / MOST, n, MOST)).astype(np.int64) - 1]
