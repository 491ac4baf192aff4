"""A plugin of pytest: one line of JSON for each test, written where all workers report to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcomes", help="file to write to")


class Outcomes:
    """Writes what is reported."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.path.write_text("", encoding="utf-8")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and not report.failed:
            return
        text = getattr(getattr(report.longrepr, "reprcrash", None), "message", "") if report.failed else ""
        line = {
            "name": report.nodeid.partition("sklearn/")[2] or report.nodeid,
            "outcome": report.outcome,
            "fitted": dict(report.user_properties).get("fitted", []),
            "message": " ".join(str(text).split())[:300],
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and config.getoption("--outcomes"):
        config.pluginmanager.register(Outcomes(config.getoption("--outcomes")))
