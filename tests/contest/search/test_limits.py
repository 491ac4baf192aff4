"""The alarm stops Python and native code, and leaves the handlers as they were."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from certifit.contest.search.limits import Budget, OutOfTime, peak_memory, time_limit


def stopped_after(seconds: float, work: Callable[[], object]) -> float:
    """How long work that would never end ran under a limit."""
    started = time.monotonic()
    with pytest.raises(OutOfTime), time_limit(seconds):
        work()
    return time.monotonic() - started


def test_a_loop_is_stopped() -> None:
    def forever() -> None:
        while True:
            time.sleep(0.01)

    assert 0.1 < stopped_after(0.2, forever) < 2.0


def test_a_native_fit_is_stopped() -> None:
    from certifit import RandomForestClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 30))
    y = rng.integers(0, 2, 20_000)
    assert stopped_after(0.5, lambda: RandomForestClassifier(n_estimators=5000).fit(X, y)) < 5.0


def test_an_alarm_that_is_not_heard_rings_again() -> None:
    def deaf() -> None:
        try:
            time.sleep(30)
        except OutOfTime:
            time.sleep(30)

    assert 1.0 < stopped_after(0.1, deaf) < 10.0


def test_an_alarm_of_which_others_make_an_error_is_an_alarm() -> None:
    """NumPy turns whatever rings within a comparison of records into a TypeError."""

    def translated() -> None:
        try:
            time.sleep(30)
        except OutOfTime:
            raise TypeError("Cannot compare structured arrays") from None

    with pytest.raises(OutOfTime), time_limit(0.05):
        translated()
    with pytest.raises(TypeError, match="of its own"), time_limit(30.0):
        raise TypeError("an error of its own")


def test_an_alarm_is_not_swallowed_by_who_catches_all_errors() -> None:
    with pytest.raises(OutOfTime), time_limit(0.05), contextlib.suppress(Exception):
        time.sleep(30)


def test_a_limit_within_a_limit_ends_with_it() -> None:
    started = time.monotonic()
    with pytest.raises(OutOfTime), time_limit(0.2), time_limit(30.0):
        time.sleep(30)
    assert time.monotonic() - started < 5.0
    with time_limit(30.0):
        with pytest.raises(OutOfTime), time_limit(0.05):
            time.sleep(30)
        time.sleep(0.1)  # the outer limit goes on


def test_nothing_rings_after_the_block() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(0.05):
        pass
    time.sleep(0.1)
    assert signal.getsignal(signal.SIGALRM) is before


def test_other_threads_run_to_the_end() -> None:
    done = []

    def work() -> None:
        with time_limit(0.01):
            time.sleep(0.1)
        done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


def test_no_limit() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(None):
        assert signal.getsignal(signal.SIGALRM) is before


def test_an_alarm_of_somebody_else_goes_on() -> None:
    rang = []
    old = signal.signal(signal.SIGALRM, lambda number, frame: rang.append(time.monotonic()))
    left, interval = signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with time_limit(5.0):
            time.sleep(0.05)
        time.sleep(0.5)
    finally:
        signal.setitimer(signal.ITIMER_REAL, left, interval)
        signal.signal(signal.SIGALRM, old)
    assert len(rang) == 1


def test_the_budget_is_shared_by_weight() -> None:
    budget = Budget(100.0)
    assert budget.share(1.0, 4.0) == pytest.approx(25.0, abs=0.5)
    assert Budget(0.0).left == 0.0


def test_memory_of_a_block() -> None:
    with peak_memory() as memory:
        block = np.ones(8_000_000)  # 61 MiB
        block += 1
        del block
    if memory["mib"] is not None:  # Linux tells
        assert 50 < memory["mib"] < 200
