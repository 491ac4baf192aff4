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
import time
from pathlib import Path

import pytest
from tests.contract.discovery import ONE_EACH, Case
from tests.grids import exhaustive

from certifit import Ridge
from certifit.persistence import load, save

ROOT = Path(__file__).resolve().parents[2]
GROUP = 30  # estimators that share a process


def family(case: Case) -> str:
    """The folder of an estimator."""
    return case.cls.__module__.rsplit(".", 1)[0]


FAMILIES = {family(case): number for number, case in reversed(list(enumerate(ONE_EACH)))}
EVERY = pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, id=case.cls.__name__, marks=() if number in FAMILIES.values() else exhaustive)
        for number, case in enumerate(ONE_EACH)
    ],
)
START = """
import json, resource, signal, sys, warnings
from pathlib import Path
import numpy as np
sys.path.insert(0, {root!r})
from certifit.persistence import save
from tests.contract.data import fit, make, output
from tests.contract.discovery import ONE_EACH

warnings.simplefilter("ignore")
SMALL = dict(random_state=0, n_jobs=1, n_estimators=2, max_epochs=2, max_iter=20)
"""
# Files may have 100 bytes: as if the disk were full after those.
DISK = (
    START
    + """
folder = Path(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for number in {numbers}:
    model = fit(ONE_EACH[number].build(**SMALL), *make(ONE_EACH[number]))
    path = folder / f"{{number}}.cfit"
    path.write_bytes(b"the old file")
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    try:
        save(model, path)
        said = "nothing"
    except Exception as error:
        said = type(error).__name__
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    kept = path.read_bytes() == b"the old file" and len(list(folder.glob(f"*{{number}}.cfit*"))) == 1
    print(json.dumps([number, said, kept]), flush=True)
"""
)
# The rows, and room for little more.
MEMORY = (
    START
    + """
from tests.contract.data import features, targets
for number in {numbers}:
    case = ONE_EACH[number]
    small = make(case)
    before = output(fit(case.build(**SMALL), *small), small[0])
    X = features(case, 20_000, 40)
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
    print(json.dumps([number, said, bool(same)]), flush=True)
"""
)


@functools.cache
def found(script: str, numbers: tuple[int, ...], folder: str) -> tuple[dict[int, tuple[str, bool]], str]:
    """What a process found out about its estimators, and its complaints."""
    done = subprocess.run(
        [sys.executable, "-c", script.format(root=str(ROOT), numbers=numbers), folder],
        capture_output=True,
        text=True,
        timeout=250,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )
    lines = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
    return {number: (said, fine) for number, said, fine in lines}, done.stderr[-2000:]


def answer(script: str, number: int, folder: str) -> tuple[str, bool]:
    """What became of one estimator; those that are tested by default share processes, and so do the others."""
    default = number in FAMILIES.values()
    alike = [k for k in range(len(ONE_EACH)) if (k in FAMILIES.values()) == default]
    at = alike.index(number) // GROUP * GROUP
    results, complaints = found(script, tuple(alike[at : at + GROUP]), folder)
    assert number in results, f"the process ended here or before: {complaints}"
    return results[number]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("full"))


@EVERY
def test_a_full_disk_leaves_the_old_file(number: int, folder: str) -> None:
    said, kept = answer(DISK, number, folder)
    assert said == "OSError"
    assert kept


@EVERY
def test_a_fit_without_memory_says_so_and_the_next_is_as_good(number: int) -> None:
    said, same = answer(MEMORY, number, "")
    assert said in ("nothing", "MemoryError")
    assert same


def test_there_are_fits_that_do_not_find_their_memory() -> None:
    """Otherwise the limit would test nothing."""
    assert any(answer(MEMORY, number, "")[0] == "MemoryError" for number in FAMILIES.values())


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
    for pause in (0.004, 0.023):
        with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(pause)
            child.send_signal(signal.SIGKILL)
        assert isinstance(load(path), Ridge)
