"""Parquet files, read by a child process that may die.

The readers of binary formats are large programs in native code, and a damaged or hostile file of a kilobyte can end the
process they run in. So a child reads the file and hands the table over as an Arrow file, which costs a copy at the speed
of memory; where it dies, one line says so, and the contest goes on to its next question.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from certifit.contest.table.errors import TableError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read_parquet"]

_REFUSED = 3
_READER = """
import sys
try:
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where memory runs out, this process goes first
except OSError:
    pass
import polars
try:
    polars.read_parquet(sys.argv[1], glob=False).write_ipc(sys.argv[2], compression="uncompressed")
except BaseException as error:  # panics of the reader are no ordinary exceptions
    sys.stdout.write((str(error) or type(error).__name__)[:1000])
    sys.exit(3)
"""


def read_parquet(content: Path | bytes, name: str) -> pl.DataFrame:
    """The table of a Parquet file."""
    import polars as pl

    if not sys.executable or getattr(sys, "frozen", False):  # a program of its own has no interpreter to start
        return _read_here(content, name)
    with tempfile.TemporaryDirectory(prefix="certifit-", ignore_cleanup_errors=True) as folder:
        if isinstance(content, bytes):
            source = Path(folder) / "table.parquet"
            source.write_bytes(content)
        else:
            source = content
        target = Path(folder) / "table.arrow"
        child = subprocess.run(
            [sys.executable, "-c", _READER, str(source.absolute()), str(target)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            check=False,
        )
        if child.returncode == 0:
            return pl.read_ipc(target)
        if child.returncode == _REFUSED:
            raise _unreadable(name, child.stdout.decode(errors="replace"))
    raise TableError(
        f"{name} is a Parquet file on which its reader ends (exit code {child.returncode}): it is damaged, or larger than "
        "the memory. Write it again, or as CSV."
    )


def _read_here(content: Path | bytes, name: str) -> pl.DataFrame:
    import polars as pl

    try:
        return pl.read_parquet(content, glob=False)
    except Exception as error:  # the readers of formats raise what their libraries raise
        raise _unreadable(name, str(error)) from None


def _unreadable(name: str, why: str) -> TableError:
    reason = why.splitlines()[0][:200] if why else "no reason given"
    return TableError(f"{name} is a Parquet file that cannot be read ({reason}): write it again.")
