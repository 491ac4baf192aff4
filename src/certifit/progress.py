"""The progress of long work: a silent clock, or a bar on the terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Progress", "progress"]


class Progress:
    """What a solver reports to: an iteration and the relative gap it has reached. Silent by default."""

    def __init__(self) -> None:
        self.started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall-clock time since the start."""
        return time.perf_counter() - self.started

    def update(self, iteration: int, total: int, relative_gap: float) -> None:
        """Called by solvers once an iteration."""
        self.tell(iteration, total, f"relative gap {relative_gap:.1e}")

    def tell(self, iteration: int, total: int, words: str) -> None:
        """The same for methods that have no gap to report."""


class _Bar(Progress):
    """A rich progress bar on the terminal."""

    def __init__(self, bar: Any, task: Any) -> None:
        super().__init__()
        self._bar, self._task = bar, task

    def tell(self, iteration: int, total: int, words: str) -> None:
        self._bar.update(self._task, completed=iteration, total=total, words=words)


@contextmanager
def progress(verbose: int, title: str) -> Iterator[Progress]:
    """A progress bar when `verbose`, otherwise a silent clock."""
    if not verbose:
        yield Progress()
        return
    # Imported on demand: most fits are silent, and the import would cost every one of them.
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[words]}"),
        TimeElapsedColumn(),
    )
    with RichProgress(*columns) as bar:
        yield _Bar(bar, bar.add_task(title, total=None, words="…"))
