"""The folder of results, and text files in it that are written whole or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from certifit.files import written_whole

__all__ = ["OutputError", "check_folder", "write_text"]


class OutputError(ValueError):
    """Results cannot be written where they should be; the message says why and what helps."""


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written before the work is done, not after."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (FileExistsError, NotADirectoryError):
        raise OutputError(f"{folder} is a file or lies under one: give --out a folder.") from None
    except OSError as error:
        raise OutputError(f"{folder} cannot be written ({error.strerror}): give --out another folder.") from None


def write_text(path: Path, text: str) -> None:
    """Write a text file whole."""
    with written_whole(path) as file:
        file.write(text.encode("utf-8"))
