"""The fuzzers: ``python -m tests.fuzz.run --minutes 5 [--seed 7] [--only fits,tables]``, or ``make fuzz MINUTES=5``.

The cases of each kind come from the seed alone, and run in a child process. A case that ends the child, that does not end
(by processor time, so that a busy machine is no failure), or that `judge` finds wrong is shortened line by line as long as the
failure stays the same, and written to build/fuzz as a program of a few lines. Copy it to tests/fuzz/corpus with the mend.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from tests.fuzz import conll, files, fits, proofs, sweep, tables, tall
from tests.fuzz.judge import failure

__all__ = ["KINDS", "Bench", "case", "shortened"]

DRAWN: dict[str, Callable[[np.random.Generator], str]] = {
    "fits": fits.code,
    "sequences": fits.sequences,
    "files": files.code,
    "tables": tables.text,
    "parquet": tables.parquet,
    "conll": conll.code,
    "proofs": proofs.code,
    "tall": tall.code,
}
"""Cases that come from a generator of random numbers."""
WALKED: dict[str, Callable[[int, int], str]] = {"sweep": sweep.code}
"""Cases that have numbers: all of them are met, in an order that the seed shuffles."""
KINDS = (*DRAWN, *WALKED)
SHARES = {"fits": 5.0, "tall": 3.0, "sweep": 5.0}  # of the time; one for each of the others
LIMIT = 20.0  # seconds of processor time for one case
WAITING = (
    10.0  # times the limit, by the clock: a process that computes next to nothing in it waits for what never comes
)
NOTHING = 1e-4  # share of the clock that even a busy machine grants
MEMORY = 8 << 30
ENDLESS = "does not end"
BUILD = Path(__file__).resolve().parents[2] / "build"


class Bench:
    """A child process that runs one case after the other, and is replaced when one ends it."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.limit = limit
        self._child: multiprocessing.process.BaseProcess | None = None
        self._ends: tuple[Connection, Connection] | None = None
        # The child's, which seldom lives to remove it. Where temporary files are, others may sweep at any time.
        BUILD.mkdir(exist_ok=True)
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-", dir=BUILD, ignore_cleanup_errors=True)

    def judge(self, code: str) -> str | None:
        """What is wrong with the case; None if nothing is."""
        if self._child is not None and not self._child.is_alive():  # ended by others since the last case
            self.close()
        if self._child is None:
            self._start()
        assert self._child is not None
        assert self._ends is not None
        say, hear = self._ends
        try:
            say.send(code)
            if self._answers(hear):
                answer: str | None = hear.recv()
                return answer
        except (EOFError, ConnectionError):
            pass
        self._child.join(0.5)
        ended = self._child.exitcode
        self.close()
        if ended is None or -ended == signal.SIGPROF:
            return f"{ENDLESS} within {self.limit:g} s\n"
        return f"the process ends: {signal.Signals(-ended).name if ended < 0 else f'exit code {ended}'}\n"

    def _answers(self, hear: Connection) -> bool:
        """Wait for the child as long as it computes, however little a busy machine lets it; its own alarm ends it."""
        used = -1.0
        while not hear.poll(WAITING * self.limit):
            before, used = used, self._processor_time()
            if used - before < NOTHING * WAITING * self.limit:
                return False
        return True

    def _processor_time(self) -> float:
        """Seconds of the child so far, all threads; its clock has the number that Linux gives to that of a process."""
        assert self._child is not None
        pid = self._child.pid
        assert pid is not None
        try:
            return time.clock_gettime(~pid << 3 | 2)
        except OSError:  # it has ended
            return 0.0

    def _start(self) -> None:
        fork = multiprocessing.get_context("fork")
        (theirs, say), (hear, answer) = fork.Pipe(duplex=False), fork.Pipe(duplex=False)
        given = (theirs, answer, (say, hear), self.limit, self._folder.name)
        self._child = fork.Process(target=_work, args=given, daemon=False)
        self._child.start()
        theirs.close(), answer.close()
        self._ends = say, hear

    def close(self) -> None:
        """End the child."""
        if self._child is not None and self._ends is not None:
            self._child.kill()
            self._child.join()
            for end in self._ends:
                end.close()
        self._child = self._ends = None


def _work(
    cases: Connection, answer: Connection, others: tuple[Connection, Connection], limit: float, folder: str
) -> None:
    for end in others:
        end.close()
    faulthandler.disable()  # the parent says how it ended
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    tempfile.tempdir = folder
    while True:
        try:
            code = cases.recv()
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_PROF, limit)  # its signal ends the process
        found = failure(code)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        answer.send(found)


def _kind(found: str | None) -> str:
    """What tells failures apart: the first line, up to the words of the error; nothing where all is well."""
    return (found or "").split("\n", 1)[0].split(": ", 1)[0]


def shortened(code: str, found: str, judge: Callable[[str], str | None], patience: float = 60.0) -> str:
    """The case without the lines that the failure does not need."""
    lines = code.splitlines()
    until = time.monotonic() + patience
    for k in reversed(range(len(lines))):
        shorter = lines[:k] + lines[k + 1 :]
        if time.monotonic() < until and _kind(judge("\n".join(shorter) + "\n")) == _kind(found):
            lines = shorter
    return "\n".join(lines) + "\n"


def case(kind: str, seed: int, number: int) -> str:
    """The code of a case, which the seed and its number decide."""
    if kind in WALKED:
        return WALKED[kind](seed, number)
    return DRAWN[kind](np.random.default_rng([seed, KINDS.index(kind), number]))


def hunt(minutes: float, seed: int, kinds: list[str], folder: Path) -> int:
    """How many different failures were found; each is written into the folder."""
    known: set[str] = set()
    counts, spent = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0.0)
    start = time.monotonic()
    bench = Bench()
    while time.monotonic() - start < 60.0 * minutes:
        kind = min(kinds, key=lambda kind: spent[kind] / SHARES.get(kind, 1.0))
        number, counts[kind], began = counts[kind], counts[kind] + 1, time.monotonic()
        code = case(kind, seed, number)
        found = bench.judge(code)
        spent[kind] += time.monotonic() - began
        if found is None:
            continue
        endless = found.startswith(ENDLESS)
        what = next((line for line in code.splitlines() if line.startswith("model =")), "") if endless else ""
        if _kind(found) + what in known:
            continue
        known.add(_kind(found) + what)
        # Each try to shorten what does not end would take as long again.
        short = code if endless else shortened(code, found, bench.judge)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{kind}-{seed}-{number}.py"
        path.write_text(f"# {found.splitlines()[0]}\n{short}", encoding="utf-8")
        print(f"{path}\n    {found.splitlines()[0]}", flush=True)
    bench.close()
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()) + f" with seed {seed}: {len(known)} failures")
    return len(known)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tests.fuzz.run", description=(__doc__ or "").split("\n\n", 1)[1])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=None, help="default: from the clock")
    parser.add_argument("--only", default=",".join(KINDS), help="kinds, with commas between them")
    parser.add_argument("--out", type=Path, default=BUILD / "fuzz")
    given = parser.parse_args()
    kinds = given.only.split(",")
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"--only: {', '.join(sorted(unknown))} is none of {', '.join(KINDS)}")
    seed = int(time.time()) if given.seed is None else given.seed
    return 1 if hunt(given.minutes, seed, kinds, given.out) else 0


if __name__ == "__main__":
    sys.exit(main())
