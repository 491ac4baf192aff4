"""Which drop-ins have learned, and how often: in this process, and in the processes that a patched script has started."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

__all__ = ["counted_elsewhere", "fitted", "known_as", "learns"]

VARIABLE = "CERTIFIT_FITS"
"""Environment of a patched script: its process, and the file to which the others report."""

fitted: Counter[Any] = Counter()
"""How often each drop-in, class or function, was asked to learn in this process."""


def known_as(one: Any) -> str:
    """The drop-in that a function or a class is, or that a class inherits from, by module and name."""
    home = next(base for base in getattr(one, "__mro__", (one,)) if base.__module__.startswith("certifit.sklearn."))
    return f"{home.__module__.split('.')[2]}.{home.__name__}"


def _told() -> tuple[int, Path] | None:
    owner, _, path = os.environ.get(VARIABLE, "").partition(":")
    return (int(owner), Path(path)) if path else None


_reports: list[tuple[int, Path]] = [told] if (told := _told()) else []
"""The script's process and the file, where a patched script runs: read once, for a fit may take no longer than 200 µs."""


def learns(one: Any) -> None:
    """Count a drop-in that is asked to learn."""
    fitted[one] += 1
    if _reports and os.getpid() != _reports[-1][0]:
        with _reports[-1][1].open("a", encoding="utf-8") as file:
            file.write(f"{known_as(one)}\n")


@contextmanager
def counted_elsewhere(names: Counter[str]) -> Iterator[None]:
    """Add to `names` what other processes, started in the block by this one, have learned."""
    before = os.environ.get(VARIABLE)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        report = (os.getpid(), Path(folder) / "fits")
        report[1].touch()
        os.environ[VARIABLE] = f"{report[0]}:{report[1]}"
        _reports.append(report)
        try:
            yield
        finally:
            _reports.remove(report)
            if before is None:
                os.environ.pop(VARIABLE, None)
            else:
                os.environ[VARIABLE] = before
            names.update(report[1].read_text(encoding="utf-8").split())
