"""Work on blocks of rows, in threads.

A pass over X in one go is limited by memory, and a library that splits each small product over threads waits for
the slowest of them hundreds of times. Here every thread takes whole chunks of rows through all steps of a pass, block
by block while they are in its cache, and the threads meet once. The chunks depend on the shape alone, and so do the
results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import TypeVar

from certifit._types import Array, Matrix, is_sparse
from certifit.representation.design.products import NARROW
from certifit.threads import one_blas_thread

__all__ = ["added_over_rows", "over_rows", "thin_products"]

T = TypeVar("T")
U = TypeVar("U")
CHUNKS = 8  # of all rows: enough to balance a few threads
SERIAL = 1 << 19  # entries below which threads cost more than they save
TINY = 10_000  # entries for which BLAS takes one thread anyway, and which are soon all looked at


def thin_products(X: Matrix) -> AbstractContextManager[None]:
    """One BLAS thread for the work on a dense X of few columns.

    All that is large there are passes over X, which have threads of their own; what is left to BLAS are vectors and
    small matrices, and its waiting threads would take the processors from the passes. BLAS takes no threads for a tiny X,
    and to forbid them takes longer than many a fit.
    """
    thin = not is_sparse(X) and X.shape[1] <= NARROW and X.shape[0] >= X.shape[1]
    return one_blas_thread() if thin and X.shape[0] * X.shape[1] > TINY else nullcontext()


def over_rows(work: Callable[[slice], T], n: int, width: int, threads: int) -> list[T]:
    """The results of `work` on chunks of consecutive rows, in their order."""
    return _consumed(list, work, n, width, threads)


def added_over_rows(work: Callable[[slice], tuple[Array, ...]], n: int, width: int, threads: int) -> tuple[Array, ...]:
    """The sums of what `work` gives of chunks of consecutive rows, new arrays that are added in the order of the chunks.

    They are added as they come: a matrix of all pairs of columns from every chunk may weigh more than all that a fit holds.
    """
    return _consumed(_added, work, n, width, threads)


def _added(found: Iterator[tuple[Array, ...]]) -> tuple[Array, ...]:
    total = next(found)
    for more in found:
        for one, other in zip(total, more, strict=True):
            one += other
        del more, one, other  # before the next chunk makes its own
    return total


def _consumed(take: Callable[[Iterator[T]], U], work: Callable[[slice], T], n: int, width: int, threads: int) -> U:
    """What `take` makes of the results, in the order of the chunks."""
    count = max(1, min(CHUNKS, n * width // SERIAL * 2))
    edges = [n * k // count for k in range(count + 1)]
    chunks = [slice(a, b) for a, b in pairwise(edges) if b > a]
    if threads == 1 or len(chunks) == 1:
        return take(map(work, chunks))
    with one_blas_thread(), ThreadPoolExecutor(min(threads, len(chunks))) as pool:
        return take(pool.map(work, chunks))
