"""The estimator contract shared by all models: parameters, certificate, progress."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from certifit.certificate import Certificate

__all__ = ["CertifiedEstimator", "ConvergenceWarning", "Progress", "progress"]


class CertifiedEstimator(BaseEstimator):
    """An estimator whose fit leaves a `certificate_`."""

    certificate_: Certificate

    def _certify(self, certificate: Certificate) -> None:
        """Keep the certificate; a fit that stopped short says so once, with the gap it reached."""
        self.certificate_ = certificate
        if not certificate.certified and certificate.kind != "none":
            warnings.warn(f"{type(self).__name__}: {certificate}", ConvergenceWarning, stacklevel=_caller())


def _caller() -> int:
    """Stack level of the first frame outside this package, so that a warning points at the user's line."""
    level, frame = 1, inspect.currentframe()
    frame = frame.f_back if frame is not None else None
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "certifit":
        frame, level = frame.f_back, level + 1
    return level


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


class _Bar(Progress):
    """A rich progress bar on the terminal."""

    def __init__(self, bar: Any, task: Any) -> None:
        super().__init__()
        self._bar, self._task = bar, task

    def update(self, iteration: int, total: int, relative_gap: float) -> None:
        self._bar.update(self._task, completed=iteration, total=total, gap=f"{relative_gap:.1e}")


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
        TextColumn("relative gap {task.fields[gap]}"),
        TimeElapsedColumn(),
    )
    with RichProgress(*columns) as bar:
        yield _Bar(bar, bar.add_task(title, total=None, gap="…"))
