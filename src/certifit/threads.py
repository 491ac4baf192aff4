"""How many threads a fit may use, and how many BLAS may."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import certifit._native.threads as _native

__all__ = ["n_threads", "one_blas_thread", "shared_work"]


def n_threads(n_jobs: int | None) -> int:
    """Threads for a native kernel: `n_jobs`, or what the environment grants this process."""
    # OpenMP's number follows OMP_NUM_THREADS (which joblib sets in its workers) and threadpoolctl; its threads are not used.
    granted = _native.max_threads()
    if n_jobs is None:
        return max(1, granted)
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: give a number of threads, -1 for all, or None.")
    return n_jobs if n_jobs > 0 else max(1, granted + 1 + n_jobs)


@lru_cache(maxsize=1)
def _libraries() -> list[Any]:
    import scipy.linalg  # noqa: F401 - both libraries, NumPy's and SciPy's, must be loaded before anybody looks
    from threadpoolctl import ThreadpoolController

    # Looks through all loaded libraries: once is enough.
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


class _Quiet:
    """Who is inside `one_blas_thread` now.

    The number of BLAS threads belongs to the process: the first one in sets it, and the last one out restores it. threadpoolctl
    listens to one thread at a time; where it did not listen, the number that was found first is kept, and restored by the next
    one out. A forked child begins outside.
    """

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.found: list[int] = []

    def enter(self) -> None:
        with self.lock:
            if self.inside == 0:
                libraries = _libraries()
                self.found = self.found or [library.get_num_threads() for library in libraries]
                for library in libraries:
                    library.set_num_threads(1)
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.restore()

    def restore(self) -> None:
        libraries = _libraries()
        for library, number in zip(libraries, self.found, strict=True):
            library.set_num_threads(number)
        if [library.get_num_threads() for library in libraries] == self.found:
            self.found = []

    def forked(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        if self.found:
            self.restore()


_quiet = _Quiet()
os.register_at_fork(after_in_child=_quiet.forked)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """No threads inside matrix products: what is small does not need them, and what is large is split by `over_rows`."""
    _quiet.enter()
    try:
        yield
    finally:
        _quiet.leave()


@contextmanager
def shared_work() -> Iterator[Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]]:
    """A `map` whose calls are shared by the threads of this process, none of them inside BLAS; results come in order.

    For work in NumPy whose pieces are large: what BLAS would split into threads at every product, two libraries of it that
    wait for each other, is split once.
    """
    threads = n_threads(None)
    with one_blas_thread():
        if threads == 1:
            yield map
            return
        with ThreadPoolExecutor(threads) as pool:
            yield pool.map
