"""The number of BLAS threads belongs to the process: whoever changes it for a while leaves it as it was."""

from __future__ import annotations

import os
import threading

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_info

from certifit.threads import one_blas_thread, shared_work


def blas() -> list[tuple[str, int]]:
    scipy.linalg.cholesky(np.eye(2))  # every library is loaded before anybody looks
    return sorted((lib["filepath"], lib["num_threads"]) for lib in threadpool_info() if lib["user_api"] == "blas")


def single() -> bool:
    return all(number == 1 for _, number in blas())


def test_threads_that_overlap_restore_the_number() -> None:
    """The first one in leaves before the second, which each would restore to what it found; threadpoolctl lets only one thread
    at a time decide, so the number may be back only when that one has been inside again."""
    before, inside, go_on = blas(), threading.Event(), threading.Event()

    def second() -> None:
        with one_blas_thread():
            inside.set()
            go_on.wait(10)

    other = threading.Thread(target=second)
    with one_blas_thread():
        other.start()
        assert inside.wait(10)
        assert single()
    assert single()  # somebody is still inside
    go_on.set()
    other.join()
    with one_blas_thread():
        pass
    assert blas() == before


def test_within_itself_it_changes_nothing() -> None:
    before = blas()
    with one_blas_thread(), one_blas_thread():
        assert single()
    assert blas() == before


def test_a_forked_child_begins_outside() -> None:
    before = blas()
    with one_blas_thread():
        child = os.fork()
        if child == 0:
            os._exit(0 if blas() == before else 1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_shared_work_comes_in_order_with_one_thread_of_blas() -> None:
    with shared_work() as share:
        assert single()
        assert list(share(lambda k: k * k, range(20))) == [k * k for k in range(20)]
