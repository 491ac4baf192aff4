"""Files that are written whole or not at all: readers see the old one or the new one, never a part; how far they unpack."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["most_inflated", "written_whole"]


def most_inflated(compressed: int) -> int:
    """How many bytes a compressed text of so many may grow to: 256 MiB, and a hundred times its size.

    Examples
    --------
    >>> from certifit.files import most_inflated
    >>> most_inflated(1000)
    268535456
    """
    return (1 << 28) + 100 * compressed


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write into; it takes its name when the block has ended well, and is removed otherwise.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from certifit.files import written_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_whole(Path(folder) / "note.txt") as file:
    ...         _ = file.write(b"whole")
    ...     (Path(folder) / "note.txt").read_bytes()
    b'whole'
    """
    target = Path(os.path.realpath(path))  # the file behind a symbolic link is replaced, not the link
    if not target.parent.is_dir():
        raise FileNotFoundError(f"path: the folder {str(target.parent)!r} does not exist; create it first.")
    if target.is_dir():
        raise IsADirectoryError(f"path: {str(path)!r} is a folder; give the name of a file in it.")
    draft = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(draft, stat.S_IMODE(target.stat().st_mode))
        os.replace(draft, target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name itself durable, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
