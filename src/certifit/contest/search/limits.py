"""Clocks and scales of a contest: a time limit that stops a fit, and the memory a fit took."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

__all__ = ["Budget", "OutOfTime", "peak_memory", "time_limit"]

AGAIN = 1.0  # seconds after which an alarm that was not heard rings again
_ENDS: list[float] = []  # moments at which the limits in force end, the innermost last
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class OutOfTime(BaseException):
    """A fit was stopped because its time was up.

    Like an interrupt it is no `Exception`: it may ring inside anybody's code, where ``except Exception`` would swallow it.
    """


class Budget:
    """Seconds to spend, shared out among jobs by their weight: what one job leaves over goes to the next ones.

    Parameters
    ----------
    seconds : float
        In all.
    spent : float, default=0
        Seconds that were spent before.
    """

    def __init__(self, seconds: float, spent: float = 0.0) -> None:
        self.seconds = seconds
        self.started = time.monotonic() - spent

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def left(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.seconds - self.spent)

    def part(self, share: float) -> Budget:
        """A budget that began with this one and ends after a share of its seconds."""
        return Budget(self.seconds * share, self.spent)

    def share(self, weight: float, all_weights: float) -> float:
        """Seconds for a job of `weight` when the jobs still to come, this one included, weigh `all_weights`."""
        return self.left * weight / all_weights


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise `OutOfTime` in the block after `seconds`, or when a limit around the block is reached.

    The alarm is a signal, which the native kernels poll, so that even a long native fit stops. Signals reach the main thread of
    a POSIX process only; elsewhere the block runs to its end, and the contest looks at the clock between fits.
    """
    can_ring = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if seconds is None or not can_ring:
        yield
        return

    rung = False

    def ring(signum: int, frame: FrameType | None) -> None:
        nonlocal rung
        rung = True
        raise OutOfTime

    started = time.monotonic()
    end = min([started + seconds, *_ENDS[-1:]])
    _ENDS.append(end)
    before = signal.signal(signal.SIGALRM, ring)
    # It rings again: raised inside a callback of the garbage collector, an exception is printed and lost.
    left, interval = signal.setitimer(signal.ITIMER_REAL, max(end - started, 1e-3), AGAIN)
    try:
        yield
    except Exception as error:
        if rung:  # inside code that made an error of its own of it, as a comparison of arrays does
            raise OutOfTime from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        _ENDS.pop()
        if left > 0:  # somebody else's alarm was running: it goes on
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - started), 1e-3), interval)


@contextmanager
def peak_memory() -> Iterator[dict[str, float | None]]:
    """MiB by which the process grew at most within the block, as ``result["mib"]``; None where the system does not tell."""
    result: dict[str, float | None] = {"mib": None}
    _give_back()
    before = _resident("VmRSS") if _reset_peak() else None
    yield result
    peak = _resident("VmHWM")
    if before is not None and peak is not None:
        result["mib"] = max(0.0, peak - before)


def _give_back() -> None:
    """Return freed memory to the system (glibc), so that a fit that reuses it is seen to need it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def _reset_peak() -> bool:
    """Forget the highest memory use so far (Linux only)."""
    try:
        RESET.write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def _resident(field: str) -> float | None:
    try:
        for line in STATUS.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith(field + ":"):
                return float(line.split()[1]) / 1024.0
    except OSError:
        return None
    return None
