"""The files of a contest, each written whole or not at all."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from certifit.contest.alarms.registry import ring
from certifit.contest.record.model import TableModel
from certifit.contest.record.record import leaderboard_rows
from certifit.contest.record.spreadsheet import csv_text
from certifit.contest.report import render
from certifit.files import written_whole
from certifit.persistence import save

__all__ = ["FILES", "OutputError", "check_folder", "write_outputs", "write_text"]

FILES = {"report": "report.html", "leaderboard": "leaderboard.csv", "model": "model.cfit", "run": "run.json"}


class OutputError(ValueError):
    """Results cannot be written where they should be; the message says why and what helps."""


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written before the contest is run, not after."""
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


def write_outputs(record: dict[str, Any], winner: TableModel, folder: Path) -> dict[str, Path]:
    """Write report, leaderboard, model and record. A winner that is not Certifit's own cannot be saved: the record says so."""
    check_folder(folder)
    paths = {kind: folder / name for kind, name in FILES.items()}
    record = dict(record)
    record["files"] = dict(FILES)
    try:
        save(winner, paths["model"])
    except TypeError as error:
        del paths["model"]
        record["files"]["model"] = None
        note = ring("not saved", why=str(error))
        record["data"] = {**record["data"], "warnings": [*record["data"]["warnings"], note]}
    rows = leaderboard_rows(record)
    write_text(paths["leaderboard"], csv_text(rows, list(rows[0]))[0])
    write_text(paths["run"], json.dumps(record, ensure_ascii=False, allow_nan=False, indent=1) + "\n")
    write_text(paths["report"], render(record))
    return paths
