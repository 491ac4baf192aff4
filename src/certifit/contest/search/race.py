"""The race: every entrant in turn searches its settings on the training rows and is fitted, within its share of the time."""

from __future__ import annotations

import time
import warnings

from certifit.contest.entrants import Conditions, NotApplicable
from certifit.contest.search.limits import Budget, OutOfTime, peak_memory, time_limit
from certifit.contest.search.search import fit_setting, search
from certifit.contest.standing import Standing, Watcher, one_line
from certifit.contest.table.encoded import Training
from certifit.contest.verdict.scoring import Scoring

__all__ = ["race"]

SEARCH = 0.6  # of an entrant's share goes into the search at most, the rest into its final fit
OVERRUN = 1.6  # an entrant is stopped at so many times its share: the others want theirs
BASELINE = 5.0  # seconds the baseline may take even when the time is over
LEAST = 0.5  # seconds an entrant needs to be worth starting
ENCODING = 0.15  # of the time may go into an encoding of the table; folds that would take longer are given up


def race(
    standings: list[Standing],
    training: Training,
    *,
    conditions: Conditions,
    scoring: Scoring,
    budget: Budget,
    watch: Watcher,
) -> bool:
    """Search and fit every entrant; False when an interrupt ended it. What one leaves of its share goes to the next ones."""
    encoded: set[str] = set()
    for i, standing in enumerate(standings):
        weights = sum(s.entrant.weight for s in standings[i:])
        least = BASELINE if standing.entrant.baseline else LEAST
        try:
            if budget.left < LEAST and not standing.entrant.baseline:
                raise OutOfTime
            if standing.entrant.encoding not in encoded:  # once for all entrants, and on nobody's clock
                watch.phase("turning the table into numbers")
                with time_limit(max(budget.left, least)):
                    training.encode(standing.entrant.encoding, Budget(ENCODING * budget.seconds))
                encoded.add(standing.entrant.encoding)
            watch.phase(f"{standing.entrant.label} searches its settings")
            # The baseline is there in any case: without it no score means anything.
            seconds = max(budget.share(standing.entrant.weight, weights), LEAST * standing.entrant.baseline)
            most = min(budget.left, OVERRUN * seconds) if i + 1 < len(standings) else budget.left
            with time_limit(max(most, least)):
                _compete(standing, training, conditions, scoring, seconds, watch)
        except KeyboardInterrupt:
            for rest in standings[i:]:
                rest.status, rest.error = "interrupted", "stopped by an interrupt"
            return False
        except NotApplicable as reason:
            standing.status, standing.error = "not applicable", str(reason)
        except OutOfTime:
            standing.status = "out of time"
            standing.error = "its time was over: more --time helps"
        except Exception as error:  # an entrant that fails must not stop the others; the report shows its error
            standing.status, standing.error = "failed", one_line(error)
        watch.changed(standing)
    return True


def _compete(
    standing: Standing,
    training: Training,
    conditions: Conditions,
    scoring: Scoring,
    seconds: float,
    watch: Watcher,
) -> None:
    """One entrant; what goes wrong with it stays with it."""
    entrant = standing.entrant
    standing.status = "searching"
    watch.changed(standing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a fit has to say is in its certificate
        found = search(entrant, training, conditions, scoring, SEARCH * seconds)
        standing.found, standing.search_seconds, standing.setting = found, found.seconds, found.best.setting
        if found.best.folds:
            standing.inner_score, standing.inner_error = found.best.score, found.best.standard_error
            standing.inner_folds = found.best.folds
        standing.status = "fitting"
        watch.changed(standing)
        begun = time.perf_counter()
        with peak_memory() as memory:
            standing.model = fit_setting(entrant, found.best, training.whole(entrant.encoding), conditions)
        standing.fit_seconds = time.perf_counter() - begun
        standing.memory_mib = memory["mib"]
    standing.status = "fitted"
