"""The ledger of the winner: how much of its loss is left to optimization, to more data, to a richer model, to nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from certifit._types import Array, is_sparse
from certifit.contest.search.limits import Budget, OutOfTime, time_limit
from certifit.contest.verdict.judging import Judge
from certifit.contest.verdict.standing import Standing
from certifit.evaluation.risk.bayes_error import bayes_error
from certifit.evaluation.risk.ledger import ledger

if TYPE_CHECKING:
    from certifit.contest.contest import _Run

__all__ = ["winner_ledger"]

MOST_ROWS = 20_000  # training rows whose loss is computed
RICHER = ("blend", "boosting", "forest", "polynomial")


class _Judged:
    """A model of the contest in the form the ledger asks for: it predicts what the metric needs."""

    def __init__(self, standing: Standing, judge: Judge) -> None:
        assert standing.model is not None
        self.label = standing.entrant.label
        self.certificate_ = standing.model.certificate
        self._model, self._judge = standing.model, judge
        if judge.classes is not None:
            self.classes_ = judge.classes

    def predict(self, features: Any) -> Array:
        return self._judge.view(self._model.predict(features))

    predict_proba = decision_function = predict


def winner_ledger(
    run: _Run, standings: dict[str, Standing], order: tuple[str, ...], budget: Budget
) -> dict[str, Any] | None:
    """The ledger of the best entrant as plain data; None when time is up."""
    winner = standings[order[0]]
    if winner.entrant.family == "blend":
        richer = None
    else:
        known = [name for name in RICHER if name in order and name != order[0]]
        richer = _Judged(standings[known[0]], run.judge) if known else None
    rng = np.random.default_rng(run.setting.seed)
    n = run.y_train.shape[0]
    rows = np.arange(n) if n <= MOST_ROWS else np.sort(rng.choice(n, MOST_ROWS, replace=False))
    features, y = run.referee.unseal()
    try:
        with time_limit(budget.left + 2.0):
            found = ledger(
                _Judged(winner, run.judge),
                run.table.features[rows],
                run.y_train[rows],
                features,
                y,
                loss=run.judge.metric,
                richer=richer,
                random_state=run.setting.seed,
            ).as_dict()
            noise = _noise(run, rows)
    except OutOfTime:
        return None
    found |= {"model": order[0], "metric": run.judge.metric.label}
    if noise is not None:
        found["rows"][-1] |= {"value": None, "low": None, "high": None, "text": noise}
    return found


def _noise(run: _Run, rows: Array) -> str | None:
    """What nearest neighbors say of the least possible error rate, in words: it has another unit than the metric."""
    if not run.judge.n_classes:
        return None
    X = run.table.whole("matrix").train.X[rows]
    try:
        least = bayes_error(
            X.toarray() if is_sparse(X) else X, run.y_train[rows], max_rows=3000, random_state=run.setting.seed
        )
    except ValueError:
        return None
    return (
        f"Nearest neighbors suggest (an estimate, not a bound) that even the best classifier errs on {100 * least.value:.1f} % "
        "of such rows, with these columns."
    )
