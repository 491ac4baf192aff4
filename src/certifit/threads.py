"""How many threads a fit may use, and how many BLAS may."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import certifit._native.threads as _native

__all__ = ["n_threads", "one_blas_thread"]


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
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # looks through all loaded libraries: once is enough


_here = threading.local()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """No threads inside matrix products: what is small does not need them, and what is large is split by `over_rows`."""
    if getattr(_here, "limited", False):
        yield
        return
    _here.limited = True
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _here.limited = False
