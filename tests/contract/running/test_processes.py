"""Fits in other processes: forked, also while a thread fits; by `multiprocessing`, in joblib's workers; and in several threads.

A forked child has one thread. Whatever pool the parent kept, its threads are not there, and a fit that waits for one waits
for ever. `multiprocessing` forks by default on Linux up to Python 3.13.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed
from tests.contract.beside import BESIDE
from tests.contract.data import asked, fit, make, on_kernel, output, unbothered
from tests.contract.discovery import ONE_EACH
from tests.grids import each
from threadpoolctl import threadpool_limits

from certifit import KMedoids
from certifit.models.perceptron.base import BasePerceptron

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 200  # seconds: what all the fits of a child may take on a busy machine
WITH_THREADS = [case for case in ONE_EACH if case.has("n_jobs")]


def fitted(number: int | str) -> Any:
    """What an estimator says after a fit with two threads, by its number; what is no model of tables has a name."""
    if isinstance(number, str):
        return BESIDE[number].said(BESIDE[number].small())
    case = ONE_EACH[number]
    # What compares all pairs of rows has a limit of them, and is tried on few; where threads share pairs, or classes, fewer do.
    fewer = on_kernel(case.cls) or issubclass(case.cls, (BasePerceptron, KMedoids))
    n, d = (300, 6) if case not in WITH_THREADS or hasattr(case.cls, "most_rows") else (1500 if fewer else 5000, 12)
    X, y = make(case, n=n, d=d)
    small = case.build(random_state=0, n_jobs=2, n_estimators=2, max_epochs=2, max_iter=100)
    # joblib grants its workers fewer threads of BLAS than there are here, and the last digits of a product depend on them.
    with unbothered(), threadpool_limits(1, user_api="blas"):
        model = fit(small, X, y)
        return output(model, asked(model, X))


# Every fit in the parent, then again in a child; those with threads once more in a child that was forked while another thread
# of the parent was in the middle of a fit. The children say which fits came back, and whether they came out the same.
FORK = """
import json, os, signal, sys, threading, warnings
import numpy as np
sys.path.insert(0, {root!r})
from tests.contract.discovery import ONE_EACH
from tests.contract.running.test_processes import WITH_THREADS, fitted

warnings.simplefilter("ignore")
expected = [fitted(number) for number in range(len(ONE_EACH))]

def fork(title, cases):
    child = os.fork()
    if child == 0:
        signal.alarm({patience})
        for case in cases:
            number = ONE_EACH.index(case)
            same = bool(np.array_equal(fitted(number), expected[number]))
            print(json.dumps([title, number, same]), flush=True)
        os._exit(0)
    return child

os.waitpid(fork("idle", ONE_EACH), 0)
forest = next(number for number, case in enumerate(ONE_EACH) if case.cls.__name__ == "RandomForestRegressor")
fits = threading.Semaphore(0)
stop = threading.Event()

def keep_fitting():
    while not stop.is_set():
        fits.release()
        fitted(forest)

other = threading.Thread(target=keep_fitting)
other.start()
fits.acquire(), fits.acquire()
child = fork("busy", WITH_THREADS)
stop.set()
other.join()
os.waitpid(child, 0)
"""


@pytest.mark.timeout(5 * PATIENCE)
def test_fits_in_forked_children() -> None:
    """For each child and estimator whether the fit came out the same; those that never came back are missing."""
    code = FORK.format(root=str(ROOT), patience=PATIENCE)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        check=False,
    )
    lines = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
    found = {(title, number): same for title, number, same in lines}

    def ask(title: str, number: int) -> None:
        assert (title, number) in found, f"this fit or one before it never came back. {done.stderr[-2000:]}"
        assert found[title, number], "the fit came out different in the child"

    wanted = {"idle": ONE_EACH, "busy": WITH_THREADS}
    each(
        (f"{case} ({title})", functools.partial(ask, title, ONE_EACH.index(case)))
        for title, cases in wanted.items()
        for case in cases
    )


WAYS = ["fork", "spawn", "loky", "threads"]
FAMILIES = list({case.cls.__module__.split(".")[2]: number for number, case in enumerate(ONE_EACH)}.values())
OTHERS = [number for number in range(len(ONE_EACH)) if number not in FAMILIES]
expected = functools.cache(fitted)


def check_workers(way: str, numbers: Sequence[int | str]) -> None:
    """The same numbers from workers as from this process."""
    wanted = [expected(number) for number in numbers]
    if way == "loky":
        # As many threads inside as here: the last digits of a product by BLAS depend on them.
        found = Parallel(n_jobs=2, backend="loky", inner_max_num_threads=os.cpu_count())(
            delayed(fitted)(number) for number in numbers
        )
    elif way == "threads":
        with ThreadPoolExecutor(3) as threads:
            found = list(threads.map(fitted, numbers, timeout=PATIENCE))
    else:
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(way)) as workers:
            found = list(workers.map(fitted, numbers, timeout=PATIENCE))
    for number, one, other in zip(numbers, found, wanted, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=str(number if isinstance(number, str) else ONE_EACH[number]))


@pytest.mark.timeout(5 * PATIENCE)
@pytest.mark.parametrize("way", WAYS)
def test_fits_in_workers_are_those_of_the_parent(way: str) -> None:
    beside = [name for name, work in BESIDE.items() if work.forks or way != "fork"]
    check_workers(way, [*FAMILIES, *beside])  # one estimator of each


@pytest.mark.exhaustive
@pytest.mark.timeout(10 * PATIENCE)
@pytest.mark.parametrize("way", WAYS)
def test_fits_of_all_others_in_workers(way: str) -> None:
    check_workers(way, OTHERS)
