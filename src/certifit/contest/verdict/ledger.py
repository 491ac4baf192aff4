"""The ledger of the winner: how much of its loss is left to optimization, to more data, to a richer model, to nobody."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array, is_sparse
from certifit.contest.standing import Standing
from certifit.contest.verdict.finalists import Evidence
from certifit.contest.verdict.scoring import Scoring
from certifit.evaluation.risk.bayes_error import bayes_error
from certifit.evaluation.risk.ledger import ledger

__all__ = ["winner_ledger"]

MOST_ROWS = 20_000  # training rows whose loss is computed


class _Competitor:
    """A model of the contest in the form the ledger asks for: it predicts what the metric needs."""

    def __init__(self, standing: Standing, scoring: Scoring) -> None:
        assert standing.model is not None
        self.label = standing.entrant.label
        self.certificate_ = standing.model.certificate
        self._model, self._scoring = standing.model, scoring
        if scoring.classes is not None:
            self.classes_ = scoring.classes

    def predict(self, features: Any) -> Array:
        return self._scoring.view(self._model.predict(features))

    predict_proba = decision_function = predict


def winner_ledger(evidence: Evidence, winner: Standing, rivals: list[Standing]) -> dict[str, Any]:
    """The ledger of the best entrant as plain data; the richest rival says what a richer model would gain."""
    training, scoring, seed = evidence.training, evidence.scoring, evidence.conditions.seed
    richer = max(rivals, key=lambda s: s.entrant.richness, default=None)
    if richer is not None and richer.entrant.richness <= max(1, winner.entrant.richness):
        richer = None
    n = training.y.shape[0]
    rng = np.random.default_rng(seed)
    rows = np.arange(n) if n <= MOST_ROWS else np.sort(rng.choice(n, MOST_ROWS, replace=False))
    found = ledger(
        _Competitor(winner, scoring),
        training.features[rows],
        training.y[rows],
        evidence.features,
        evidence.y,
        loss=scoring.metric,
        richer=None if richer is None else _Competitor(richer, scoring),
        random_state=seed,
    ).as_dict()
    noise = _noise(evidence, rows)
    found |= {"model": winner.name, "metric": scoring.metric.label}
    if noise is not None:
        found["rows"][-1] |= {"value": None, "low": None, "high": None, "text": noise}
    return found


def _noise(evidence: Evidence, rows: Array) -> str | None:
    """What nearest neighbors say of the least possible error rate, in words: it has another unit than the metric."""
    if not evidence.scoring.n_classes:
        return None
    X = evidence.training.whole("matrix").train.X[rows]
    y = evidence.training.y[rows]
    try:
        least = bayes_error(X.toarray() if is_sparse(X) else X, y, max_rows=3000, random_state=evidence.conditions.seed)
    except ValueError:
        return None
    return (
        f"Nearest neighbors suggest (an estimate, not a bound) that even the best classifier errs on {100 * least.value:.1f} % "
        "of such rows, with these columns."
    )
