"""The files of a contest, each written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from certifit.contest.alarms.registry import ring
from certifit.contest.folder import check_folder, write_text
from certifit.contest.record.model import TableModel
from certifit.contest.record.record import leaderboard_rows
from certifit.contest.record.spreadsheet import csv_text
from certifit.contest.record.summary import summarize
from certifit.contest.report import render
from certifit.persistence import save

__all__ = ["FILES", "write_outputs"]

FILES = {"report": "report.html", "leaderboard": "leaderboard.csv", "model": "model.cfit", "run": "run.json"}


def write_outputs(record: dict[str, Any], winner: TableModel, folder: Path) -> dict[str, Path]:
    """Write report, leaderboard, model and record. A winner that is not Certifit's own cannot be saved: the record says so."""
    check_folder(folder)
    paths = {kind: folder / name for kind, name in FILES.items()}
    record = dict(record)
    record["files"] = dict(FILES)
    try:
        save(winner, paths["model"])
    except TypeError as error:
        paths.pop("model").unlink(missing_ok=True)  # that of an earlier contest must not pass for this one's
        record["files"]["model"] = None
        note = ring("not saved", why=str(error))
        record["data"] = {**record["data"], "warnings": [*record["data"]["warnings"], note]}
        record["shipped"] = {}
        record["summary"] = summarize(record)
    rows = leaderboard_rows(record)
    write_text(paths["leaderboard"], csv_text(rows, list(rows[0]))[0])
    write_text(paths["run"], json.dumps(record, ensure_ascii=False, allow_nan=False, indent=1) + "\n")
    write_text(paths["report"], render(record))
    return paths
