"""What is scarce or ends: no room on the disk, no memory, no time to say goodbye. One estimator of every family, found by itself.

A file is the old one or the new one, whatever happens while it is written. A fit that does not find its memory says so, and
the next one, smaller, is as good as ever.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.discovery import ONE_EACH, Case
from tests.grids import exhaustive

from certifit import Ridge
from certifit.persistence import load, save

ROOT = Path(__file__).resolve().parents[3]
GROUP = 30  # estimators that share a process


def family(case: Case) -> str:
    """The folder of an estimator."""
    return case.cls.__module__.rsplit(".", 1)[0]


FAMILIES = {family(case): number for number, case in reversed(list(enumerate(ONE_EACH)))}
OTHERS = [number for number in range(len(ONE_EACH)) if number not in FAMILIES.values()]
EVERY = pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(list(FAMILIES.values()), id="one of each family"),
        *(
            pytest.param(OTHERS[at : at + GROUP], id=f"others from {at}", marks=exhaustive)
            for at in range(0, len(OTHERS), GROUP)
        ),
    ],
)
# Files may have 100 bytes, as if the disk were full after those; then there is memory for the rows, and for little more.
SCRIPT = """
import json, resource, signal, sys, warnings
from pathlib import Path
import numpy as np
sys.path.insert(0, {root!r})
from certifit.persistence import save
from tests.contract.data import features, fit, make, output, targets
from tests.contract.discovery import ONE_EACH

warnings.simplefilter("ignore")
SMALL = dict(random_state=0, n_jobs=1, n_estimators=2, max_epochs=2, max_iter=20)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for number in {numbers}:
    model = fit(ONE_EACH[number].build(**SMALL), *make(ONE_EACH[number]))
    path = Path(sys.argv[1]) / str(number) / "model.cfit"
    path.parent.mkdir()
    path.write_bytes(b"the old file")
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    try:
        save(model, path)
        said = "nothing"
    except Exception as error:
        said = type(error).__name__
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    kept = path.read_bytes() == b"the old file" and list(path.parent.iterdir()) == [path]
    print(json.dumps(["disk", number, said, kept]), flush=True)
for number in {numbers}:
    case = ONE_EACH[number]
    small = make(case)
    before = output(fit(case.build(**SMALL), *small), small[0])
    X = features(case, min(20_000, getattr(case.cls, "most_rows", 20_000)), 40)
    y = targets(case, X)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 3 * 2**20, resource.RLIM_INFINITY))
    try:
        fit(case.build(**SMALL), X, y)
        said = "nothing"
    except Exception as error:
        said = type(error).__name__
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    same = np.array_equal(output(fit(case.build(**SMALL), *small), small[0]), before)
    print(json.dumps(["memory", number, said, bool(same)]), flush=True)
"""


@functools.cache
def answers(numbers: tuple[int, ...]) -> tuple[dict[tuple[str, int], tuple[str, bool]], str]:
    """What each estimator said at each hardship, and whether all was well afterwards; and the last words of the process."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT.format(root=str(ROOT), numbers=numbers), folder],
            capture_output=True,
            text=True,
            timeout=280,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            check=False,
        )
    lines = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
    return {(hardship, number): (said, fine) for hardship, number, said, fine in lines}, done.stderr[-2000:]


def told(hardship: str, numbers: list[int]) -> Iterator[tuple[str, str, bool]]:
    """By name, what was said and whether all was well afterwards."""
    found, error = answers(tuple(numbers))
    for number in numbers:
        assert (hardship, number) in found, f"the process ended at {ONE_EACH[number]} or before: {error}"
        yield (ONE_EACH[number].cls.__name__, *found[hardship, number])


@EVERY
def test_a_full_disk_leaves_the_old_file(numbers: list[int]) -> None:
    for name, said, kept in told("disk", numbers):
        assert said == "OSError", name
        assert kept, name


@EVERY
def test_a_fit_without_memory_says_so_and_the_next_is_as_good(numbers: list[int]) -> None:
    found = list(told("memory", numbers))
    for name, said, same in found:
        assert said in ("nothing", "MemoryError"), name
        assert same, name
    if len(numbers) == len(FAMILIES):
        assert "MemoryError" in {said for _, said, _ in found}, "the limit tests nothing"


KILLED = """
import sys
import numpy as np
from certifit import Ridge
from certifit.persistence import save
model = Ridge().fit(np.eye(3), np.arange(3.0))
model.extra_ = np.arange(100_000.0)
print("ready", flush=True)
while True:
    save(model, sys.argv[1])
"""


def test_a_killed_process_leaves_a_whole_file(tmp_path: Path) -> None:
    path = save(Ridge(), tmp_path / "model.cfit")
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.013)
        child.send_signal(signal.SIGKILL)
    assert isinstance(load(path), Ridge)
