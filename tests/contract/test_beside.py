"""A full disk, little memory, Ctrl-C and a kill, for what is no model of tables: sequences, texts, pages, reports.

Other processes and threads are in test_processes.py, which starts them anyway.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.contract.beside import BESIDE

from certifit.contest.table.reading import TableError
from certifit.persistence import load

ROOT = Path(__file__).resolve().parents[2]
WORKS = pytest.mark.parametrize("name", BESIDE)
PAUSE = 0.05  # seconds after which the killed one is in the middle of some file
# All hardships of all works in one process, which in the end writes files until it is killed.
SCRIPT = """
import json, resource, signal, sys, time, warnings
from pathlib import Path
import numpy as np
sys.path.insert(0, {root!r})
from tests.contract.beside import BESIDE, LONG, SHORT

warnings.simplefilter("ignore")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder, rang, kept = Path(sys.argv[1]), [], {{}}

def ring(number, frame):
    rang.append((time.perf_counter(), time.process_time()))
    raise KeyboardInterrupt

def limited(what, room, act):
    resource.setrlimit(what, (room, resource.RLIM_INFINITY))
    try:
        act()
        return "nothing"
    except Exception as error:
        return type(error).__name__
    finally:
        resource.setrlimit(what, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

def tell(hardship, name, *answer):
    print(json.dumps([hardship, name, *answer]), flush=True)

signal.signal(signal.SIGALRM, ring)
for name, work in BESIDE.items():
    thing = kept[name] = work.small()
    before = work.said(thing)
    path = folder / name
    path.write_bytes(b"the old file")
    said = limited(resource.RLIMIT_FSIZE, 100, lambda: work.kept(thing, path))
    tell("disk", name, said, path.read_bytes() == b"the old file" and len(list(folder.glob(f"*{{name}}*"))) == 1)

    data = work.data(work.many)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    # Polars ends the process when it finds no memory: of what stands on it, only the page is written with little of it.
    act = (lambda: work.made(data, SHORT)) if work.forks else (lambda: work.kept(thing, path))
    said = limited(resource.RLIMIT_AS, used + 3 * 2**20, act)
    tell("memory", name, said, bool(np.array_equal(work.said(work.small()), before)))

    rang.clear()
    busy = None
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    started = time.perf_counter()
    try:
        while time.perf_counter() - started < 20:
            work.made(data, LONG)
    except KeyboardInterrupt:
        busy = min(time.perf_counter() - rang[0][0], time.process_time() - rang[0][1])
    tell("signal", name, busy, bool(np.array_equal(work.said(work.small()), before)))
for name, work in BESIDE.items():
    work.kept(kept[name], folder / name)
print("ready", flush=True)
while True:
    for name, work in BESIDE.items():
        work.kept(kept[name], folder / name)
"""


@functools.cache
def endured(folder: Path) -> dict[tuple[str, str], tuple[Any, bool]]:
    """What each hardship did to each work, before the process was killed."""
    found: dict[tuple[str, str], tuple[Any, bool]] = {}
    code = SCRIPT.format(root=str(ROOT))
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
    # Arrays go back to the system when they are not needed: otherwise the next would find memory in spite of the limit.
    environment = {**os.environ, **threads, "MALLOC_MMAP_THRESHOLD_": "16384"}
    with subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line == "ready\n":
                time.sleep(PAUSE)
                child.send_signal(signal.SIGKILL)
                break
            hardship, name, answer, fine = json.loads(line)
            found[hardship, name] = answer, fine
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("beside")


@WORKS
def test_a_full_disk_leaves_the_old_file(name: str, folder: Path) -> None:
    assert endured(folder)["disk", name] == ("OSError", True)


@WORKS
def test_without_memory_it_says_so_and_the_next_is_as_good(name: str, folder: Path) -> None:
    said, same = endured(folder)["memory", name]
    assert said in ("nothing", "MemoryError")
    assert same


def test_there_is_work_that_does_not_find_its_memory(folder: Path) -> None:
    assert "MemoryError" in {endured(folder)["memory", name][0] for name in BESIDE}


@WORKS
def test_ctrl_c_stops_it_within_a_second(name: str, folder: Path) -> None:
    busy, same = endured(folder)["signal", name]
    assert busy is not None, "the interrupt was swallowed"
    assert busy < 1.0
    assert same


@WORKS
def test_a_kill_leaves_a_whole_file(name: str, folder: Path) -> None:
    assert endured(folder)
    path = folder / name
    if name in ("exploration", "report"):
        assert path.read_text().rstrip().endswith("</html>")
    else:
        assert type(load(path)).__name__ == name


def _explored_again(answer: Any) -> None:
    try:
        BESIDE["exploration"].small()
        answer.send("it was explored")
    except TableError as error:
        answer.send(str(error))


def test_a_forked_child_says_that_it_cannot_read_tables() -> None:
    """It would wait for the threads that polars has in its parent."""
    BESIDE["exploration"].small()
    fork = multiprocessing.get_context("fork")
    hear, answer = fork.Pipe(duplex=False)
    child = fork.Process(target=_explored_again, args=(answer,))
    child.start()
    came = hear.poll(60)
    if not came:
        child.kill()
    child.join()
    assert came, "the forked child never came back"
    assert "forked from one that has read a table" in hear.recv()
