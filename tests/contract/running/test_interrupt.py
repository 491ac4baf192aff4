"""Ctrl-C stops a long fit within a second and leaves the interpreter usable."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contract.discovery import ONE_EACH
from tests.grids import each, exhaustive

ROOT = Path(__file__).resolve().parents[3]
GROUP = 40  # estimators at most that share a process, whose start costs as much as a dozen of them
PATIENCE = 400  # seconds for a process on a busy machine
# Rows, columns, and the time after which the alarm rings: between tall and wide, and tall.
SHAPES = {"2000 x 400": (2000, 400, 0.12), "200000 x 8": (200_000, 8, 0.1)}
# Every fit is repeated until its alarm rings, so that the alarm finds it in some phase of its work.
SCRIPT = """
import json, signal, sys, time, warnings
import numpy as np
sys.path.insert(0, {root!r})
from tests.contract import data, discovery

rang = []

def ring(number, frame):
    rang.append((time.perf_counter(), time.process_time()))
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, ring)
warnings.simplefilter("ignore")
for case in (discovery.ONE_EACH[k] for k in {numbers}):
    # One call of LAPACK does not listen: what needs n³ operations has a limit of rows, and is tried on few.
    X, y = data.make(case, n=500 if hasattr(case.cls, "most_rows") else {n}, d={d})
    small = data.make(case)
    estimator = case.build(tol=1e-15, max_iter=10**6, max_epochs=10**6, random_state=0)
    before = data.output(data.fit(case.build(random_state=0), *small), small[0])
    rang.clear()
    wall = busy = None
    started = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, {seconds})
    try:
        while time.perf_counter() - started < 20:
            data.fit(estimator, X, y)
    except KeyboardInterrupt:
        wall, busy = time.perf_counter() - rang[0][0], time.process_time() - rang[0][1]
    after = data.output(data.fit(case.build(random_state=0), *small), small[0])
    again = data.output(data.fit(estimator.set_params(**case.build(random_state=0).get_params()), *small), small[0])
    usable = bool((after == before).all() and (again == before).all())
    print(json.dumps([case.cls.__name__, wall, busy, usable]), flush=True)
"""


@dataclass(frozen=True)
class Interrupted:
    """How long a fit went on after the signal, by the clock and in processor time, and what it left behind."""

    wall: float | None
    busy: float | None
    usable: bool


def shape_of(number: int) -> str:
    """The shape that the default run tries with an estimator: every second one is tall."""
    return list(SHAPES)[number % 2]


def groups() -> Iterator[Any]:
    """The estimators that share a process, by their numbers, with the shape they are tried on."""
    for shape in SHAPES:
        default = [k for k in range(len(ONE_EACH)) if shape_of(k) == shape]
        others = [k for k in range(len(ONE_EACH)) if shape_of(k) != shape]
        for numbers, marks in ((default, ()), (others, exhaustive)):
            for part in np.array_split(numbers, -(-len(numbers) // GROUP)):
                group = part.tolist()
                title = f"{shape}, {ONE_EACH[group[0]].cls.__name__} to {ONE_EACH[group[-1]].cls.__name__}"
                yield pytest.param(group, shape, id=title, marks=marks)


@pytest.mark.timeout(2 * PATIENCE)
@pytest.mark.parametrize(("numbers", "shape"), list(groups()))
def test_ctrl_c_stops_a_fit_within_a_second(numbers: list[int], shape: str) -> None:
    n, d, seconds = SHAPES[shape]
    code = SCRIPT.format(root=str(ROOT), numbers=numbers, n=n, d=d, seconds=seconds)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT, check=False
    )
    lines = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
    found = {name: Interrupted(*values) for name, *values in lines}

    def ask(name: str) -> None:
        assert name in found, f"the process ended here or before: {done.stderr[-2000:]}"
        result = found[name]
        assert result.wall is not None, "the interrupt was swallowed"
        assert result.busy is not None
        # On a machine that others use too, the processor time says what the clock would have said on a free one.
        assert min(result.wall, result.busy) < 1.0
        assert result.usable

    each((name, functools.partial(ask, name)) for name in (ONE_EACH[number].cls.__name__ for number in numbers))
