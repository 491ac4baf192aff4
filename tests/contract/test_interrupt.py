"""Ctrl-C stops a long fit within a second and leaves the interpreter usable."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.contract.discovery import Case, parametrize

ROOT = Path(__file__).resolve().parents[2]
# The fit is repeated until the alarm rings, so that the alarm finds it in some phase of its work.
SCRIPT = """
import json, signal, sys, time, warnings
import numpy as np
sys.path.insert(0, {root!r})
from tests.contract import data, discovery

case = next(case for case in discovery.CASES if str(case) == {case!r})
X, y = data.make(case, n={n}, d={d})
small = data.make(case)
estimator = case.build(tol=1e-15, max_iter=10**6, random_state=0)
rang = []

def ring(number, frame):
    rang.append(time.perf_counter())
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.7)
warnings.simplefilter("ignore")
started = time.perf_counter()
try:
    while time.perf_counter() - started < 60:
        data.fit(estimator, X, y)
    delay = None
except KeyboardInterrupt:
    delay = time.perf_counter() - rang[0]
after = data.output(data.fit(case.build(random_state=0), *small), small[0])
fresh = data.output(data.fit(case.build(random_state=0), *small), small[0])
print(json.dumps([delay, bool(np.isfinite(after).all() and (after == fresh).all())]))
"""


def interrupted(case: Case, n: int, d: int) -> tuple[float | None, bool]:
    code = SCRIPT.format(root=str(ROOT), case=str(case), n=n, d=d)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    delay, usable = json.loads(done.stdout.strip().splitlines()[-1])
    return delay, usable


# A process for each: one of every class that works for long, one shape between tall and wide.
@parametrize(lambda case: case.has("max_iter") or case.has("n_estimators"), one_each=True)
def test_ctrl_c_stops_a_fit_within_a_second(case: Case) -> None:
    delay, usable = interrupted(case, 2000, 400)
    assert delay is not None, "the interrupt was swallowed"
    assert delay < 1.0
    assert usable
